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

import trio

from actors.errors import UnknownDoor
from actors.protocol import jsonrpc
from actors.protocol.versions import LEGACY_VERSIONS, MODERN_VERSIONS
from supervisor.front.edge.asgi import Receive, Scope, Send, respond
from supervisor.front.edge.budget import Budget
from supervisor.front.mcp.doors import door_of
from supervisor.front.websocket.outgoing import OutgoingQueue
from supervisor.front.websocket.session import SocketSession
from supervisor.front.websocket.settings import WebSocketSettings
from supervisor.service.drain import RequestDrain
from supervisor.service.port import Doors, OneDoor, failure

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
    """The ASGI application for WebSockets. One per daemon; each connection has its own session."""

    def __init__(
        self,
        drain: RequestDrain,
        settings: WebSocketSettings,
        budget: Budget | None = None,
        doors: Doors | None = None,
    ) -> None:
        """`drain` performs the requests; when it begins, every connection winds up and closes with 1001.

        `budget` counts the bytes of requests over all transports. `doors` are those below the path of MCP, too.
        """
        self._doors = doors or OneDoor(drain.service)
        self._drain = drain
        self._settings = settings
        self._budget = budget or Budget()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection until it is closed."""
        await receive()  # websocket.connect
        try:  # a path that is none of MCP's was chosen by whoever put us there: it leads to the first door
            door = self._doors.find(door_of(scope.get("path", "")) or "")
        except UnknownDoor as error:
            await respond(scope, send, error.http_status, failure(b"null", error).body)
            return
        offered = scope.get("subprotocols") or []
        chosen = choose_subprotocol(offered)
        if offered and chosen is None:
            text = f'none of the offered subprotocols is spoken here; offer "{SUBPROTOCOL}" or none'
            await respond(scope, send, 400, jsonrpc.failure(b"null", jsonrpc.INVALID_REQUEST, text))
            return
        await send({"type": "websocket.accept", "subprotocol": chosen, "headers": []})
        await _Connection(self._drain.behind(door.service), self._settings, self._budget).run(receive, send)


class _Connection:
    """The tasks of one accepted connection."""

    def __init__(self, drain: RequestDrain, settings: WebSocketSettings, budget: Budget) -> None:
        self._drain = drain
        self._settings = settings
        self._budget = budget
        self._scope = trio.CancelScope()
        self._close: tuple[int, str] | None = None

    async def run(self, receive: Receive, send: Send) -> None:
        """Serve until the client has gone or we close."""
        settings = self._settings
        outgoing = OutgoingQueue(  # which knows us: as we do not know it, both are freed at once
            settings.max_queued_messages,
            settings.max_queued_bytes,
            settings.stall_s,
            lambda: self._end(1008, "answers are waiting and nobody reads them"),
        )
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    session = SocketSession(self._drain, settings, outgoing, self._budget, nursery)
                    nursery.start_soon(_write, outgoing, send)
                    nursery.start_soon(self._wind_up, session)
                    try:
                        await self._read(receive, session)
                    finally:
                        session.end()
                    nursery.cancel_scope.cancel()
        except* Exception:  # the border: a bug costs this connection and is in the log
            log.exception("a bug in a WebSocket connection")
            self._close = (1011, "internal error")
        if self._close is not None:
            code, reason = self._close
            with trio.move_on_after(CLOSE_S, shield=True):
                await send({"type": "websocket.close", "code": code, "reason": reason})

    def _end(self, code: int, reason: str) -> None:
        if self._close is None:
            self._close = (code, reason)
        self._scope.cancel()

    async def _read(self, receive: Receive, session: SocketSession) -> None:
        while (event := await receive())["type"] == "websocket.receive":
            if event.get("text") is None:
                self._end(1003, "text messages only")
                return
            text = event["text"].encode()
            if len(text) > self._settings.max_message_bytes:
                self._end(1009, "message too big")
                return
            await session.receive(text)

    async def _wind_up(self, session: SocketSession) -> None:
        await self._drain.closing.wait()
        await session.wind_up()
        self._end(1001, "the daemon is shutting down")


async def _write(outgoing: OutgoingQueue, send: Send) -> None:
    while True:
        message = await outgoing.next()
        await send({"type": "websocket.send", "text": message.decode()})
