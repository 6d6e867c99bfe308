"""The WebSocket transport: one connection is one WebSocket (RFC 6455), and both sides send text messages, each one a
message of MCP, as over the pipes of stdio.

No revision of MCP has a WebSocket transport: this is a "custom transport" (2026-07-28, basic/transports), and what the
official SDKs 1.x do.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import h11
import trio
import wsproto.utilities
from trio_websocket import ConnectionClosed, ConnectionRejected, HandshakeError, WebSocketConnection
from wsproto import ConnectionType, WSConnection
from wsproto.events import BytesMessage, Pong, TextMessage

from actors.errors import ServerExited, SpawnFailed
from actors.kit.decoding import Gathered, decode_in_thread
from actors.kit.fairness.share import LoopShare, share_of
from actors.kit.nursery import background
from actors.kit.want import first_of
from actors.protocol.wire.peer import Outgoing
from actors.protocol.wire.weight import LARGE_BYTES
from actors.transport.base import Exit
from actors.transport.border import Border
from actors.transport.http.client.verdict import UnforeseenAnswer, of_status, trusted_certificates, why
from actors.transport.http.remote import HttpLimits, Remote, server_of
from actors.transport.session import Session

PING_S = 20.0
"""How often is asked whether the other side is there: often enough for what stands between to keep the connection."""
PONG_S = 60.0
"""How long it may take to answer that: a tool may hold up its whole server meanwhile."""
FRAME_CHARS = 256 * 1024
"""Longer messages are sent in several frames."""
LAST_WORDS_S = 1.0
_CLOSED = "the connection to it is closed"
_TOO_BIG = 1009
_CAUSES = {1000: "it closed the connection", 1001: "it is going away", 1006: "the connection to it was lost"}
"""By code (RFC 6455 7.4.1). What the server says of its reasons may hold anything."""
SUBPROTOCOL = "mcp"
READ_BYTES = 256 * 1024
"""A read costs about as much whatever it brings; frames are taken apart one by one, in turns."""
_OVERHEAD = 2
"""So many times the largest message may come without one being complete: frames may be small."""
_ENDS = (ConnectionClosed, HandshakeError, wsproto.utilities.ProtocolError, h11.ProtocolError, UnicodeDecodeError)


class Meter(trio.abc.Stream):
    """The bytes of a WebSocket, counted: what is sent without ever completing a message must not pile up.

    The stream is broken once `limit` bytes came without a `reset`. `ended` is set when nothing more comes.
    `finished` is set by whoever reads it, when that is over; `failure` is then why, where nobody foresaw it.
    """

    def __init__(self, stream: trio.abc.Stream, limit: int) -> None:
        self.ended = trio.Event()
        self.finished = trio.Event()
        self.failure = ""
        self._stream = stream
        self._limit = limit
        self._count = 0

    @property
    def begun(self) -> bool:
        return self._count > 0

    def reset(self) -> None:
        """Begin to count anew: what came was of use."""
        self._count = 0

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return what comes. Raises `trio.BrokenResourceError` over the limit, and as the stream does."""
        try:
            data = bytes(await self._stream.receive_some(max_bytes))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self.ended.set()
            raise
        self._count += len(data)
        if not data or self._count > self._limit:
            self.ended.set()
        if self._count > self._limit:
            raise trio.BrokenResourceError("too much without a message")
        return data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        self.ended.set()
        await self._stream.aclose()


class SocketConnection(Session):
    """One WebSocket; see `Connection` for the contract of each method."""

    def __init__(
        self, socket: WebSocketConnection, meter: Meter, limits: HttpLimits, nursery: trio.Nursery, border: Border
    ) -> None:
        super().__init__(limits.stop_s)
        self._border = border
        self._socket = socket
        self._meter = meter
        self._limits = limits
        nursery.start_soon(self._guard, self._read)
        nursery.start_soon(self._guard, self._beat)

    async def send(self, messages: Sequence[Outgoing], left: Callable[[int], None]) -> bool:
        for message in messages:
            body = message.body
            text = body.decode(errors="replace") if len(body) < LARGE_BYTES else await decode_in_thread(body.decode)
            self.count(message)
            left(1)
            for start in range(0, len(text), FRAME_CHARS):
                end = start + FRAME_CHARS
                frame = TextMessage(data=text[start:end], message_finished=end >= len(text))
                with trio.move_on_after(self._limits.write_timeout_s) as patience:
                    await self._write(frame)
                if patience.cancelled_caught:
                    return False
        return True

    async def _write(self, frame: TextMessage) -> None:
        if self._socket.closed is not None:
            raise ServerExited(_CLOSED)
        try:
            await self._socket._send(frame)  # `send_message` masks all of a message at once: 5 ms a megabyte
        except ConnectionClosed:
            raise ServerExited(_CLOSED) from None

    async def _guard(self, part: Callable[[], Awaitable[None]]) -> None:
        """Run a part of the connection: what nobody foresaw ends the connection, with a reason."""
        try:
            await part()
        except Exception as error:  # noqa: BLE001  (whatever a server may have caused)
            self.lose(self._border.unforeseen(error))

    async def _read(self) -> None:
        try:
            while True:
                message = await self._socket.get_message()
                self._meter.reset()
                await self.hand_on(message.encode() if isinstance(message, str) else message, b"")
        except ConnectionClosed as closed:
            if self._asked:
                self.end(Exit(asked=True))
            if closed.reason is None:  # whoever reads frames has failed, and says why in a moment
                with trio.move_on_after(LAST_WORDS_S):
                    await self._meter.finished.wait()
            self.lose(self._meter.failure or self._cause(closed))

    def _cause(self, closed: ConnectionClosed) -> str:
        code, said = (closed.reason.code, closed.reason.reason) if closed.reason is not None else (1006, None)
        if code == _TOO_BIG and said is not None and said.startswith("Exceeded maximum message size"):
            return f"a message of it is over {self._limits.max_line_bytes} bytes (max_line_bytes)"
        if code == _TOO_BIG:
            return "a message of ours is too large for it"
        return _CAUSES.get(code, f"it closed the connection (code {code})")

    async def _beat(self) -> None:
        while True:
            await trio.sleep(PING_S)
            try:
                answers = await self._answers()
            except ConnectionClosed:
                return
            if not answers:
                self.lose(f"it does not answer a ping within {PONG_S:g} s")
                return
            self._meter.reset()

    async def _answers(self) -> bool:
        """Say whether it answers one of two pings: a standstill of ours, in which it may have, costs one at most."""
        for _ in range(2):
            with trio.move_on_after(PONG_S / 2):
                await self._socket.ping()
                return True
        return False

    async def _say_goodbye(self) -> None:
        await self._socket.aclose()


class WebSocketTransport:
    """Reaches a server by WebSocket. Proxies are not used, redirects not followed."""

    kind = "websocket"

    def __init__(self, remote: Remote, limits: HttpLimits | None = None) -> None:
        self._remote = remote
        self._limits = limits or HttpLimits()
        self._url = urlsplit(remote.url)
        self._border = Border(server_of(remote.url))

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[SocketConnection]:
        limits = self._limits
        trusted = await trusted_certificates() if self._url.scheme == "wss" else None
        with trio.CancelScope() as scope:
            scope.deadline = trio.current_time() + limits.connect_timeout_s
            stream = await self._stream(trusted)
        if scope.cancelled_caught:
            raise SpawnFailed(f"it cannot be reached (no connection within {limits.connect_timeout_s:g} s)")
        meter = Meter(stream, _OVERHEAD * limits.max_line_bytes)
        try:
            async with background() as nursery:
                socket: WebSocketConnection = await nursery.start(self._speak, meter)
                connection = SocketConnection(socket, meter, limits, nursery, self._border)
                try:
                    yield connection
                finally:
                    connection.kill()
                    nursery.cancel_scope.cancel()
        finally:
            await trio.aclose_forcefully(stream)

    async def _stream(self, trusted: ssl.SSLContext | None) -> trio.SocketStream | trio.SSLStream[trio.SocketStream]:
        """Return a connection to the server. Raises `SpawnFailed`."""
        host, port = self._url.hostname or "", self._url.port
        try:
            if trusted is None:
                return await trio.open_tcp_stream(host, port or 80)
            stream = await trio.open_ssl_over_tcp_stream(host, port or 443, https_compatible=True, ssl_context=trusted)
            try:
                await stream.do_handshake()
            except BaseException:
                await trio.aclose_forcefully(stream)
                raise
        except (OSError, trio.BrokenResourceError) as error:
            raise SpawnFailed(f"it cannot be reached ({why(error)})", away=True) from error
        except ValueError as error:  # also of a name that cannot be written for a look-up
            raise SpawnFailed('what is at "url" is no address', permanent=True) from error
        return stream

    async def _speak(self, meter: Meter, *, task_status: trio.TaskStatus[WebSocketConnection]) -> None:
        """Run the protocol of one WebSocket; started with that. Raises `SpawnFailed` if there is none.

        This is the border: what is raised in reading later closes the WebSocket, and nothing else.
        """
        socket: WebSocketConnection | None = None
        failure: BaseException = HandshakeError("no answer")
        patience = trio.CancelScope(deadline=trio.current_time() + self._limits.connect_timeout_s)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_until_ended, meter, patience)
                with patience:
                    socket = await self._open(nursery, meter)
                if socket is None:
                    nursery.cancel_scope.cancel()
                else:
                    task_status.started(socket)
        except* _ENDS as group:
            failure = first_of(group)
        except* Exception as group:  # noqa: BLE001  (whatever a server may have caused)
            meter.failure = self._border.unforeseen(group)
            failure = UnforeseenAnswer(meter.failure)
        finally:
            meter.finished.set()
        if socket is None:
            raise _refusal(failure, meter)

    async def _open(self, nursery: trio.Nursery, meter: Meter) -> WebSocketConnection:
        headers = {**self._remote.headers, "user-agent": "mcpvisor"}
        _, _, host = self._url.netloc.rpartition("@")
        path, query = self._url.path or "/", self._url.query
        share = share_of(server_of(self._remote.url))
        socket = _SharedSocket(
            share,
            meter,
            WSConnection(ConnectionType.CLIENT),
            host=host,
            path=f"{path}?{query}" if query else path,
            client_subprotocols=[SUBPROTOCOL],
            client_extra_headers=[(name.lower().encode(), value.encode()) for name, value in headers.items()],
            max_message_size=self._limits.max_line_bytes,
            receive_buffer_size=READ_BYTES,
        )
        nursery.start_soon(share.run, socket._reader_task)
        await socket._open_handshake.wait()
        return socket


class _SharedSocket(WebSocketConnection):
    """A WebSocket whose frames are read in the turns of its server, also those that bring nothing.

    Its messages are bytes: a large one is gathered as it comes, and never a text, which is copied several times.
    """

    def __init__(self, share: LoopShare, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._share = share
        self._body = Gathered()

    async def _handle_message_event(self, event: BytesMessage | TextMessage) -> None:
        await self._share.turn()
        self._body.add(event.data.encode() if isinstance(event, TextMessage) else bytes(event.data))
        if self._body.size > self._max_message_size or event.message_finished:
            body, self._body = self._body, Gathered()
            await super()._handle_message_event(BytesMessage(await body.whole(), True, True))

    async def _handle_pong_event(self, event: Pong) -> None:
        await self._share.turn()
        await super()._handle_pong_event(event)


async def _until_ended(meter: Meter, patience: trio.CancelScope) -> None:
    """Give up an opening that nobody will answer any more."""
    await meter.ended.wait()
    patience.cancel()


def _refusal(failure: BaseException, meter: Meter) -> SpawnFailed:
    match failure:
        case ConnectionRejected(status_code=status):
            away = status >= 500 or status == 429
            return SpawnFailed(of_status(b"", status, None).reason, permanent=status >= 400 and not away, away=away)
        case HandshakeError() | ConnectionClosed():
            return SpawnFailed("whoever is at its address does not answer as a WebSocket does")
        case UnforeseenAnswer():
            return SpawnFailed(str(failure))
        case h11.LocalProtocolError() if not meter.begun:
            return SpawnFailed('what would be sent to it is no HTTP: look at its "headers"', permanent=True)
        case _:
            return SpawnFailed("what it sends is no WebSocket")
