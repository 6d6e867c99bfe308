"""A fake server behind Streamable HTTP, over real sockets: its faults are data, and its requests are remembered.

What is behind it is a function of the memory transport. In the legacy era each session has one of its own.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import trio

from actors.kit.nursery import background
from tests.fakes.memory import MemoryPeer, Serve

SESSION = "mcp-session-id"


@dataclass
class Request:
    """One request. `headers` have their names in lower case. `gone` is set when a fault sees that nobody waits."""

    verb: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    stream: trio.SocketStream
    gone: trio.Event = field(default_factory=trio.Event)

    @property
    def message(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self.body) if self.body else {}
        return message

    @property
    def method(self) -> str:
        return str(self.message.get("method", ""))

    async def respond(self, status: int, body: bytes = b"", kind: str = "application/json", **headers: str) -> None:
        """Send a whole answer."""
        await self.stream.send_all(head(status, {"content-type": kind, "content-length": str(len(body)), **headers}))
        await self.stream.send_all(body)

    async def begin_events(self, kind: str = "text/event-stream", **headers: str) -> None:
        """Send the head of an event stream, which ends with the connection."""
        await self.stream.send_all(head(200, {"content-type": kind, "connection": "close", **headers}))

    async def event(self, data: bytes) -> None:
        await self.stream.send_all(b"event: message\ndata: " + data + b"\n\n")

    async def left_within(self, seconds: float) -> bool:
        """Wait for the client to hang up, at most so long; return whether it did."""
        with trio.move_on_after(seconds):
            with suppress(trio.BrokenResourceError):
                await self.stream.receive_some(1)
            self.gone.set()
        return self.gone.is_set()


Fault = Callable[[Request], Awaitable[None]]
"""Answers a request in the server's place. The connection is closed afterwards."""


def head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} Whatever", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


class _Behind:
    """What is behind one session: the pair of pipes, and who waits for which answer."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.peer = MemoryPeer()
        self.calls = 0
        self.unasked_send, self.unasked = trio.open_memory_channel[bytes](100)  # noqa: TID251  (a fake)
        self._open: dict[Any, trio.MemorySendChannel[bytes]] = {}

    async def run(self, serve: Serve) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._route)
            await serve(self.peer)
            nursery.cancel_scope.cancel()

    async def _route(self) -> None:
        while data := await self.peer._stdout.read():
            for text in data.splitlines():
                if (to := self._to(json.loads(text))) is not None:
                    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):  # whoever asked is gone, or cut
                        await to.send(text)

    def _to(self, message: dict[str, Any]) -> trio.MemorySendChannel[bytes] | None:
        """Return where a message goes; None if whoever asked is gone."""
        if "method" not in message:
            return self._open.pop(message["id"], None)  # nothing more is read there behind the answer
        token = message.get("params", {}).get("progressToken")
        if token in self._open:
            return self._open[token]
        return next(iter(self._open.values())) if len(self._open) == 1 else self.unasked_send

    def cut(self) -> None:
        """Answer nothing any more."""
        for to in self._open.values():
            to.close()

    async def tell(self, body: bytes) -> None:
        await self.peer._stdin.write(body.replace(b"\n", b" ") + b"\n")

    @asynccontextmanager
    async def asked(self, request: Request) -> AsyncIterator[trio.MemoryReceiveChannel[bytes]]:
        """Pass a request on; everything that comes before its answer, and that, is read from the channel."""
        send, receive = trio.open_memory_channel[bytes](100)  # noqa: TID251  (a fake)
        id_ = request.message["id"]
        self._open[id_] = send
        with receive:
            try:
                await self.tell(request.body)
                yield receive
            finally:
                self._open.pop(id_, None)


NO_SESSION = (
    b'{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Bad Request: Missing session ID"}}'
)
"""Much as the official SDK for Python says it."""


@dataclass
class RemoteServer:
    """`faults` answer requests of a method in its place. `plain`: it answers with JSON, not with events.

    `modern`: it has no sessions. `session_calls`: after so many calls a session is forgotten; `forgotten` counts those.
    `unknown`: status, body and media type with which it refuses what is asked in a session that it does not know; the
    body may have the id of the request as `ITS ID`.
    """

    serve: Callable[[MemoryPeer], Awaitable[int]]
    faults: dict[str, Fault] = field(default_factory=dict)
    plain: bool = False
    modern: bool = False
    session_calls: int | None = None
    unknown: tuple[int, bytes, str] = (404, b"no session", "text/plain")
    forgotten: int = 0
    requests: list[Request] = field(default_factory=list)
    url: str = ""
    tls: ssl.SSLContext | None = None
    listened: trio.Event = field(default_factory=trio.Event)
    _behind: dict[str, _Behind] = field(default_factory=dict)
    _sessions: int = 0
    _arrived: trio.lowlevel.ParkingLot = field(default_factory=trio.lowlevel.ParkingLot)

    def count(self, verb: str, method: str = "") -> int:
        """How often something was asked."""
        return sum(request.verb == verb and method in ("", request.method) for request in self.requests)

    async def until(self, wanted: Callable[[Request], bool]) -> Request:
        """Wait for a request, which may have come before."""
        while True:
            for request in self.requests:
                if wanted(request):
                    return request
            await self._arrived.park()

    def become(self, *, modern: bool) -> None:
        """Be of that era from now on, as after an update."""
        self.modern = modern
        self._behind.clear()
        if modern:
            self._new("")

    @asynccontextmanager
    async def running(self, port: int = 0) -> AsyncIterator[RemoteServer]:
        """Listen for the block; at a port of an earlier one it is the same server, which is back."""
        async with background() as nursery:
            listeners = await trio.open_tcp_listeners(port, host="127.0.0.1")
            self.url = f"{'https' if self.tls else 'http'}://127.0.0.1:{listeners[0].socket.getsockname()[1]}/mcp"
            self._nursery = nursery
            if self.modern:
                self._new("")
            await nursery.start(trio.serve_listeners, self._secured if self.tls else self._converse, listeners)
            try:
                yield self
            finally:
                nursery.cancel_scope.cancel()

    def restart(self, *, cuts: bool = False) -> None:
        """Know no session any more. `cuts`: nor answer what was asked in one."""
        for behind in self._behind.values() if cuts else ():
            behind.cut()
        self._behind.clear()

    async def _unknown(self, request: Request) -> None:
        status, body, kind = self.unknown
        id_ = json.dumps(request.message.get("id")).encode()
        await request.respond(status, body.replace(b"ITS ID", id_), kind)

    def _new(self, session: str) -> _Behind:
        self._behind[session] = behind = _Behind(session)
        self._nursery.start_soon(behind.run, self.serve)
        return behind

    async def _secured(self, stream: trio.SocketStream) -> None:
        assert self.tls is not None
        with suppress(trio.BrokenResourceError):  # who does not trust us goes
            secured = trio.SSLStream(stream, self.tls, server_side=True, https_compatible=True)
            await secured.do_handshake()
            await self._converse(secured)  # type: ignore[arg-type]  # used as a stream of bytes only
        await trio.aclose_forcefully(stream)

    async def _converse(self, stream: trio.SocketStream) -> None:
        try:
            while (request := await read_request(stream)) is not None:
                self.requests.append(request)
                self._arrived.unpark_all()
                fault = self.faults.get(request.method) or self.faults.get(request.verb)
                if fault is not None:
                    await fault(request)
                    return
                if not await self._answer(request):
                    return
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            await trio.aclose_forcefully(stream)

    async def _answer(self, request: Request) -> bool:
        """Answer one request; return whether the connection can go on."""
        if request.method == "initialize" and not self.modern:
            self._sessions += 1
            behind = self._new(f"session-{self._sessions}")
        else:
            found = self._behind.get(request.headers.get(SESSION, ""))
            if found is None:
                if SESSION in request.headers:
                    await self._unknown(request)
                else:
                    await request.respond(400, NO_SESSION)
                return True
            behind = found
        if request.verb == "DELETE":
            del self._behind[behind.session]
            await request.respond(200)
            return True
        if request.verb == "GET":
            if self.modern or self.plain:
                await request.respond(405)
                return True
            await request.begin_events()
            self.listened.set()
            async for text in behind.unasked:
                await request.event(text)
            return False
        return await self._post(request, behind)

    async def _post(self, request: Request, behind: _Behind) -> bool:
        if "id" not in request.message or not request.method:
            await behind.tell(request.body)
            await request.respond(202)
            return True
        if request.method == "tools/call" and self.session_calls is not None:
            behind.calls += 1
            if behind.calls > self.session_calls:
                self.forgotten += self._behind.pop(behind.session, None) is not None
                await self._unknown(request)
                return True
        session = {"mcp_session_id": behind.session} if behind.session else {}
        async with behind.asked(request) as said:
            if self.plain:
                text = b""
                while not text or b'"method"' in text:
                    text = await said.receive()
                await request.respond(200, text, **session)
                return True
            await request.begin_events(**session)
            async for text in said:
                await request.event(text)
                if b'"method"' not in text:
                    break
        return False


async def read_request(stream: trio.SocketStream) -> Request | None:
    """Read one request; None at the end of the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = await stream.receive_some(65536)
        if not part:
            return None
        data += part
    start, _, body = data.partition(b"\r\n\r\n")
    first, *lines = start.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        if not (part := await stream.receive_some(65536)):
            return None
        body += part
    verb, path, _ = first.split(" ")
    return Request(verb, path, headers, body, stream)
