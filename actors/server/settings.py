"""What a deployment may set for one server."""

from __future__ import annotations

import msgspec

from actors.protocol.listing import ListLimits


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Deadlines in seconds and bounds of one server. `idle_timeout_s` 0 means never.

    `unresponsive_s`: a server that said nothing during a whole call is asked for a sign of life, and replaced if none
    comes within this time.
    """

    idle_timeout_s: float = 180.0
    start_timeout_s: float = 60.0
    probe_timeout_s: float = 20.0
    discovery_timeout_s: float = 60.0
    drain_s: float = 5.0
    write_timeout_s: float = 10.0
    unresponsive_s: float = 5.0
    relist_debounce_s: float = 0.25
    relist_interval_s: float = 1.0
    max_in_flight: int = 64
    max_queued: int = 128
    max_queued_bytes: int = 64 * 1024 * 1024
    list_limits: ListLimits = ListLimits()
