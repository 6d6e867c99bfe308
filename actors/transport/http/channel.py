"""What a connection over HTTP needs of whichever transport of MCP it uses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, Protocol

from actors.protocol.wire.failure import Failure
from actors.protocol.wire.outgoing import Outgoing

HttpKind = Literal["http", "sse"]
"""Streamable HTTP, or HTTP+SSE (MCP 2024-11-05, "Transports")."""

HandOn = Callable[[bytes, bytes], Awaitable[None]]
"""Takes a message that came in, and the id of the request on whose stream; empty where all share one."""


class Channel(Protocol):
    """One session over one transport of HTTP."""

    missing: str
    """How what is at the address shows that it does not speak this transport; empty if it does, or is not known to."""

    @property
    def kind(self) -> HttpKind:
        """Which transport it is."""

    async def ask(self, message: Outgoing) -> Failure | None:
        """Send a request and hand on what its own stream brings, to the end.

        Return why there is no more of it, which changes nothing if there was an answer; None where that comes on a
        stream that is not its own.
        """

    async def tell(self, message: Outgoing) -> None:
        """Send what has no answer."""

    def begin(self, version: str) -> None:
        """Take that the session has begun, in a revision of the protocol."""

    async def close(self) -> None:
        """Tell the server that the session is over."""
