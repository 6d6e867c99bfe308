"""A stdio MCP server that fails on request, and keeps a ledger of what it ran: `fault_server.py NAME LEDGER [VARIANT]`.

A call says what is to go wrong: its tool is `echo`, `ask`, `storm` or `fault`, and `fault` takes the name of one of
`FAULTS`. Each of them has the rows of the fault catalogue that it plays: S is what a server writes, P what becomes of
its process. The ledger is a file of JSON lines that all servers append to, with the time of the system's monotonic
clock, which all processes share. Standard library only. `Player` plays the same for the fake transports.

A VARIANT is in the name of a tool, so that a list says which one it is of; `looping` ends as soon as it was greeted.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
FORM = {"type": "object", "properties": {"who": {"type": "string"}}}
META = "io.modelcontextprotocol/"
COMPLETE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
CHANGED = {"method": "notifications/tools/list_changed"}
LOOPING = "looping"
SECRET = "API_TOKEN"
"""The variable with what nobody may ever see."""
STORM = 200

Json = dict[str, Any]
Step = bytes | float
"""Bytes to write, or seconds to wait."""


class Ledger:
    """What ran, in a file; each line is one write, which other processes do not cut."""

    def __init__(self, path: str, server: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._server = server

    def note(self, what: str, key: str = "") -> None:
        entry = {"what": what, "server": self._server, "pid": os.getpid(), "at_s": time.monotonic(), "key": key}
        os.write(self._file, json.dumps(entry).encode() + b"\n")

    def close(self) -> None:
        os.close(self._file)


def line(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n"


class Due:
    """The answer to a call that is due: its id, its result, that as a text, and all of it as a line."""

    def __init__(self, id_: Any, result: Json) -> None:
        self.id = id_
        self.result = result
        self.text = json.dumps(result).encode()
        self.whole = line(id=id_, result=result)

    def nested(self, value: bytes) -> bytes:
        """Return the answer with JSON of any kind in it."""
        return self.whole.removesuffix(b"}}\n") + b', "_meta": {"x": ' + value + b"}}}\n"


def _pieces(due: Due) -> Iterator[Step]:
    third = len(due.whole) // 3
    yield due.whole[:third]
    yield 0.01
    yield due.whole[third : 2 * third]
    yield 0.01
    yield due.whole[2 * third :]


def _exit(_: Due) -> Iterator[Step]:
    yield b""
    raise SystemExit(3)


def _close_output(due: Due) -> Iterator[Step]:
    os.close(1)
    yield 60.0


def _stderr(due: Due) -> Iterator[Step]:
    os.write(2, (os.environ.get(SECRET, "") + " is no secret here\n").encode() * 200)
    os.write(2, b"\xff\x00\x1b[31m\n")
    yield due.whole


def _tells_secret(due: Due) -> Iterator[Step]:
    text = f"denied for {os.environ.get(SECRET, '')}"
    yield line(id=due.id, error={"code": -32050, "message": text, "data": {"token": os.environ.get(SECRET, "")}})


def writes(*parts: Callable[[Due], bytes] | bytes) -> Callable[[Due], Iterator[Step]]:
    """Write these one after the other; a function makes its part of the answer."""

    def fault(due: Due) -> Iterator[Step]:
        for part in parts:
            yield part if isinstance(part, bytes) else part(due)

    return fault


def whole(due: Due) -> bytes:
    return due.whole


FAULTS: dict[str, tuple[str, Callable[[Due], Iterator[Step]]]] = {
    "noise": ("S01 S02", writes(b"Ready!\n\n{...\n[1]\n\x1b[31m\n\0\n", whole)),
    "log-objects": ("S02", writes(b'{"level": "info", "id": 1}\n7\n', whole)),
    "binary": ("S03", writes(b"\xff\xfe{\x00}\x00\n", whole)),
    "bad-utf8": ("S03", writes(lambda due: due.whole.replace(b'"text"', b'"te\xff"'))),
    "mark": ("S04", writes(lambda due: b"\xef\xbb\xbf" + due.whole)),
    "too-long": ("S06", writes(lambda due: due.nested(b'"' + b"x" * 1_200_000 + b'"'))),
    "pieces": ("S07", _pieces),
    "half": ("S08 S09", writes(lambda due: due.whole[:20])),
    "pretty": ("S10", writes(lambda due: json.dumps(json.loads(due.whole), indent=1).encode() + b"\n")),
    "two-in-a-line": ("S10", writes(lambda due: due.whole[:-1] + due.whole)),
    "crlf": ("S11", writes(lambda due: due.whole[:-1] + b"\r\n")),
    "deep": ("S12", writes(lambda due: due.nested(b"[" * 20_000 + b"]" * 20_000))),
    "huge-number": ("S13", writes(lambda due: due.nested(b"9" * 5000))),
    "nan": ("S14", writes(lambda due: due.nested(b"NaN"))),
    "surrogate": ("S15 S16", writes(lambda due: due.nested(b'"\\ud800 \\u0000"'))),
    "twice-a-key": (
        "S17 S18",
        writes(lambda due: due.whole[:-2] + b', "Result": {}, "ID": 7, "result": %b}\n' % due.text),
    ),
    "neither": ("S19", writes(lambda due: line(id=due.id))),
    "no-version": ("S19", writes(lambda due: json.dumps({"id": due.id, "result": due.result}).encode() + b"\n")),
    "list": ("S19 S20", writes(lambda due: b"[" + due.whole[:-1] + b"]\n")),
    "other-ids": (
        "S21 S22 S30",
        writes(line(id=True, result={}), line(id=1.0, result={}), line(id="nobody", result={}), line(result={}), whole),
    ),
    "twice": ("S23 S24", writes(whole, whole)),
    "tells-secret": ("S27", _tells_secret),
    "flood": ("S28", writes(line(method="notifications/message", params={"level": "info", "data": "x"}) * 2000, whole)),
    "asks": ("S29", writes(line(id="p", method="ping"), line(id="r", method="roots/list"), whole)),
    "stderr": ("S31", _stderr),
    "closes-output": ("S32 P03", _close_output),
    "mute": ("S34 P20", writes()),
    "exit": ("P09 P10", _exit),
}
"""What is done instead of answering a call, or around it, by name; and the rows of the catalogue that it plays."""


class Player:
    """Plays one process, or one session, of a server."""

    def __init__(self, ledger: Ledger, variant: str = "") -> None:
        self._ledger = ledger
        self._variant = variant
        self._open: dict[str, tuple[Any, Json]] = {}
        self._changes = 0
        self._owner = os.environ.get("OWNER", "")

    def take(self, data: bytes) -> Iterator[Step]:
        """Take one message. Raises `SystemExit` where the server ends."""
        message = json.loads(data)
        method, id_ = message.get("method"), message.get("id")
        if method is None and str(id_) in self._open:
            asked, result = self._open.pop(str(id_))
            yield line(id=asked, result={**result, "structuredContent": {"said": message.get("result")}})
        elif method == "notifications/initialized" and self._variant == LOOPING:
            raise SystemExit(3)
        elif method is not None and id_ is not None:
            params = message.get("params", {})
            modern = META + "protocolVersion" in params.get("_meta", {})
            if method == "tools/call":
                yield from self._called(id_, params, modern=modern)
            else:
                yield line(id=id_, **self._answer(method, modern=modern))

    def _answer(self, method: str, *, modern: bool) -> Json:
        match method:
            case "initialize":
                info = {"name": "faulty", "version": "1"}
                capabilities: Json = {"tools": {"listChanged": True}}
                result: Json = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}
            case "server/discover" if modern and self._variant == "modern":
                result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": True}}}
            case "tools/list":
                names = ["echo", "ask", "storm", "fault", f"changed_{self._changes}", f"only_{self._variant or 0}"]
                result = {"tools": [{"name": name, "inputSchema": SCHEMA} for name in names]}
            case "ping":
                result = {}
            case _:
                return {"error": {"code": -32601, "message": "Method not found"}}
        return {"result": {**COMPLETE, **result} if modern else result}

    def _called(self, id_: Any, params: Json, *, modern: bool) -> Iterator[Step]:
        text = str(params["arguments"]["text"])
        self._ledger.note("run", text.partition(" ")[0])
        said = f"{text} as {self._owner}" if self._owner else text
        result = {"content": [{"type": "text", "text": said}], **(COMPLETE if modern else {})}
        match params["name"]:
            case "ask":
                number = f"q{len(self._open)}-{text.partition(' ')[0]}"
                self._open[number] = id_, result
                question = {"mode": "form", "message": text, "requestedSchema": FORM}
                yield line(id=number, method="elicitation/create", params=question)
            case "storm":
                self._changes += 1
                yield line(**CHANGED) * STORM + line(id=id_, result=result)
            case "fault":
                yield from FAULTS[params["arguments"]["fault"]][1](Due(id_, result))
            case _:
                yield line(id=id_, result=result)


def main(name: str, path: str, variant: str = "") -> None:
    """Play on stdin and stdout until the input ends."""
    # Who starts us may have been forbidden to write files a moment ago, as on a full disk: that is not about us.
    most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    ledger = Ledger(path, name)
    ledger.note("start")
    player = Player(ledger, variant)
    for data in sys.stdin.buffer:
        for step in player.take(data):
            if isinstance(step, bytes):
                sys.stdout.buffer.write(step)
                sys.stdout.flush()
            else:
                time.sleep(step)  # noqa: TID251 - a process of its own


if __name__ == "__main__":
    main(*sys.argv[1:])
