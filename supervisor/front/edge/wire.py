"""What a request and a WebSocket have of their connection, and what all connections of a server have in common."""

from __future__ import annotations

from typing import Protocol

import msgspec
import trio

from actors.kit import Conditions, Turnstile
from actors.kit.fairness.share import Who
from supervisor.config import Settings
from supervisor.front.edge.budget import Budget
from supervisor.front.edge.leaving import Departures, Leaving


class ConnectionCounters(msgspec.Struct, kw_only=True):
    """What happened on the connections of one `serve`; read by whoever reports it."""

    open: int = 0
    sockets: int = 0
    """WebSockets that speak MCP."""
    accepted: int = 0
    refused: int = 0
    """Over the limit of connections."""
    errors: int = 0
    """Connections that ended with an exception: malformed input, or a bug."""
    stalled: int = 0
    """Connections whose peer took nothing for the send deadline."""


class EdgeState(msgspec.Struct, frozen=True, eq=False):
    """What others read of the connections of one server: counts, bytes that are held, what is wanting."""

    counters: ConnectionCounters = msgspec.field(default_factory=ConnectionCounters)
    budget: Budget = msgspec.field(default_factory=Budget)
    conditions: Conditions = msgspec.field(default_factory=Conditions)
    opened: trio.Event = msgspec.field(default_factory=trio.Event)
    """Set when whoever connects may be served."""


class ConnectionContext(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What all connections of one server have in common."""

    settings: Settings
    budget: Budget
    counters: ConnectionCounters
    departures: Departures
    turnstile: Turnstile = msgspec.field(default_factory=Turnstile)
    closing: trio.Event
    """Set when each answer is the last one of its connection."""


class Wire(Protocol):
    """A connection, as those see it who speak on it."""

    socket: trio.socket.SocketType
    address: str
    """Where it comes from; empty if that was not known."""
    context: ConnectionContext
    who: Who
    """Which client is there, as far as is known: what comes from it is read in turn with that of others."""
    leaving: Leaving

    @property
    def behind(self) -> bytes: ...

    def take(self) -> bool:
        """Take the next part of the body under way from what was read; False if there is none.

        Raises `HttpProtocolError`.
        """
        ...

    async def more(self) -> None:
        """Wait for the next part of the body of the request under way. Raises `ClientGone` and `HttpProtocolError`."""
        ...

    async def read(self) -> bytes: ...

    async def write(self, *parts: bytes) -> None: ...
