"""What others wait for while one remote server does its worst twenty times at once, for `worst_cases`.

The server is a process of its own (`hostile_remote`); twenty clients call a tool of it again and again. What is noted
beside the longest gap of the loop is how long a health check takes meanwhile, from its connection to its answer.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import trio

from benchmarks.hostile_remote import ATTACKS
from benchmarks.machine import ROOT
from benchmarks.table import percentile
from benchmarks.worst_scene import Answer, Case, Scene, request

CALLS = 20
SECONDS = 3.0
PAUSE_S = 0.01
AGAIN_S = 0.1
"""After its end a call is made again."""


@asynccontextmanager
async def hostile() -> AsyncIterator[dict[str, Any]]:
    """Run the server for the block; its entry in the configuration."""
    command = [sys.executable, str(ROOT / "benchmarks" / "hostile_remote.py")]
    async with trio.open_nursery() as nursery:
        process = await trio.lowlevel.open_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        nursery.start_soon(process.wait)
        assert process.stdout is not None
        port = int(await process.stdout.receive_some(64))
        yield {"hostile": {"url": f"http://127.0.0.1:{port}/mcp", "max_restarts": 0}}
        process.kill()


async def _asked(port: int, data: bytes) -> bytes:
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    async with stream:
        await stream.send_all(data)
        return bytes(await stream.receive_some(65_536))


async def _call(scene: Scene, tool: str) -> None:
    arguments = b'{"tool_path":"hostile:%b","arguments":{}}' % tool.encode()
    body = request("tools/call", b'{"name":"execute_mcp_tool","arguments":%b}' % arguments)
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{scene.port}\r\nContent-Type: application/json\r\n"
        "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    while True:
        with suppress(OSError, trio.BrokenResourceError):
            await _asked(scene.port, head.encode() + body)
        await trio.sleep(AGAIN_S)


async def _waits(port: int, seconds: float) -> list[float]:
    """Return how long each health check took, in ms."""
    out: list[float] = []
    end = trio.current_time() + seconds
    while trio.current_time() < end:
        begun = trio.current_time()
        await _asked(port, f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
        out.append((trio.current_time() - begun) * 1000)
        await trio.sleep(PAUSE_S)
    return out


async def _attacked(scene: Scene, tool: str) -> Answer:
    async def work() -> Answer:
        async with trio.open_nursery() as nursery:
            for _ in range(CALLS):
                nursery.start_soon(_call, scene, tool)
            await trio.sleep(SECONDS / 10)
            waits = sorted(await _waits(scene.port, SECONDS))
            nursery.cancel_scope.cancel()
        text = f"others wait {percentile(waits, 0.5):.1f}, p99 {percentile(waits, 0.99):.1f} ms"
        return Answer(0, text, "")

    scene.gap, answer = await scene.watch.longest(work)
    return answer


WORDS = {
    "interim": "answers of 1xx without end",
    "lines": "heads of 4,000 lines",
    "nothing": "events of empty lines",
    "comments": "comments without end",
    "empty": "events without data",
    "notes": "log messages without end",
    "chunks": "chunks of one byte",
    "event-chunks": "an event stream in chunks of one byte",
    "bomb": "a gzip bomb",
    "event-bomb": "a gzip bomb of empty events",
}
REMOTES: Sequence[Case] = tuple(
    Case(input=f"{CALLS} calls of one remote server", worst=WORDS[tool], run=partial(_attacked, tool=tool))
    for tool in ATTACKS
)
