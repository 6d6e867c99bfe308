"""A fake server behind HTTP+SSE, over real sockets: its faults are data, and its requests are remembered.

What is behind it is a function of the memory transport, anew for each stream.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import trio

from actors.kit.nursery import background
from tests.fakes.lines import Lines
from tests.fakes.memory import MemoryPeer
from tests.fakes.remote_server import Fault, Request, read_request


@dataclass
class SseServer:
    """`faults` answer requests of a verb or a method in its place. `endpoint`: where it says that messages go."""

    serve: Callable[[MemoryPeer], Awaitable[int]]
    faults: dict[str, Fault] = field(default_factory=dict)
    endpoint: str = "/messages?session="
    requests: list[Request] = field(default_factory=list)
    url: str = ""
    _peers: dict[str, MemoryPeer] = field(default_factory=dict)
    _streams: list[trio.SocketStream] = field(default_factory=list)

    def count(self, verb: str, method: str = "") -> int:
        """How often something was asked."""
        return sum(request.verb == verb and method in ("", request.method) for request in self.requests)

    def cut(self) -> None:
        """Close every stream."""
        for stream in self._streams:
            stream.socket.close()
        self._streams.clear()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[SseServer]:
        """Listen for the block."""
        async with background() as nursery:
            listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
            self.url = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}/sse"
            await nursery.start(trio.serve_listeners, self._converse, listeners)
            try:
                yield self
            finally:
                nursery.cancel_scope.cancel()

    async def _converse(self, stream: trio.SocketStream) -> None:
        try:
            while (request := await read_request(stream)) is not None:
                self.requests.append(request)
                fault = self.faults.get(request.method) or self.faults.get(request.verb)
                if fault is not None:
                    await fault(request)
                    return
                if request.verb == "GET":
                    await self._listened(request)
                    return
                peer = self._peers.get(request.path.partition("=")[2])
                if request.verb != "POST" or peer is None:
                    await request.respond(405 if request.path == "/sse" else 404, b"no", "text/plain")
                    continue
                await peer._stdin.write(request.body.replace(b"\n", b" ") + b"\n")
                await request.respond(202, b"Accepted", "text/plain")
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            await trio.aclose_forcefully(stream)

    async def _listened(self, request: Request) -> None:
        session = str(len(self.requests))
        self._peers[session] = peer = MemoryPeer()
        self._streams.append(request.stream)
        try:
            await request.begin_events()
            await request.stream.send_all(f"event: endpoint\ndata: {self.endpoint}{session}\n\n".encode())
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._say, request, peer)
                nursery.start_soon(self._until_gone, request.stream, nursery.cancel_scope)
                await self.serve(peer)
                nursery.cancel_scope.cancel()
        except* (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            peer.close_input()
            del self._peers[session]

    async def _say(self, request: Request, peer: MemoryPeer) -> None:
        lines = Lines(peer._stdout)
        while (said := await lines.read()) is not None:
            for text in said:
                await request.event(text)

    async def _until_gone(self, stream: trio.SocketStream, scope: trio.CancelScope) -> None:
        try:
            await stream.receive_some(1)
        finally:
            scope.cancel()
