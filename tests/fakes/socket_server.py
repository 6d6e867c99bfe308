"""A fake server behind WebSockets, over real sockets: what is behind each is a function of the memory transport."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

import trio
from trio_websocket import ConnectionClosed, WebSocketConnection, WebSocketRequest, serve_websocket

from actors.kit.nursery import background
from tests.fakes.lines import Lines
from tests.fakes.memory import MemoryPeer


@dataclass
class SocketServer:
    """`reject`: the status with which it refuses every WebSocket. `subprotocol`: the one it chooses.

    `largest`: what it takes, in characters.
    """

    serve: Callable[[MemoryPeer], Awaitable[int]]
    reject: int = 0
    subprotocol: str | None = "mcp"
    largest: int = 1024 * 1024
    requests: list[WebSocketRequest] = field(default_factory=list)
    sockets: list[WebSocketConnection] = field(default_factory=list)
    url: str = ""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[SocketServer]:
        """Listen for the block."""
        async with background() as nursery:
            serve = partial(serve_websocket, self._converse, "127.0.0.1", 0, None, max_message_size=self.largest)
            server = await nursery.start(serve)
            self.url = f"ws://127.0.0.1:{server.port}/mcp?a=1"
            try:
                yield self
            finally:
                nursery.cancel_scope.cancel()

    async def _converse(self, request: WebSocketRequest) -> None:
        self.requests.append(request)
        if self.reject:
            await request.reject(self.reject, body=b"sk-secret")
            return
        socket = await request.accept(subprotocol=self.subprotocol)
        self.sockets.append(socket)
        peer = MemoryPeer()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._hear, socket, peer)
                nursery.start_soon(self._say, socket, peer)
                await self.serve(peer)
                with trio.move_on_after(1):
                    await socket.aclose()
                nursery.cancel_scope.cancel()
        finally:
            await trio.aclose_forcefully(socket._stream)

    async def _hear(self, socket: WebSocketConnection, peer: MemoryPeer) -> None:
        try:
            while True:
                message = await socket.get_message()
                assert isinstance(message, str)
                await peer._stdin.write(message.encode().replace(b"\n", b" ") + b"\n")
        except ConnectionClosed:
            peer.close_input()

    async def _say(self, socket: WebSocketConnection, peer: MemoryPeer) -> None:
        lines = Lines(peer._stdout)
        while (said := await lines.read()) is not None:
            for text in said:
                with suppress(ConnectionClosed):
                    await socket.send_message(text.decode(errors="replace"))
