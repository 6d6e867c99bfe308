"""The clock of the loop: that of the system, less the time in which nothing at all went on.

The clock of the system goes on while the process is stopped (SIGSTOP, a frozen group, a virtual machine that is paused)
and while something holds the loop. Then every deadline has passed at once, and what came in time lies in pipes and
sockets, not yet read: calls would time out and servers be given up for our own absence.

The clock knows how long the loop may wait, and when it was read last. Where it is read much later than that, nothing
went on. That time does not count, and the clock stands a moment longer, until what came meanwhile is read.
While the machine sleeps (suspend) the clock of the system stands by itself.

Nothing may wait for good: of a standstill that follows another one at once a small part counts.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from typing import Final

import trio

STANDSTILL_S: Final = 1.0
"""A loop that is later than this did not run, however busy the machine is."""
CATCH_UP_S: Final = 1.0
"""So long the clock stands after a standstill, for what came meanwhile to be read."""
AGAIN_S: Final = 0.1
"""What a standstill counts that follows another one at once."""
LONGEST_WAIT_S: Final = 1.0
"""The loop waits no longer without reading the clock: what a standstill has in common with a wait is counted."""


class LoopClock(trio.abc.Clock):
    """Gives seconds from an arbitrary moment. `tell` is told the seconds of each standstill, and must not raise.

    `real` gives seconds of the system's steady clock.
    """

    __slots__ = ("_late", "_off", "_read", "_real", "_stands_at", "_tell")

    def __init__(
        self, tell: Callable[[float], None] = lambda seconds: None, real: Callable[[], float] = time.perf_counter
    ) -> None:
        self._tell = tell
        self._real = real
        self._off = -random.uniform(10_000, 200_000)  # so that nobody mixes it up with the system's and is right
        self._read = self._late = math.inf
        self._stands_at = -math.inf

    def start_clock(self) -> None:
        """Begin: from now on the loop runs."""
        self._read = self._real()
        self._late = self._read + STANDSTILL_S

    def current_time(self) -> float:
        """Return the present moment, in seconds. It never goes back."""
        real = self._real()
        if real > self._late:
            self._take_off(real)
        self._read = real
        self._late = real + STANDSTILL_S
        now = real - self._off
        return now if now > self._stands_at else self._stands_at  # noqa: FURB136 - `max` takes twice as long

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Return how many seconds the loop may wait now, for a moment of this clock: a second at most."""
        now = self.current_time()
        left = 0.0 if deadline <= now else min(deadline + self._off - self._read, LONGEST_WAIT_S)
        self._late += left
        return left

    def _take_off(self, real: float) -> None:
        stood_s, before = real - self._read, self._read - self._off
        if before - self._stands_at >= CATCH_UP_S:
            self._stands_at = before
            self._off += stood_s + CATCH_UP_S
        else:
            self._off += stood_s - AGAIN_S
        self._tell(stood_s)
