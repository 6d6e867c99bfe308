"""What others wait for while one client or server does its worst twenty times at once, for `worst_cases`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import trio

from actors.protocol.agreement.versions import META_SUBSCRIPTION
from benchmarks.crowd import EVENTS, STREAMS
from benchmarks.worst_scene import Answer, Case, Scene, playing

TIMES = 20
MANY = 2000
LARGE_BYTES, LARGE_QUESTIONS, MANY_QUESTIONS = 2 * 1024 * 1024, 8, 300
REFERENCES, NAME_CHARS = 500, 3000
EVENT_BYTES = 250_000

_SAMPLE = b'{"jsonrpc":"2.0","id":"@ID@","method":"sampling/createMessage","params":%b}\n'
_PARAMS = b'{"_meta":{"progressToken":@TOKEN@},"maxTokens":9,"messages":[{"role":"user","content":%b}]}'
_EVENT = b'{"jsonrpc":"2.0","method":"notifications/events/%b","params":{"_meta":{"%b":@ID@},%b}}\n'
_CAPABILITIES = (
    b'{"tools":{},"resources":{"subscribe":true},"extensions":{"io.modelcontextprotocol/events":{}},"prompts":{},'
    b'"tasks":{"list":{},"requests":{"tools":{"call":{}}}}}'
)


def asker() -> dict[str, bytes]:
    """Return the files of a server that asks much, works on tasks, and tells large events; a schema costs more than it
    seems.
    """
    names = ("large", "many", "later")
    tools: list[dict[str, Any]] = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
    tools[2]["execution"] = {"taskSupport": "optional"}
    info = b'"serverInfo":{"name":"asker","version":"1"}'
    return {
        "initialize.json": b'{"protocolVersion":"2025-11-25","capabilities":%b,%b}' % (_CAPABILITIES, info),
        "tools-0.json": msgspec.json.encode({"tools": [*tools, _winding()]}),
        "events-0.json": b'{"events":[{"name":"larger","description":"d","delivery":["push"],"inputSchema":{},'
        b'"payloadSchema":{}}]}',
        "stream.json": _stream(),
        "asks-large.json": _questions(LARGE_QUESTIONS, LARGE_BYTES),
        "asks-many.json": _questions(MANY_QUESTIONS, 100),
        "answer-later.json": b'"result":{"task":{"taskId":"one","status":"working","ttl":600000,'
        b'"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z"}}',
    }


def _questions(count: int, size: int) -> bytes:
    return _SAMPLE % (_PARAMS % (b'{"type":"text","text":"%b"}' % (b"x" * size))) * count


def _stream() -> bytes:
    """A stream that is confirmed, and tells some large events at once."""
    data = b'"name":"large","timestamp":"2026-11-30T00:00:00Z","cursor":"1","data":{"x":"%b"}' % (b"x" * EVENT_BYTES)
    told = [(b"active", b'"cursor":"0","truncated":false')]
    told += [(b"event", b'"eventId":"%d",%b' % (number, data)) for number in range(EVENTS)]
    return b"".join(_EVENT % (kind, META_SUBSCRIPTION.encode(), params) for kind, params in told)


def _winding() -> dict[str, Any]:
    """A tool whose many references lead to one that is as long as the rest of its schema."""
    name = "A" * NAME_CHARS
    schema = {
        "type": "object",
        "properties": {f"p{number}": {"$ref": "#/$defs/a"} for number in range(REFERENCES)},
        "$defs": {"a": {"$ref": "#/$defs/" + "%41" * NAME_CHARS}, name: {"type": "string"}},
    }
    return {"name": "winding", "description": "Unfold the winding catacomb.", "inputSchema": schema}


async def _crowd(scene: Scene, kind: str) -> Answer:
    """Measure the loop while a crowd does something."""
    command = [sys.executable, "-m", "benchmarks.crowd", kind, str(scene.port), str(TIMES)]
    process = await trio.lowlevel.open_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None

    async def work() -> Answer:
        await stdin.send_all(b"\n")
        return Answer(0, await said(), "")

    async def said() -> str:
        line = b""
        while not line.endswith(b"\n") and (more := await stdout.receive_some(64)):
            line += more
        return line.decode()

    try:
        await said()
        scene.gap, answer = await scene.watch.longest(work)
        await stdin.aclose()
        await process.wait()
        return answer
    finally:
        process.kill()


async def _polled(scene: Scene) -> Answer:
    """Measure a daemon of its own, which has very many servers."""
    resting = {f"resting{number}": {"command": sys.executable, "disabled": True} for number in range(MANY)}
    with tempfile.TemporaryDirectory(prefix="many-servers-") as directory:
        async with playing(Path(directory), resting, 0) as many:
            answer = await _crowd(many, "polls")
            scene.gap = many.gap
    return answer


WORDS = {
    "samples": f"each asked {LARGE_QUESTIONS} samples of 2 MiB, and made again without an answer",
    "asks": f"each asked {MANY_QUESTIONS} samples, of which none is answered",
    "searches": "searches that show a schema whose references cost much",
    "subscriptions": "sessions, each subscribed to 60 resources with addresses of 4 kB",
    "tasks": "sessions, each with 100 tasks",
    "streams": f"each with {STREAMS} streams that read {EVENTS} events of 250 kB",
}
SOCKETS = {
    "stay": "that say nothing, for 25 s",
    "speak": "that ask something at once",
    "leave": "that go at once",
}
CROWDS: Sequence[Case] = (
    *(Case(input=f"{TIMES} at once", worst=worst, run=partial(_crowd, kind=kind)) for kind, worst in WORDS.items()),
    *(
        Case(input="3,000 WebSockets", worst=worst, run=partial(_crowd, kind=kind), once=kind == "stay")
        for kind, worst in SOCKETS.items()
    ),
    Case(input=f"{TIMES} at once", worst=f"polls of the status of {MANY:,} servers", run=_polled),
)
