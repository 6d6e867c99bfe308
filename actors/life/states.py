"""What a server is and what it shall be: the state, what is wanted, and what is waited for meanwhile. Pure.

Timers go by names; how many seconds they have says who knows.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Literal

import msgspec


class State(enum.StrEnum):
    """Where a server is in its life."""

    DORMANT = "dormant"
    """No process; its tools are known and a call wakes it."""
    SPAWNING = "spawning"
    """A process is being started."""
    HANDSHAKING = "handshaking"
    """The process runs; the era is being negotiated."""
    DISCOVERING = "discovering"
    """Tools, resources and prompts are being listed."""
    READY = "ready"
    """Calls go through."""
    DRAINING = "draining"
    """Calls in flight end, then the process is stopped."""
    RESPAWNING = "respawning"
    """The process died; a back-off runs before the next one."""
    FAILED = "failed"
    """It cannot be started, or failed too often."""
    STOPPED = "stopped"
    """Terminal: the server was removed or the daemon ends."""


class Timer(enum.StrEnum):
    """What is waited for."""

    HANDSHAKE = "handshake"
    """An agreement on the protocol revision. The start of the process has a deadline of its own."""
    LISTING = "listing"
    """The end of a walk over the lists."""
    IDLE = "idle"
    """A call."""
    SILENCE = "silence"
    """A sign of life."""
    WATCH = "watch"
    """The next look at whether the server lives."""
    RELIST = "relist"
    """Further changes of the lists, before they are read."""
    LISTEN = "listen"
    """The next subscription to changes of the lists, after one has ended."""
    DRAIN = "drain"
    """The end of the calls in flight, and then of the process."""
    BACKOFF = "backoff"
    """The next process after a failure."""
    RETRY = "retry"
    """The next process of a server that was given up and that nobody can find to call it."""
    DEADLINES = "deadlines"
    """The earliest deadline of a call, or the moment from which one may be sent again, whatever the state."""
    LOOK = "look"
    """The age of the lists at which they are read again, whatever the state."""


Wanted = Literal["up", "dormant", "stopped"]
Down = Literal["offline", "error", "permanently_failed"]
"""A server that failed and is not back: it cannot be reached, it fails and is started again, or it was given up."""


class Life(msgspec.Struct, frozen=True):
    """All that `step` knows about a server. `permanent`: the failure heals only by a change; `barred`: by a login.

    `away_s`: it could not be reached, and asked to be left alone for so many seconds. `scarce`: we lacked something.
    """

    state: State = State.DORMANT
    wanted: Wanted = "dormant"
    incarnation: int = 0
    permanent: bool = False
    barred: bool = False
    fallback: bool = False
    reason: str = ""
    away_s: float | None = None
    scarce: bool = False

    @property
    def resting(self) -> bool:
        """Whether there is no process, and none will be without an order."""
        return self.state in RESTING

    @property
    def listable(self) -> bool:
        """Whether the server can be asked for its lists."""
        return self.state in (State.READY, State.DISCOVERING)

    @property
    def serving(self) -> bool:
        return self.state is State.READY

    @property
    def over(self) -> bool:
        return self.state is State.STOPPED

    @property
    def ending(self) -> bool:
        """Whether it is stopped for good, or will be."""
        return self.over or self.wanted == "stopped"


ALIVE = frozenset({State.SPAWNING, State.HANDSHAKING, State.DISCOVERING, State.READY, State.DRAINING})
"""Those in which there is a process, or one is being started."""
RAN = ALIVE - {State.SPAWNING, State.DRAINING}
"""Those in which a process runs that nobody has asked to end: what leaves one for a failure has crashed."""
RESTING = frozenset({State.DORMANT, State.STOPPED, State.FAILED})
TIMERS: Mapping[State, frozenset[Timer]] = {
    State.HANDSHAKING: frozenset({Timer.HANDSHAKE}),
    State.DISCOVERING: frozenset({Timer.LISTING}),
    State.READY: frozenset({Timer.IDLE, Timer.SILENCE, Timer.WATCH, Timer.LISTING, Timer.RELIST, Timer.LISTEN}),
    State.DRAINING: frozenset({Timer.DRAIN}),
    State.RESPAWNING: frozenset({Timer.BACKOFF}),
    State.FAILED: frozenset({Timer.RETRY}),
}
"""Which timers may run in a state only; they end with it."""
ON_ENTRY: Mapping[State, Timer] = {
    State.HANDSHAKING: Timer.HANDSHAKE,
    State.READY: Timer.IDLE,
    State.DRAINING: Timer.DRAIN,
    State.FAILED: Timer.RETRY,
}
"""Which of them starts with its state; the others have occasions of their own."""
