"""The timers of a server by name, and in which states they may run. How many seconds they have says who knows. Pure."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from actors.life.states import State


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
    """The earliest deadline of a call, whatever the state."""
    LOOK = "look"
    """The age of the lists at which they are read again, whatever the state."""


TIMERS: Mapping[State, frozenset[Timer]] = {
    State.HANDSHAKING: frozenset({Timer.HANDSHAKE}),
    State.DISCOVERING: frozenset({Timer.LISTING}),
    State.READY: frozenset({Timer.IDLE, Timer.SILENCE, Timer.LISTING, Timer.RELIST, Timer.LISTEN}),
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
