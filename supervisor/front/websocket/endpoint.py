"""MCP over WebSocket: handshake, reader, writer, and the code each connection ends with.

MCP has no WebSocket transport of its own; this one follows the rules for custom transports (2026-07-28
basic/transports/index) and what clients of the field do: subprotocol `mcp`, one JSON-RPC message per text message.

Rules of this file:
- Reader and writer are separate tasks over one bounded queue. Where it is full nothing more is read; a client that
  does not read either is closed with 1008. A send in progress is bounded by the connection's send deadline.
- Close codes (RFC 6455 7.4.1): 1001 at shutdown, 1003 for a binary message, 1008 for a client that does not read, 1009
  for a message too big, 1011 for a bug of ours. Never 1000 from us: we have no reason to end a healthy connection.
- Tokens that clients hide in a subprotocol (`mcp.auth.*`) are never echoed.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

import trio
from msgspec.structs import replace

from actors import codes
from actors.errors import UnknownDoor
from actors.protocol.agreement.versions import LEGACY_VERSIONS, MODERN_VERSIONS
from actors.protocol.wire import jsonrpc
from supervisor.front.edge.request import HttpRequest
from supervisor.front.edge.websocket import Handshake, WebSocket
from supervisor.front.websocket.outgoing import OutgoingQueue
from supervisor.front.websocket.session import SocketSession
from supervisor.front.websocket.settings import WebSocketSettings
from supervisor.service.doors.addresses import chosen_by
from supervisor.service.drain import RequestDrain
from supervisor.service.port import Doors, failure

log = logging.getLogger(__name__)

SUBPROTOCOL = "mcp"
CLOSE_S = 5.0
"""For the close frame to leave."""

_VERSION_SUBPROTOCOLS = frozenset(f"mcp.version.{version}" for version in (*LEGACY_VERSIONS, *MODERN_VERSIONS))


def choose_subprotocol(offered: Sequence[str]) -> str | None:
    """Return which of the offered subprotocols we speak: `mcp` before `mcp.version.<v>`; None if none of them."""
    if SUBPROTOCOL in offered:
        return SUBPROTOCOL
    return next((name for name in offered if name in _VERSION_SUBPROTOCOLS), None)


class McpWebSocket:
    """Serves WebSockets. One per daemon; each connection has its own session."""

    def __init__(self, drain: RequestDrain, settings: WebSocketSettings, doors: Doors) -> None:
        """`drain` performs the requests; when it begins, every connection winds up and closes with 1001.

        `doors` are those below the path of MCP, too.
        """
        self._doors = doors
        self._drain = drain
        self._settings = settings

    async def serve(self, name: str, request: HttpRequest) -> None:
        """Serve one connection at the door of this name until it is closed.

        Raises `HttpProtocolError` for a bad handshake.
        """
        try:
            door = await self._doors.find_for(request.requester.person, name, *chosen_by(request.target))
        except UnknownDoor as error:
            await request.refuse(error.http_status, failure(b"null", error).body)
            return
        handshake = Handshake(request)
        offered = handshake.subprotocols
        chosen = choose_subprotocol(offered)
        if offered and chosen is None:
            text = f'none of the offered subprotocols is spoken here; offer "{SUBPROTOCOL}" or none'
            await request.refuse(400, jsonrpc.failure(b"null", codes.INVALID_REQUEST, text))
            return
        socket = await handshake.accept(chosen)
        read_only_at = name if request.lacking is not None else None
        settings = replace(self._settings, principal=request.principal, read_only_at=read_only_at)
        counters = request.counters
        counters.sockets += 1
        try:
            await McpSocket(self._drain.behind(door.service), settings, socket).run()
        finally:
            counters.sockets -= 1


class McpSocket:
    """The tasks of one accepted connection."""

    def __init__(self, drain: RequestDrain, settings: WebSocketSettings, socket: WebSocket) -> None:
        self._drain = drain
        self._settings = settings
        self._socket = socket
        self._scope = trio.CancelScope()
        self._close: tuple[int, str] | None = None

    async def run(self) -> None:
        settings, socket = self._settings, self._socket
        outgoing = OutgoingQueue(  # which knows us: as we do not know it, both are freed at once
            partial(_write, socket),
            settings.max_queued_messages,
            settings.max_queued_bytes,
            settings.stall_s,
            lambda: self._end(1008, "answers are waiting and nobody reads them"),
        )
        try:
            with self._scope, socket.leaving.ends(self._scope):
                async with trio.open_nursery() as nursery:
                    session = SocketSession(self._drain, settings, outgoing, socket.budget, nursery)
                    nursery.start_soon(outgoing.run)
                    nursery.start_soon(socket.pings)
                    nursery.start_soon(self._wind_up, session)
                    try:
                        await self._read(session)
                    finally:
                        session.end()
                    nursery.cancel_scope.cancel()
        except* Exception:  # the border: a bug costs this connection and is in the log
            log.exception("a bug in a WebSocket connection")
            self._close = (1011, "internal error")
        if self._close is not None:
            code, reason = self._close
            with trio.move_on_after(CLOSE_S, shield=True):
                await socket.close(code, reason)

    def _end(self, code: int, reason: str) -> None:
        if self._close is None:
            self._close = (code, reason)
        self._scope.cancel()

    async def _read(self, session: SocketSession) -> None:
        while (message := await self._socket.receive()) is not None:
            if isinstance(message, bytes):
                self._end(1003, "text messages only")
                return
            await session.receive(message.encode())

    async def _wind_up(self, session: SocketSession) -> None:
        await self._drain.closing.wait()
        await session.wind_up()
        self._end(1001, "the daemon is shutting down")


async def _write(socket: WebSocket, message: bytes) -> None:
    await socket.send(message.decode())
