"""A front server inside a test: our `serve` over real sockets on a free port, and bytes to talk to it."""

from __future__ import annotations

import base64
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio
from quart_trio import QuartTrio
from trio.testing import wait_all_tasks_blocked

import supervisor.front.application  # noqa: F401 - marks what performs each operation
from supervisor.config import Settings
from supervisor.front.admission import Admission
from supervisor.front.dispatch import AtDoor, Dispatch
from supervisor.front.edge.budget import Budget
from supervisor.front.edge.connection import Handler
from supervisor.front.edge.listening import open_sockets
from supervisor.front.edge.request import BodyLimits, HttpRequest
from supervisor.front.edge.serve import Certificates, serve
from supervisor.front.edge.websocket import Handshake
from supervisor.front.edge.wire import ConnectionCounters, EdgeState
from supervisor.front.guard import CrossOrigin, Guard, TrustedProxies
from supervisor.front.pages.app import Pages, create_app
from supervisor.metrics.meters import Meters

BODIES = BodyLimits(64 * 1024 * 1024, 30.0)


class Started:
    """A task status that can be waited for beside the task's own end."""

    def __init__(self) -> None:
        self._event = trio.Event()
        self._urls: list[str] = []

    def started(self, value: list[str] | None = None) -> None:
        self._urls = value or []
        self._event.set()

    async def urls(self) -> list[str]:
        with trio.fail_after(30):
            await self._event.wait()
        return self._urls


class Running:
    """A server under test and how to talk to it in bytes."""

    def __init__(self, port: int, closing: trio.Event, counters: ConnectionCounters) -> None:
        self.port = port
        self.closing = closing
        self.counters = counters
        self.stopped = trio.Event()

    @property
    def host(self) -> bytes:
        return b"Host: 127.0.0.1:%d\r\n" % self.port

    async def connect(self) -> trio.SocketStream:
        return await trio.open_tcp_stream("127.0.0.1", self.port)

    async def exchange(self, *parts: bytes) -> bytes:
        """Send on a connection of its own and read until it is closed."""
        async with await self.connect() as stream:
            for part in parts:
                await stream.send_all(part)
            return await read_all(stream)

    async def answers(self) -> bool:
        return (await self.exchange(b"GET / HTTP/1.1\r\n" + self.host + b"Connection: close\r\n\r\n")).startswith(
            b"HTTP/1.1 200"
        )

    def upgrade(self, extra: bytes = b"") -> bytes:
        key = base64.b64encode(b"0123456789abcdef")
        head = b"GET /ws HTTP/1.1\r\n" + self.host + b"Upgrade: websocket\r\nConnection: Upgrade\r\n"
        return head + b"Sec-WebSocket-Key: " + key + b"\r\nSec-WebSocket-Version: 13\r\n\r\n" + extra


def frame(payload: bytes = b"", opcode: int = 0x81) -> bytes:
    """One frame of a client, masked with zeros; `opcode` with the bit that says it is the last one."""
    size = len(payload)
    if size < 126:
        length = bytes([0x80 | size])
    else:
        length = b"\xfe" + size.to_bytes(2, "big") if size < 65536 else b"\xff" + size.to_bytes(8, "big")
    return bytes([opcode]) + length + b"\0" * 4 + payload


class Ticker:
    """Takes its turn again and again; `longest_ms` is the most work of the loop it had to wait for.

    Measured in processor time of this thread, so that it does not matter what else the machine does.
    """

    def __init__(self) -> None:
        self.longest_ms = 0.0

    async def run(self) -> None:
        while True:
            begun = time.thread_time()
            await trio.lowlevel.checkpoint()
            self.longest_ms = max(self.longest_ms, (time.thread_time() - begun) * 1000)


async def until(condition: Callable[[], object]) -> None:
    """Wait until something is so that nobody tells of."""
    with trio.fail_after(30):
        while not condition():
            await wait_all_tasks_blocked(0.005)


async def read_all(stream: trio.SocketStream) -> bytes:
    data = bytearray()
    with trio.fail_after(30):
        try:
            while part := await stream.receive_some(65536):
                data += part
        except trio.BrokenResourceError:
            pass
    return bytes(data)


async def plain(request: HttpRequest) -> None:
    """Answer GET at once, read what is posted, tell the length of the messages of a WebSocket."""
    if request.is_websocket:
        await measure(request)
        return
    if request.method == "POST":
        await request.body(BODIES)
    await request.answer(200, b"ok")


async def measure(request: HttpRequest) -> None:
    """Accept a WebSocket and tell the length of each of its messages."""
    socket = await Handshake(request).accept(None)
    while (message := await socket.receive()) is not None:
        await socket.send(str(len(message)))


async def nothing_here(request: HttpRequest) -> None:
    await request.fail(404, "nothing is here")


def dispatch(
    register: Callable[[QuartTrio], object] = lambda app: None,
    *,
    mcp_http: AtDoor | None = None,
    mcp_websocket: AtDoor | None = None,
    page_sockets: Handler = nothing_here,
    event_streams: Handler = nothing_here,
    host: str = "127.0.0.1",
    bodies: BodyLimits = BODIES,
    gate: Admission | None = None,
    proxies: TrustedProxies | None = None,
    only_proxies: bool = False,
) -> Dispatch:
    """What the daemon serves with: the guard, MCP, and the pages that are registered."""

    async def no_mcp(door: str, request: HttpRequest) -> None:
        await nothing_here(request)

    app = create_app()
    register(app)
    pages = Pages(app, bodies)
    doors = mcp_http or no_mcp, mcp_websocket or no_mcp
    return Dispatch(
        Guard(host, []),
        gate,
        *doors,
        pages,
        page_sockets,
        event_streams,
        cross_origin=CrossOrigin(()),
        meters=Meters(),
        proxies=proxies,
        only_proxies=only_proxies,
    )


@asynccontextmanager
async def running(
    handler: Handler = plain,
    closing: trio.Event | None = None,
    budget: Budget | None = None,
    grace_s: float = 0.2,
    certificates: Certificates | None = None,
    **settings: Any,
) -> AsyncIterator[Running]:
    counters = ConnectionCounters()
    closing = trio.Event() if closing is None else closing
    sockets = open_sockets("127.0.0.1:0", 5.0)
    async with trio.open_nursery() as nursery:
        port = sockets[0].getsockname()[1]
        server = Running(port, closing, counters)

        started = Started()

        async def run() -> None:
            state = EdgeState(counters, budget or Budget())
            state.opened.set()
            await serve(
                handler,
                sockets,
                Settings(**settings),
                closing,
                grace_s=grace_s,
                state=state,
                certificates=certificates,
                task_status=started,
            )
            server.stopped.set()

        nursery.start_soon(run)
        assert await started.urls() == [f"{'http' if certificates is None else 'https'}://127.0.0.1:{port}"]
        yield server
        closing.set()
        with trio.fail_after(30):
            await server.stopped.wait()
