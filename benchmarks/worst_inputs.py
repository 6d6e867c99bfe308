"""Every input of the daemon in its worst form, for `worst_cases`: what is read, and what is refused for its size."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path

import msgspec
import trio

from actors.protocol.wire.outline import weight
from actors.protocol.wire.weight import MAX_WEIGHT
from benchmarks.worst_crowds import CROWDS
from benchmarks.worst_requests import Request, requests
from benchmarks.worst_scene import Answer, Case, Scene, request
from benchmarks.worst_servers import REPORTS

BODY = 4 * 1024 * 1024 - 4096
"""What fits the largest HTTP body beside an envelope."""
MESSAGE = 1024 * 1024 - 4096
"""The same for a WebSocket message."""
WALK_S = 4.0
"""How long a walk over lists and what follows from it may take."""


def filled(pattern: bytes, size: int = BODY, between: bytes = b",") -> bytes:
    """Return a pattern with a number in it (`%d`) as often as fits."""
    out: list[bytes] = []
    total = number = 0
    while total < size:
        out.append(pattern % number if b"%" in pattern else pattern)
        total += len(out[-1]) + 1
        number += 1
    return between.join(out[:-1])


def members(size: int = BODY) -> bytes:
    """Return members of an object, as many as fit."""
    return filled(b'"k%06d":0', size)


def lists(size: int = BODY) -> bytes:
    """Return empty lists, the most expensive values there are."""
    return filled(b"[]", size)


def allowed(unit: bytes, size: int = BODY) -> bytes:
    """Return a pattern as often as fits, and as often as a message with it is still read."""
    units = [unit % 100_000 if b"%" in unit else unit] * 1000
    each = weight(b",".join(units), MAX_WEIGHT) / 1000 + 64  # and a comma
    return filled(unit, int(min(size, (MAX_WEIGHT - 4096) / each * (len(units[0]) + 1))))


def _tool(input_: str, worst: str, name: str, arguments: bytes | Callable[[], bytes]) -> Case:
    async def run(scene: Scene) -> Answer:
        return await scene.call(name, arguments if isinstance(arguments, bytes) else arguments())

    return Case(input=input_, worst=worst, run=run)


def discover(worst: str, arguments: bytes | Callable[[], bytes]) -> Case:
    """Return a case of `discover_mcp_tools`."""
    return _tool("discover_mcp_tools", worst, "discover_mcp_tools", arguments)


def execute(worst: str, arguments: bytes | Callable[[], bytes]) -> Case:
    """Return a case of `execute_mcp_tool`."""
    return _tool("execute_mcp_tool", worst, "execute_mcp_tool", arguments)


def other(method: str, worst: str, params: bytes | Callable[[], bytes]) -> Case:
    """Return a case of another method."""

    async def run(scene: Scene) -> Answer:
        return await scene.post(request(method, params if isinstance(params, bytes) else params()))

    return Case(input=method, worst=worst, run=run)


def streamed(worst: str, tool: bytes) -> Case:
    """Return a case of an answer that comes as an event of a stream."""

    async def run(scene: Scene) -> Answer:
        return await scene.post(_called(b'{"tool_path":"worker:%b","arguments":{}}' % tool), "text/event-stream")

    return Case(input="execute_mcp_tool", worst=worst, run=run)


def page(path: str, worst: str) -> Case:
    """Return a case of a page."""

    async def run(scene: Scene) -> Answer:
        return await scene.page(path)

    return Case(input=path.partition("?")[0], worst=worst, run=run)


def message(worst: str, data: Callable[[], bytes]) -> Case:
    """Return a case of a WebSocket message."""

    async def run(scene: Scene) -> Answer:
        return await scene.message(data())

    return Case(input="WebSocket", worst=worst, run=run)


def _called(arguments: bytes) -> bytes:
    return request("tools/call", b'{"name":"execute_mcp_tool","arguments":%b}' % arguments)


def raw(place: int, name: str) -> Case:
    """Return a case of a request that is sent as it is."""

    async def run(scene: Scene) -> Answer:
        request = _requests(scene.port)[place]
        return await scene.send(request.payload, opening=request.opening.decode())

    return Case(input="front", worst=name, run=run)


@cache
def _requests(port: int) -> Sequence[Request]:
    return list(requests(port))


def echo(arguments: bytes) -> bytes:
    """Return the arguments of `execute_mcp_tool` for the tool that takes anything."""
    return b'{"tool_path":"worker:echo","arguments":%b}' % arguments


def several(count: int, size: int, *, same: bool = False) -> bytes:
    """Return the arguments for so many further calls of that tool, of so many bytes together."""
    texts = (b"x" * (size // (count + 1) - 100 - (0 if same else number)) for number in range(count + 1))
    first, *further = (echo(b'{"text":"%b"}' % text) for text in texts)
    return first[:-1] + b',"calls":[%b]}' % b",".join(further)


def quoted(value: object) -> bytes:
    """Return a value as JSON."""
    return msgspec.json.encode(value)


WORDS = "export the amber report of repository issues and send a message about delta basalt "
QUERY = '{"query":%s}'
NEEDS = (b"a", b"b", b"c", b"d", b"e", b"f", b"g", b"h", b"i", b"j")

DISCOVER = (
    discover("a query of 6,000 characters", lambda: b'{"query":%b}' % quoted((WORDS * 80)[:6000])),
    discover("a query of 6,000 characters, no word twice", lambda: b'{"query":"%b"}' % filled(b"w%d", 6000, b" ")),
    discover("a query of 4 MB", lambda: b'{"query":"%b"}' % (b"word " * (BODY // 5))),
    discover("400,000 servers", lambda: b'{"query":"x","servers":[%b]}' % filled(b'"server%d"')),
    discover("100 servers", lambda: b'{"query":"export report","servers":[%b]}' % filled(b'"ordinary%d"', 1400)),
    discover("as many servers as are read", lambda: b'{"query":"x","servers":[%b]}' % allowed(b'"server%06d"')),
    discover("a query of as many lists as are read", lambda: b'{"query":[%b]}' % allowed(b"[]")),
    discover("600,000 kinds", lambda: b'{"query":"x","kinds":[%b]}' % filled(b'"tool"')),
    discover("a query of a million lists", lambda: b'{"query":[%b]}' % lists()),
    discover("330,000 members", lambda: b'{"query":"x",%b}' % members()),
    discover("an integer of 5,000 digits", b'{"query":"export report","limit":1%b}' % (b"0" * 5000)),
    discover(
        "ten needs of 600 characters, no word twice",
        lambda: b'{"queries":[%b]}' % b",".join(b'"%b"' % filled(b"w%d" + place, 600, b" ") for place in NEEDS),
    ),
    discover(
        "ten lists of everything, limit 50",
        lambda: b'{"limit":50,"kinds":["all"],"queries":["*",%b]}' % filled(b'"ordinary%d:*"', 140),
    ),
    discover(
        "paths whose schema has 1 MB",
        lambda: (
            b'{"queries":[%b]}' % b",".join(b'"bombs%bhuge"' % between for between in (b":", b"/", b".", b"-", b"__"))
        ),
    ),
    discover("a million further needs", lambda: b'{"queries":[%b]}' % filled(b'"n%d"')),
    discover("everything, limit 50", b'{"query":"*","limit":50,"kinds":["all"]}'),
    discover("everything, as much as fits", b'{"query":"*","kinds":["all"]}'),
    discover("hits are schema bombs", b'{"query":"detonation chamber bomb range","limit":2}'),
    discover("a path whose schema has 1 MB", b'{"query":"bombs:huge"}'),
)

EXECUTE = (
    execute("arguments of 4 MB, one text", lambda: echo(b'{"text":"%b"}' % (b"x" * BODY))),
    execute("as many lists as are read", lambda: echo(b'{"rows":[%b]}' % allowed(b"[]"))),
    execute("as many members as are read", lambda: echo(b"{%b}" % allowed(b'"k%06d":0'))),
    execute("as many numbers as are read", lambda: echo(b'{"rows":[%b]}' % allowed(b"1"))),
    execute("as many members beside tool_path", lambda: b'{"tool_path":"worker:echo",%b}' % allowed(b'"k%06d":0')),
    execute("nested 400 levels, as often as is read", lambda: echo(b'{"a":[%b]}' % allowed(b"[" * 400 + b"]" * 400))),
    execute("a text of as many escapes as are read", lambda: echo(b'{"a":"%b"}' % (b'\\"' * (MAX_WEIGHT // 11)))),
    execute("a text of 4 MB, not ASCII", lambda: echo(b'{"a":"%b"}' % ("é" * (BODY // 2)).encode())),
    execute("arguments of 4 MB, a million lists", lambda: echo(b'{"rows":[%b]}' % lists())),
    execute("arguments of 4 MB, 330,000 members", lambda: echo(b"{%b}" % members())),
    execute("4 MB, 330,000 members beside tool_path", lambda: b'{"tool_path":"worker:echo",%b}' % members()),
    execute("4 MB, nested 900 levels", lambda: echo(b'{"a":[%b]}' % filled(b"[" * 900 + b"]" * 900))),
    execute("4 MB, nested 100,000 levels", lambda: echo(b"[" * 100_000 + b"]" * 100_000)),
    execute("4 MB as a JSON text", lambda: echo(quoted("{" + members(BODY // 2).decode() + "}"))),
    execute("4 MB as a JSON text in a text", lambda: echo(quoted(quoted('{"a":"' + "x" * BODY + '"}').decode()))),
    execute("a fence and 4 MB of spaces", lambda: echo(quoted("```json\n" + " " * (BODY - 20) + "x"))),
    execute("a Python literal of 20,000 characters", lambda: echo(quoted("{'a': [" + "-1," * 6600 + "]}"))),
    execute("a Python literal of 4 MB", lambda: echo(quoted("{'a': [" + "1," * (BODY // 2) + "]}"))),
    execute("tool_path is an object of 4 MB", lambda: b'{"tool_path":{%b},"arguments":{}}' % members()),
    execute("tool_path is a text of 4 MB", lambda: b'{"tool_path":"%b","arguments":{}}' % (b"a-" * (BODY // 2))),
    execute("the server is a list of a million", lambda: b'{"tool_path":"echo","server":[%b]}' % lists()),
    execute("a required argument is missing, 1 MB of schema", b'{"tool_path":"bombs:huge","arguments":{}}'),
    execute(
        "4 MB, and a required argument is missing",
        lambda: b'{"tool_path":"bombs:huge","arguments":{%b}}' % members(),
    ),
    execute(
        "300 arrays as texts, 4 MB",
        lambda: (
            b'{"tool_path":"bombs:wide","arguments":{%b}}'
            % b",".join(b'"p%d":"[%b]"' % (n, b"[]," * (BODY // 1000) + b"1") for n in range(300))
        ),
    ),
    execute("ten further calls, 4 MB", lambda: several(10, BODY)),
    execute("ten further calls that are the same, 4 MB", lambda: several(10, BODY, same=True)),
    execute(
        "ten further calls of as many lists as are read",
        lambda: b'{"calls":[%b]}' % b",".join([echo(b'{"rows":[%b]}' % allowed(b"[]", BODY // 11))] * 10),
    ),
    execute("a million further calls", lambda: b'{"tool_path":"worker:echo","arguments":{},"calls":[%b]}' % lists()),
    execute("as many further calls as are read", lambda: b'{"calls":[%b]}' % allowed(b"{}")),
    execute("a path that means nothing", b'{"tool_path":"nowhere:create_issue_now","arguments":{}}'),
    execute("a path without its server, 4,000 twins", b'{"tool_path":"exportreportx","arguments":{}}'),
    execute("an integer of 5,000 digits", lambda: echo(b'{"n":%b}' % (b"7" * 5000))),
    execute("4 MB of digits in a text", lambda: echo(b'{"n":"%b"}' % (b"7" * BODY))),
    other(
        "tools/call",
        "_meta of 4 MB, 330,000 members",
        lambda: b'{"name":"worker-echo","arguments":{},"_meta":{%b}}' % members(),
    ),
)

LISTS = (
    other("tools/list", "no more than four", b"{}"),
    other("resources/list", "a page of 500 long entries", b"{}"),
    other("resources/list", "a cursor of 4 MB", lambda: b'{"cursor":"%b"}' % (b"A" * BODY)),
    other("resources/templates/list", "long entries", b"{}"),
    other("prompts/list", "a page of 500 long entries", b"{}"),
    _tool("list_mcp_resources", "3,000 resources, 700 of them long", "list_mcp_resources", b"{}"),
    _tool("read_mcp_resource", "a URI of 4 MB", "read_mcp_resource", lambda: b'{"uri":"%b"}' % (b"|" * BODY)),
    _tool("read_mcp_resource", "4 MB, a million lists", "read_mcp_resource", lambda: b'{"uri":[%b]}' % lists()),
    _tool("read_mcp_resource", "contents of 16 MiB", "read_mcp_resource", b'{"uri":"library|file:///1"}'),
    _tool("read_mcp_resource", "as many contents as are read", "read_mcp_resource", b'{"uri":"shelf|file:///1"}'),
    other("resources/read", "as many contents as are read", b'{"uri":"mcp://shelf/file:///1"}'),
    other("resources/read", "contents of 16 MiB", b'{"uri":"library|file:///1"}'),
    other("prompts/get", "arguments of 4 MB", lambda: b'{"name":"library-prompt1","arguments":{%b}}' % members()),
    other(
        "completion/complete",
        "4 MB, a million lists",
        lambda: b'{"ref":{"type":"ref/prompt","name":"library-prompt1"},"argument":{"x":[%b]}}' % lists(),
    ),
)

ANSWERS = (
    execute("the answer has 16 MiB, one text", b'{"tool_path":"worker:text","arguments":{}}'),
    execute("the answer has 16 MiB, all numbers", b'{"tool_path":"worker:numbers","arguments":{}}'),
    streamed("the answer has 16 MiB, as an event", b"text"),
    streamed("the answer has 16 MiB, not ASCII, as an event", b"unicode"),
    execute(
        "ten answers of 16 MiB, one text each",
        lambda: (
            b'{"calls":[%b]}' % b",".join(b'{"tool_path":"worker:text","arguments":{"n":%d}}' % n for n in range(10))
        ),
    ),
    execute("the answer has as many numbers as are read", b'{"tool_path":"worker:allowed","arguments":{}}'),
    execute("the answer has as many members as are read", b'{"tool_path":"worker:members","arguments":{}}'),
    execute("the answer has 16 MiB, not ASCII", b'{"tool_path":"worker:unicode","arguments":{}}'),
    execute("the answer is an error of 16 MiB", b'{"tool_path":"worker:failure","arguments":{}}'),
)

SHORTENED = tuple(
    execute(f"the answer is shortened: {what}", b'{"tool_path":"reporter:%b","arguments":{}}' % name.encode())
    for name, what in REPORTS.items()
)


def part(name: str, query: str) -> Case:
    """Return a case of reading on in a shortened result."""

    async def run(scene: Scene) -> Answer:
        made = await scene.call("execute_mcp_tool", b'{"tool_path":"reporter:%b","arguments":{}}' % name.encode())
        uri = re.findall(r"mcpvisor-result://[\w-]+", made.ends)[0]
        return await scene.call("read_mcp_resource", quoted({"uri": uri + query}))

    return Case(input="read_mcp_resource", worst=f"{query[1:]} of {REPORTS[name]}", run=run)


PARTS = (
    part("wide", "?search=nowhere"),
    part("wide", "?lines=-20"),
    part("lines", "?search=nowhere"),
    part("lines", "?lines=1000000-"),
    part("json", "?path=$.rows[0:10000]"),
)

MESSAGES = (
    message(
        "a call of 1 MiB",
        lambda: request(
            "tools/call", b'{"name":"execute_mcp_tool","arguments":%b}' % echo(b'{"a":[%b]}' % lists(MESSAGE))
        ),
    ),
    message(
        "1 MiB, 80,000 members beside tool_path",
        lambda: request(
            "tools/call",
            b'{"name":"execute_mcp_tool","arguments":{"tool_path":"worker:echo",%b}}' % members(MESSAGE),
        ),
    ),
    *(
        message(f"the answer is {what}", partial(_called, b'{"tool_path":"worker:%b","arguments":{}}' % tool))
        for tool, what in ((b"text", "16 MiB of text"), (b"unicode", "16 MiB, not ASCII"), (b"allowed", "all numbers"))
    ),
    message("1 MiB, a million numbers as a batch", lambda: b"[" + filled(b"1", MESSAGE) + b"]"),
)


async def _first_status(scene: Scene) -> Answer:
    """Ask for the page right after 4,000 tools became other ones."""
    await scene.call("twins-exportreportx", b"{}")
    await trio.sleep(WALK_S / 2)
    return await scene.page("/api/status")


async def _long_list(scene: Scene) -> Answer:
    """Let a server list 31 MiB of tools in place of one."""
    _list_more(scene.directory / "lister")
    await scene.call("lister-relist", b"{}")
    return await _watched(scene, 2 * WALK_S)


async def _changed(scene: Scene) -> Answer:
    """Let all tools of a server become other ones."""
    if _list_more(scene.directory / "changer"):
        await scene.call("changer-relist", b"{}")
        await trio.sleep(2 * WALK_S)
    await scene.call("changer-relist", b"{}")
    return await _watched(scene, 2 * WALK_S)


def _list_more(directory: Path) -> bool:
    """Have a server list what it did not list at first; return whether there is anything."""
    files = [*directory.glob("later-*.json")]
    for file in files:
        file.rename(directory / f"tools-{file.stem.partition('-')[2]}.json")
    return bool(files)


async def _boast(scene: Scene) -> Answer:
    """Let a server answer the handshake with 15 MiB of capabilities."""
    (scene.directory / "boaster" / "wait").unlink()
    return await _watched(scene, WALK_S)


async def _watched(scene: Scene, seconds: float) -> Answer:
    async def pause() -> Answer:
        await trio.sleep(seconds)
        return Answer(0, "", "")

    scene.gap, answer = await scene.watch.longest(pause)
    return answer


PAGES = (
    page("/api/status", "20 servers, 10,000 tools, stderr full, 30 variables"),
    page("/api/status/debug", "20 servers, 10,000 tools, stderr full, 30 variables"),
    page("/api/tools?limit=500", "10,000 tools, 500 rows"),
    page("/api/tools?limit=500&sort_by=tokens&description=" + "word%20" * 28, "a long criterion"),
    page("/api/tokens?limit=1000", "10,000 tools, 1,000 rows"),
    page("/readyz", "20 servers"),
)


async def _exit(scene: Scene) -> Answer:
    """Let a server end that has filled its stderr with what looks like secrets."""
    return await scene.call("worker-exit", b"{}")


SERVERS = (
    Case(input="handshake", worst="capabilities of 15 MiB", run=_boast, once=True),
    Case(input="tools/list of a server", worst="31 MiB in three pages", run=_long_list, once=True),
    Case(input="tools/list of a server", worst="10,000 tools that all change at once", run=_changed),
    Case(input="exit", worst="stderr is full of what looks like secrets", run=_exit, once=True),
)


@cache
def all_cases() -> Sequence[Case]:
    """Return every input; those that change what the servers offer come last."""
    return (
        *(*DISCOVER, *EXECUTE, *LISTS, *PAGES),
        *(raw(place, found.name) for place, found in enumerate(_requests(0))),
        Case(input="/api/status", worst="the first after 4,000 twins were listed", run=_first_status),
        *(*MESSAGES, *ANSWERS, *SHORTENED, *PARTS, *CROWDS, *SERVERS),
    )
