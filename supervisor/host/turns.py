"""The time of the loop: its clock, by how much it is late, and how long its turns take.

The clock of the system goes on while the process is stopped (SIGSTOP, a frozen group, a virtual machine that is paused)
and while something holds the loop. Then every deadline has passed at once, and what came in time lies in pipes and
sockets, not yet read: calls would time out and servers be given up for our own absence. So the clock of the loop knows
how long the loop may wait, and when it was read last. Where it is read much later than that, nothing went on. That time
does not count, and the clock stands a moment longer, until what came meanwhile is read. While the machine sleeps
(suspend) the clock of the system stands by itself. Nothing may wait for good: of a standstill that follows another one
at once a small part counts.

A turn that takes long holds up everybody:

- A turn is what runs between two waits. One over `STALL_S` is a stall, and counted. The marks are two readings of the
  clock in each turn; see `pauses`, which has them made.
- A thread looks now and then. Of a turn that takes over `LOGGED_S` it logs where the loop is: functions and lines,
  never values. A call into C that does not give Python's lock away is logged when it is over, without the place.
- The clock of the loop tells of standstills. One in the middle of a turn may be a stall: it is, if the thread had its
  looks meanwhile or the process worked.
"""

from __future__ import annotations

import logging
import math
import random
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

import trio

from actors.kit import is_want

LOOK_EVERY_S: Final = 5.0
"""Metrics are read every 15 s or so, and a daemon that nobody uses should sleep."""


class LoopLag:
    """`seconds` is what was measured last; `run` has to run for that."""

    def __init__(self) -> None:
        self.seconds = 0.0

    async def run(self) -> None:
        while True:
            due = trio.current_time() + LOOK_EVERY_S
            await trio.sleep_until(due)
            self.seconds = max(0.0, trio.current_time() - due)


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


log = logging.getLogger(__name__)

STALL_S: Final = 0.1
LOGGED_S: Final = 1.0
LOOK_S: Final = 1.0
"""The thread looks so often. A turn that it finds under way is looked at again at `LOGGED_S`, so it misses none."""
_LEAST_S: Final = 0.01
QUIET_S: Final = 60.0
"""Of stalls something is logged at most so often."""
MAX_FRAMES: Final = 24
_KEPT: Final = 64
_IDLE: Final = math.inf


class LoopTurns:
    """Figures of the turns of one run of the loop, since its start. `real` gives steady seconds, `worked` those of CPU.

    All is for the thread of the loop, but for `look`.
    """

    def __init__(
        self, real: Callable[[], float] = time.perf_counter, worked: Callable[[], float] = time.process_time
    ) -> None:
        self.stalls = 0
        """LoopTurns that took over `STALL_S`."""
        self.longest_s = 0.0
        """How long the longest of them took."""
        self.standstills = 0
        """So often nothing went on: the process, or its machine, was stopped."""
        self.stood_s = 0.0
        """How long all of them together took."""
        self._real = real
        self._worked = worked
        self._began = _IDLE
        self._looks: deque[tuple[float, float]] = deque([(real(), worked())], _KEPT)
        self._shown = _IDLE
        self._quiet_until = -math.inf

    def begin(self) -> None:
        """The loop has waited and goes on."""
        self._began = self._real()

    def end(self) -> None:
        """The loop is about to wait."""
        began, self._began = self._began, _IDLE
        took = self._real() - began
        if took > STALL_S and (took < LOOK_S or self._ran(took)):  # else the clock tells of a standstill, if only now
            self._note(began, took)

    def stand(self, seconds: float) -> None:
        """Nothing was done for so long, as the clock of the loop says."""
        if self._began != _IDLE and self._ran(seconds):
            return  # the turn says so when it ends, or has said so
        self._began += seconds
        self.standstills += 1
        self.stood_s += seconds
        log.warning(
            "the daemon stood still for %.1f s: it was stopped, or its machine was; deadlines are as much later",
            seconds,
        )

    def look(self, thread: int) -> float:
        """Log where the thread of the loop is, if its turn takes too long; return when to look again, in seconds."""
        now, began, before = self._real(), self._began, self._looks[-1][0]
        self._looks.append((now, self._worked()))
        age = now - began
        if 0 < age < LOGGED_S:
            return max(LOGGED_S - age, _LEAST_S)
        ran = now - before < 2 * LOOK_S  # else the thread stood still with everybody
        if age >= LOGGED_S and ran and now >= self._quiet_until:
            self._shown, self._quiet_until = began, now + QUIET_S
            log.warning("the loop is held for %.1f s so far, in %s", age, " < ".join(_places(thread)))
        return LOOK_S

    def status(self) -> dict[str, float]:
        """Return what the status page shows."""
        return {
            "stalls": self.stalls,
            "longest_stall_s": round(self.longest_s, 3),
            "standstills": self.standstills,
            "stood_still_s": round(self.stood_s, 3),
        }

    def _note(self, began: float, took: float) -> None:
        self.stalls += 1
        self.longest_s = max(self.longest_s, took)
        now = began + took
        if took >= LOGGED_S and (began == self._shown or now >= self._quiet_until):
            self._quiet_until = now + QUIET_S
            log.warning("a turn of the loop took %.1f s: everybody waited for it", took)

    def _ran(self, seconds: float) -> bool:
        """Return whether the process ran in these last seconds."""
        since = self._real() - seconds
        looks = [*self._looks]  # the other thread may have one meanwhile
        before = [worked for at, worked in looks if at <= since] or [looks[0][1]]
        had = len(looks) - len(before)
        return had >= min(seconds, _KEPT) / LOOK_S / 2 or self._worked() - before[-1] > seconds / 2


def _places(thread: int) -> list[str]:
    """Return the functions that a thread is in, the innermost first, each with its module and line."""
    places: list[str] = []
    frame: FrameType | None = sys._current_frames().get(thread)
    while frame is not None and len(places) < MAX_FRAMES:
        places.append(f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_name}:{frame.f_lineno}")
        frame = frame.f_back
    return places


_turns: trio.lowlevel.RunVar[LoopTurns] = trio.lowlevel.RunVar("_turns")


def loop_turns() -> LoopTurns:
    """Return those of this run of the loop."""
    try:
        return _turns.get()
    except LookupError:
        _turns.set(made := LoopTurns())
        return made


@contextmanager
def watch_turns(watched: LoopTurns) -> Iterator[None]:
    """Have a thread look at the turns of this loop for the block. Without a thread to be had they are only counted."""
    _turns.set(watched)
    over, loop = threading.Event(), threading.get_ident()

    def look_on() -> None:
        pause = LOOK_S
        while not over.wait(pause):
            pause = watched.look(loop)

    try:
        threading.Thread(target=look_on, name="turns", daemon=True).start()
    except RuntimeError as error:
        if not is_want(error):
            raise
        log.warning("there is no thread to look how long turns of the loop take")
    try:
        yield
    finally:
        over.set()
