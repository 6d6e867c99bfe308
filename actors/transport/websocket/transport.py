"""The WebSocket transport: one connection is one WebSocket (RFC 6455)."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import h11
import trio
import wsproto.utilities
from trio_websocket import ConnectionClosed, ConnectionRejected, HandshakeError, WebSocketConnection
from wsproto import ConnectionType, WSConnection
from wsproto.events import BytesMessage, Pong, TextMessage

from actors.errors import SpawnFailed
from actors.kit.decoding import Gathered
from actors.kit.fairness.share import LoopShare, share_of
from actors.kit.nursery import background
from actors.kit.want import first_of
from actors.transport.border import Border
from actors.transport.http.client.tls import trusted_certificates
from actors.transport.http.client.verdict import UnforeseenAnswer, of_status, why
from actors.transport.http.remote import HttpLimits, Remote, server_of
from actors.transport.websocket.connection import Meter, SocketConnection

SUBPROTOCOL = "mcp"
READ_BYTES = 256 * 1024
"""A read costs about as much whatever it brings; frames are taken apart one by one, in turns."""
_OVERHEAD = 2
"""So many times the largest message may come without one being complete: frames may be small."""
_ENDS = (ConnectionClosed, HandshakeError, wsproto.utilities.ProtocolError, h11.ProtocolError, UnicodeDecodeError)


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
