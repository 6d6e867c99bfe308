"""A whole daemon under the worst load that is allowed, and how long its loop stands still for one request.

The daemon runs in this process, on the loop that is measured; its servers (`worst_server`) and its client (`sender`)
are processes of their own. A `Case` does one thing to the `Scene`. What is noted is the longest gap between two turns
of a task that sleeps a millisecond again and again, and how much of the longest gap this process was computing: on a
machine that does other things as well, the rest is the machine's.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import trio

from benchmarks.machine import ROOT
from supervisor.config import load
from supervisor.daemon import Daemon
from supervisor.front.edge.listening import open_sockets
from supervisor.host.datadir import open_data_dir
from supervisor.host.pauses import short_pauses

TICK_S = 0.001
SETTLE_S = 0.05
READY_S = 60.0
QUIET_MS = 4.0
TCP_USER_TIMEOUT_S = 5.0
SETTINGS = {"log_level": "error", "max_connections": 4000}


class Answer(msgspec.Struct, frozen=True):
    """How many bytes came back, and the first of them as text."""

    bytes: int
    begins: str
    ends: str

    @property
    def word(self) -> str:
        """Return what kind of answer it is, in a word or two."""
        body = self.begins.partition("\r\n\r\n")[2] or self.begins
        if '"error":{"code":' in body:
            return body.partition('"error":{"code":')[2].partition(",")[0]
        if "jsonrpc" in body:
            return "isError" if '"isError":true' in body else "result"
        if self.begins.startswith("HTTP/"):
            return self.begins[9:12]
        # Frames of a WebSocket: what is readable of them, such as the reason of a close frame.
        readable = "".join(char for char in self.begins[:30] if char.isascii() and char.isprintable() and char != "|")
        return readable.strip() or ("frames" if self.begins else "")


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One row: an input, its worst allowed form, and what does it once. `once`: it cannot be repeated."""

    input: str
    worst: str
    run: Callable[[Scene], Awaitable[Answer]]
    once: bool = False


class Gap(msgspec.Struct, frozen=True, order=True):
    """By how much the loop was late, and how long this process computed meanwhile, in ms."""

    computing_ms: float = 0.0
    late_ms: float = 0.0


class Watch:
    """Notes the longest gap while somebody looks."""

    def __init__(self) -> None:
        self._longest: Gap | None = None

    async def run(self) -> None:
        """Tick for ever."""
        while True:
            begun, computed = time.perf_counter(), time.process_time()
            await trio.sleep(TICK_S)
            late, computing = time.perf_counter() - begun - TICK_S, time.process_time() - computed
            if self._longest is not None:
                late_ms = max(0.0, late * 1000)
                self._longest = max(self._longest, Gap(min(late_ms, computing * 1000), late_ms))

    async def longest(self, work: Callable[[], Awaitable[Answer]]) -> tuple[Gap, Answer]:
        """Return the longest gap while something is done, and the answer."""
        await trio.sleep(SETTLE_S)  # what went before is over
        self._longest = Gap()
        try:
            answer = await work()
            await trio.sleep(5 * TICK_S)
            return self._longest, answer
        finally:
            self._longest = None


class Scene:
    """A running daemon, and somebody who sends it things. `gap` is the longest one while the last thing was done."""

    def __init__(self, port: int, directory: Path, sender: trio.Process) -> None:
        self.watch = Watch()
        self.gap = Gap()
        self.port = port
        self.directory = directory
        self._sender = sender
        self._rest = b""

    async def post(self, body: bytes, accept: str = "application/json, text/event-stream") -> Answer:
        """Send one HTTP POST of MCP and return its answer."""
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nContent-Type: application/json\r\n"
            f"Accept: {accept}\r\nMCP-Protocol-Version: 2025-11-25\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        return await self.send(head.encode() + body)

    async def page(self, path: str) -> Answer:
        """Ask for a page."""
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nConnection: close\r\n\r\n"
        return await self.send(head.encode())

    async def message(self, data: bytes) -> Answer:
        """Send one WebSocket message (RFC 6455 section 5.2; a mask of zeros changes nothing)."""
        return await self.send(b"\x81\xff" + len(data).to_bytes(8, "big") + b"\0\0\0\0" + data, websocket=True)

    async def send(self, data: bytes, *, websocket: bool = False, opening: str | None = None) -> Answer:
        """Send bytes on a connection of their own and return what comes back; for the two others see `sender`."""
        file = self.directory / "request"
        file.write_bytes(data)
        order = {"port": self.port, "file": str(file), "websocket": websocket, "opening": opening}
        self.gap, answer = await self.watch.longest(lambda: self._sent(order))
        return answer

    async def _sent(self, order: dict[str, Any]) -> Answer:
        assert self._sender.stdin is not None
        assert self._sender.stdout is not None
        await self._sender.stdin.send_all(msgspec.json.encode(order) + b"\n")
        while b"\n" not in self._rest:
            self._rest += await self._sender.stdout.receive_some()
        line, _, self._rest = self._rest.partition(b"\n")
        return msgspec.json.decode(line, type=Answer)

    async def call(self, name: str, arguments: bytes, *, method: str = "tools/call") -> Answer:
        """Call a tool of ours with arguments that are JSON text."""
        return await self.post(request(method, b'{"name":"%b","arguments":%b}' % (name.encode(), arguments)))


def request(method: str, params: bytes) -> bytes:
    """Return the bytes of a request with params that are JSON text."""
    return b'{"jsonrpc":"2.0","id":1,"method":"%b","params":%b}' % (method.encode(), params)


def write_server(directory: Path, files: Mapping[str, bytes]) -> dict[str, Any]:
    """Write what a server answers with, and return its entry in the configuration."""
    directory.mkdir(parents=True)
    for name, data in files.items():
        (directory / name).write_bytes(data)
    return {"command": sys.executable, "args": [str(ROOT / "benchmarks" / "worst_server.py"), str(directory)]}


@asynccontextmanager
async def playing(directory: Path, servers: Mapping[str, Any], tools: int) -> AsyncIterator[Scene]:
    """Run the daemon with these servers; entered once it has so many tools. Ends everything at the end of the block."""
    file = directory / "mcp.json"
    file.write_bytes(msgspec.json.encode({"mcpServers": servers, "supervisor": SETTINGS}))
    with open_data_dir(directory / "data", {}) as data, short_pauses():
        daemon = Daemon(load(file, dict(os.environ)), data, open_sockets("127.0.0.1:0", TCP_USER_TIMEOUT_S))
        async with trio.open_nursery() as nursery:
            (url,) = await nursery.start(daemon.run)
            sender = await nursery.start(_sender)
            scene = Scene(int(url.rpartition(":")[2]), directory, sender)
            with trio.fail_after(READY_S):
                while await _tools(scene) < tools:  # noqa: ASYNC110 - it is another process that is asked
                    await trio.sleep(0.5)
            gc.collect()  # what made the scene is no part of a daemon
            nursery.start_soon(scene.watch.run)
            await _settled(scene)
            yield scene
            sender.terminate()
            daemon.closing.set()
            nursery.cancel_scope.deadline = trio.current_time() + READY_S


async def _settled(scene: Scene) -> None:
    """Wait until all tools are counted and stored: that goes on beside whatever is asked, and is a row of its own."""

    async def second() -> Answer:
        await trio.sleep(1.0)
        return Answer(0, "", "")

    with trio.move_on_after(READY_S):
        while (await scene.watch.longest(second))[0].late_ms > QUIET_MS:
            pass


async def _sender(*, task_status: trio.TaskStatus[trio.Process]) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "sender.py")]
    process = await trio.lowlevel.open_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    task_status.started(process)
    await process.wait()


async def _tools(scene: Scene) -> int:
    """Return how many tools there are."""
    answer = await scene.page("/api/tokens?limit=1")
    return int(answer.ends.rpartition('"total":')[2].partition(",")[0])
