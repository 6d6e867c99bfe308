"""How one of several instances of a launch is doing. Pure."""

from __future__ import annotations

import msgspec

from actors.life.states import State


class InstanceStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One instance by its number, which no other one of its launch has meanwhile. Moments are of the trio clock.

    `leads`: its lists are those of the launch. `address` is that of a replica, as it may be shown. `leaving`: it gets
    no more calls, and ends. `last_error` is what is wrong now.
    """

    number: int
    state: State
    since: float
    pid: int | None = None
    leads: bool = False
    address: str = ""
    leaving: bool = False
    in_flight: int = 0
    waiting: int = 0
    calls: int = 0
    failures: int = 0
    restarts: int = 0
    last_error: str | None = None


class InstanceChanged(msgspec.Struct, frozen=True, kw_only=True):
    """An instance of a launch moved to another state."""

    server: str
    instance: InstanceStatus
    previous: State
    reason: str = ""
