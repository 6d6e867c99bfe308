"""The bounds of one WebSocket connection."""

from __future__ import annotations

import msgspec

from actors.principal import LOCAL, Principal
from supervisor.config import Settings

FAREWELL_S = 2.0
"""For the last answers to leave, once no call is in flight any more."""


class WebSocketSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one connection; `max_in_flight` and `drain_s` are others than those of the daemon."""

    max_in_flight: int = 64
    max_waiting: int = 256
    """Requests that wait for their turn; while there are so many nothing more is read."""
    max_waiting_bytes: int = 4 * 1024 * 1024
    """The same for the bytes of all requests that are not answered."""
    max_listens: int = 32
    max_streams: int = 256
    """Streams of events; they are no requests that wait for their turn, nor have one."""
    max_queued_messages: int = 256
    max_queued_bytes: int = 1024 * 1024
    stall_s: float = 5.0
    """A client that takes nothing of a full queue for this time is closed."""
    list_changed_min_interval_s: float = 1.0
    drain_s: float = 2.0
    """At shutdown, for requests in flight to be answered and for the answers to leave."""
    principal: Principal = LOCAL
    read_only_at: str | None = None
    """The door at which the credential of the client is not for calls of tools; None: it is."""

    @classmethod
    def of(cls, settings: Settings) -> WebSocketSettings:
        """Return the bounds that are configured."""
        return cls(
            max_queued_messages=settings.max_sockets_queue,
            list_changed_min_interval_s=settings.list_changed_min_interval_s,
            stall_s=settings.websocket_stall_s,
            drain_s=settings.drain_within_s + FAREWELL_S / 2,  # before the sockets are closed under whoever is left
        )
