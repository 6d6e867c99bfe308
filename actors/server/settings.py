"""What a deployment may set for one server."""

from __future__ import annotations

from typing import Literal

from actors.life.breakers import BreakerPolicy
from actors.protocol.agreement.era import Terms
from actors.protocol.asking.questions import Fallback
from actors.protocol.listing import ListLimits
from actors.transport.stdio.installer import Installer

DRAIN_S = 5.0
"""For calls in flight, before a server that is to sleep, restart or stop is stopped."""
RELIST_DEBOUNCE_S = 0.25
"""A server that says that its lists changed is read after this time, with whatever else changes meanwhile."""
RELIST_INTERVAL_S = 1.0
"""The least time between the beginnings of two such readings."""
CATCH_UP_S = 60.0
"""The same where it could not be heard for a while: some proxies cut every quiet stream once a minute."""
LIST_LIMITS = ListLimits()
IDLE_S = 180.0
"""A server without calls sleeps after this time; one that holds something in memory after"""
STATEFUL_IDLE_S = 3600.0
"""this: a person who reads and thinks takes minutes, and a browser that nobody uses has to end some time."""
HELD = "what it held in memory"

Stateful = Literal["auto", "learn"] | bool


class ServerSettings(BreakerPolicy, frozen=True, kw_only=True):
    """Deadlines in seconds and bounds of one server, each as `docs/reference/servers.md` has it.

    `installer`: what starts the server may install it first. `terms`: what it is told of clients.
    `known_to_hold`: what servers of its name hold in memory, in words.
    """

    installer: Installer | None = None
    stateful: Stateful = "auto"
    known_to_hold: str = ""
    install_timeout_s: float = 900.0
    install_quiet_s: float = 90.0
    install_grace_s: float = 10.0
    idle_timeout_s: float | None = None
    start_timeout_s: float = 60.0
    probe_timeout_s: float = 20.0
    discovery_timeout_s: float = 60.0
    call_max_s: float = 600.0
    task_max_s: float = 3600.0
    question_timeout_s: float = 300.0
    question_fallback: Fallback = "cancel"
    terms: Terms = Terms()
    unresponsive_s: float = 5.0
    watch_interval_s: float = 60.0
    probe_interval_s: float = 300.0
    catalogue_max_age_s: float = 86_400.0
    catalogue_min_age_s: float = 60.0
    refresh_asleep: bool | None = None
    max_in_flight: int = 64
    max_queued: int = 128
    max_queued_bytes: int = 64 * 1024 * 1024

    @property
    def held(self) -> str:
        """What it holds in memory from one call to the next, in words; empty where nothing is known to be held."""
        return "" if self.stateful is False else self.known_to_hold or (HELD if self.stateful is True else "")

    def idle_s(self, *, holds: bool) -> float:
        """Return after how long without a call it sleeps; 0: never. `holds`: it holds something in memory."""
        if self.idle_timeout_s is not None:
            return self.idle_timeout_s
        return STATEFUL_IDLE_S if holds else IDLE_S
