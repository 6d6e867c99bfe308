"""The servers of the worst cases: 10,000 tools, schemas that are bombs, long lists of resources, huge answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from actors.protocol.wire.outline import weight
from actors.protocol.wire.weight import MAX_WEIGHT
from benchmarks.honest import honest
from benchmarks.worst_crowds import asker
from benchmarks.worst_scene import write_server

encode = msgspec.json.encode
Tools = list[dict[str, Any]]

TOOLS = 10_000
TWINS = 4000
"""Of these tools differ only in separators."""
ORDINARY = 10
"""Servers with ordinary tools; ten others have what is worst in one way or another."""
LISTED = 31 * 1024 * 1024
"""Bytes of the longest list; the limit of a walk is 32 MiB."""
CHANGED = 10_000
"""Tools of a server that all change at once: the limit of a list."""
READ = MAX_WEIGHT - 4096
"""What is read of JSON with much syntax in it."""
ANSWERED = 16 * 1024 * 1024 - 1024
BOASTED = 15 * 1024 * 1024
BUDGET = 5000
"""Tokens of a result of the server whose results are shortened."""
STDERR_BYTES = 256 * 1024
VARIABLES = 30
REPORTS: Mapping[str, str] = {
    "wide": "16 MiB of wide characters",
    "two": "two texts of 8 MiB",
    "both": "8 MiB of text and of JSON",
    "lines": "as many lines as are read",
    "json": "as many numbers as are taken apart",
}
"""The tools whose results are shortened, and what those are."""
NO_LISTS: Mapping[str, bytes] = {
    "tools-0.json": b'{"tools":[]}',
    "resources-0.json": b'{"resources":[]}',
    "templates-0.json": b'{"resourceTemplates":[]}',
    "prompts-0.json": b'{"prompts":[]}',
}


def servers(directory: Path) -> dict[str, Any]:
    """Write the files of all servers and return the configuration's `mcpServers`."""
    special = {
        "bombs": {"tools-0.json": _listed(_bombs())},
        "twins": {"tools-0.json": _listed(_twins())},
        "library": _library(),
        "shelf": _shelf(),
        "worker": _worker(),
        "reporter": _reporter(),
        "lister": _lister(),
        "changer": _changer(),
        "asker": asker(),
        "boaster": {**_greeting(b'{"tools":{"x":"' + b"x" * BOASTED + b'"}}'), "wait": b""},
    }
    own = TOOLS - sum(_count(files["tools-0.json"]) for files in special.values() if "tools-0.json" in files)
    tools = honest(tools=own)
    ordinary = {
        f"ordinary{number:02}": {
            "tools-0.json": _listed([_raw(tool, n) for n, tool in enumerate(tools[number::ORDINARY])])
        }
        for number in range(ORDINARY)
    }
    noise = _noise()
    return {
        name: {
            **write_server(directory / name, {**NO_LISTS, **_greeting(), "stderr.txt": noise, **files}),
            "env": _environment(name),
            "idle_timeout_s": 0,
            **({"result_token_budget": BUDGET} if name == "reporter" else {}),
            "max_restarts": 0,
            "probe_timeout_s": 600,
            "start_timeout_s": 600,
        }
        for name, files in {**ordinary, **special}.items()
    }


def _greeting(capabilities: bytes = b'{"tools":{},"resources":{},"prompts":{},"completions":{}}') -> dict[str, bytes]:
    info = b'"serverInfo":{"name":"worst","version":"1"}'
    return {"initialize.json": b'{"protocolVersion":"2025-11-25","capabilities":%b,%b}' % (capabilities, info)}


def _listed(tools: Tools) -> bytes:
    return encode({"tools": tools})


def _count(page: bytes) -> int:
    return len(msgspec.json.decode(page)["tools"])


def _raw(tool: Any, number: int) -> dict[str, Any]:
    return {"name": f"{tool.name}_{number}", "description": tool.description, "inputSchema": tool.input_schema}


def _environment(server: str) -> dict[str, str]:
    """Thirty values that look like secrets, as a generous configuration has them."""
    return {f"API_KEY_{number}": f"{server}-{number:04}-s3cr3t-{'Zq7' * 12}{number}" for number in range(VARIABLES)}


def _noise() -> bytes:
    """What fills stderr: long lines that begin like secrets again and again, and are none or nearly."""
    line = "ordinary00-0 Bearer sk- eyJ ghp_ AKIA :// a:b key= token: password -----BEGIN é\x1b[31m" * 12
    return ((line + "\n") * (STDERR_BYTES // len(line.encode()) + 2)).encode()


# Tools ----------------------------------------------------------------------------------------------------------------


def _twins() -> Tools:
    """Tools whose names differ in their separators alone."""
    letters = "exportreport"
    return [
        {"name": _separated(letters, number), "description": "Export a report, @TURN@", "inputSchema": {}}
        for number in range(TWINS)
    ]


def _separated(letters: str, number: int) -> str:
    return "".join(letter + ("_" if number >> place & 1 else "") for place, letter in enumerate(letters)) + "x"


def _bombs() -> Tools:
    """Schemas that grow when their references are inlined, one of 1 MB that wants an argument, a very wide one."""
    small, large = _bomb(300, 17_000), _bomb(200, 900_000)
    made: Tools = [{"name": f"bomb_{number}", **_said("Explode"), "inputSchema": small} for number in range(20)]
    made.append({"name": "huge", **_said("Need much"), "inputSchema": {**large, "required": ["p1", "é"]}})
    wide = {f"p{number}": {"type": "array"} for number in range(300)}
    made.append({"name": "wide", **_said("Take much"), "inputSchema": {"type": "object", "properties": wide}})
    return made


def _said(verb: str) -> dict[str, str]:
    return {"description": f"{verb} in the detonation chamber of the bomb range."}


def _bomb(references: int, values: int) -> dict[str, Any]:
    """Return a schema that says so many times to take what so many bytes say."""
    properties = {f"p{number}": {"$ref": "#/$defs/a"} for number in range(references)}
    return {"type": "object", "properties": properties, "$defs": {"a": {"enum": ["x" * 100] * (values // 103)}}}


# Everything else ------------------------------------------------------------------------------------------------------


def _library() -> dict[str, bytes]:
    """Return 4,000 resources, templates and prompts with long addresses and texts, and an answer of 16 MiB."""
    uri = "file:///" + "é" * 3000
    long = {"description": "\u200bword é" * 400, "_meta": {"ui": {"resourceUri": uri}, "more": "é" * 1500}}
    resources = [{"uri": f"{uri}{number}", "name": f"r{number}", **long} for number in range(700)]
    small = [{"uri": f"file:///{number}", "name": f"s{number}"} for number in range(2300)]
    prompts = [{"name": f"prompt{number}", **long} for number in range(500)]
    text = b'"result":{"contents":[{"uri":"file:///1","text":"' + b"x" * (ANSWERED - 200) + b'"}]}'
    return {
        "resources-0.json": encode({"resources": [*resources, *small]}),
        "templates-0.json": encode({"resourceTemplates": [{"uriTemplate": f"{uri}{{x}}", "name": "any"}]}),
        "prompts-0.json": encode({"prompts": prompts}),
        "answer-resource.json": text,
    }


def _shelf() -> dict[str, bytes]:
    """Return one resource with as many contents as are read."""
    content = b'{"uri":"file:///1","text":"x"},'
    count = READ // (weight(content * 1000, MAX_WEIGHT) // 1000 + 1)
    return {
        "resources-0.json": b'{"resources":[{"uri":"file:///1","name":"one"}]}',
        "answer-resource.json": b'"result":{"contents":[%b]}' % (content * count)[:-1],
    }


def _worker() -> dict[str, bytes]:
    names = ("echo", "text", "unicode", "numbers", "allowed", "members", "failure", "exit")
    numbers = b"1," * (ANSWERED // 2 - 100) + b"1"
    return {
        "tools-0.json": _listed([{"name": name, **_said("Work"), "inputSchema": {"type": "object"}} for name in names]),
        "answer-text.json": b'"result":{"content":[{"type":"text","text":"' + b"x" * (ANSWERED - 200) + b'"}]}',
        "answer-unicode.json": b'"result":{"content":[{"type":"text","text":"%b"}]}'
        % ("é" * (ANSWERED // 2 - 100)).encode(),
        "answer-allowed.json": b'"result":{"content":[],"structuredContent":{"n":[%b1]}}' % (b"1," * (READ // 66)),
        "answer-members.json": b'"result":{"content":[]%b}'
        % b"".join(b',"k%06d":0' % number for number in range(READ // 171)),
        "answer-numbers.json": b'"result":{"content":[],"structuredContent":{"n":[' + numbers + b"]}}",
        "answer-failure.json": b'"error":{"code":-32000,"message":"no","data":{"n":"'
        + b"worker-0001 key=1 " * (ANSWERED // 18 - 100)
        + b'"}}',
    }


def _reporter() -> dict[str, bytes]:
    """Return what is worst to shorten: texts that Python keeps at four bytes a character, most lines, JSON."""
    wide = (b"x" * 1000 + "😀".encode()) * (ANSWERED // 1004 // 2 - 1)
    said = b'{"type":"text","text":"%b"}'
    rows = b'{"rows":[%b1]}' % (b"1," * (READ // 66 // 3))
    return {
        "tools-0.json": _listed([{"name": name, **_said("Report"), "inputSchema": {}} for name in REPORTS]),
        "answer-wide.json": b'"result":{"content":[%b]}' % (said % (wide * 2)),
        "answer-two.json": b'"result":{"content":[%b,%b]}' % (said % wide, said % wide),
        "answer-both.json": b'"result":{"content":[%b],"structuredContent":{"a":"%b"}}' % (said % wide, wide),
        "answer-lines.json": b'"result":{"content":[%b]}' % (said % (b"\\n" * (MAX_WEIGHT // 11))),
        "answer-json.json": b'"result":{"content":[%b],"structuredContent":%b}'
        % (said % rows.replace(b'"', b'\\"'), rows),
    }


def _lister() -> dict[str, bytes]:
    """One tool at first, then 31 MiB of them: the pages behind the first."""
    pages = list(_pages())
    first = encode({"tools": [{"name": "relist", "inputSchema": {}}]})
    files = {"tools-0.json": first}
    for number, tools in enumerate(pages):
        more = {"nextCursor": f"{number + 1}"} if number + 1 < len(pages) else {}
        files[f"later-{number}.json"] = encode({"tools": tools, **more})
    return files


def _changer() -> dict[str, bytes]:
    """One tool at first, then as many as a list may have, all of which are other ones each time."""
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in ("path", "query", "limit")}}
    tools = [{"name": f"change_{number}", **_said("Change @TURN@"), "inputSchema": schema} for number in range(CHANGED)]
    return {
        "tools-0.json": _listed([{"name": "relist", "inputSchema": {}}]),
        "later-0.json": _listed([{"name": "relist", "inputSchema": {}}, *tools[1:]]),
    }


def _pages() -> Iterator[Tools]:
    """Yield three pages of tools with much in their schemas."""
    schema = {"type": "object", "properties": {f"p{n}": {"type": "string", "enum": [1] * 20} for n in range(60)}}
    tool = {"description": "List @TURN@ " + "word " * 100, "inputSchema": schema}
    size = len(encode(tool)) + 20
    count = LISTED // size // 3
    for page in range(3):
        yield [{"name": "relist" if n == page == 0 else f"t{page}_{n}", **tool} for n in range(count)]
