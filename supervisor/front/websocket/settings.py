"""The bounds of one WebSocket connection."""

from __future__ import annotations

import msgspec

from actors.principal import LOCAL, Principal


class WebSocketSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one connection. The daemon fills it from the configuration."""

    max_in_flight: int = 64
    max_waiting: int = 256
    """Requests that wait for their turn; while there are so many nothing more is read."""
    max_waiting_bytes: int = 4 * 1024 * 1024
    """The same for the bytes of all requests that are not answered."""
    max_listens: int = 32
    max_queued_messages: int = 256
    max_queued_bytes: int = 1024 * 1024
    stall_s: float = 5.0
    """A client that takes nothing of a full queue for this time is closed."""
    list_changed_min_interval_s: float = 1.0
    list_changed_debounce_s: float = 0.25
    drain_s: float = 2.0
    """At shutdown, for requests in flight to be answered and for the answers to leave."""
    principal: Principal = LOCAL
