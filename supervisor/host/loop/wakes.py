"""Wakes of many tasks for one cause, a few in each turn of the loop, so that everybody else has a turn in between.

Whatever is ready at once runs in one turn: ten thousand streams that are woken together hold the loop until the last of
them has written what it has to say, whether one change woke them or a moment that came for all of them.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from heapq import heappop, heappush
from itertools import count
from typing import Final

import trio

from actors.kit.cells import Signal
from supervisor.host.loop.pauses import keep_many

PER_TURN: Final = 32
"""A stream that is woken takes about a tenth of a millisecond of the loop."""
MANY: Final = 256
"""After so many in a row what they left is kept out of searches for garbage: 20 things each that wait for the next."""

Wake = Callable[[], None]
"""Wakes somebody; must not raise."""


class Wakes:
    """What is to be called on the loop, in turns. One for each run of the loop, see `wakes`."""

    def __init__(self) -> None:
        self._due: deque[Wake] = deque()
        self._later: list[tuple[float, int, Wake]] = []
        self._numbers = count()
        self._alarm: trio.CancelScope | None = None
        self._woken = 0

    def soon(self, wake: Wake) -> None:
        """Call `wake` after those that were asked for before. Never waits."""
        self._due.append(wake)
        if len(self._due) == 1:
            trio.lowlevel.current_trio_token().run_sync_soon(self._wake)

    def at(self, moment: float, wake: Wake) -> None:
        """Call `wake` in its turn once it is `moment`, in seconds of the trio clock. Never waits."""
        heappush(self._later, (moment, next(self._numbers), wake))
        if self._alarm is None:
            self._alarm = trio.CancelScope(deadline=moment)
            trio.lowlevel.spawn_system_task(self._watch)
        elif moment < self._alarm.deadline:
            self._alarm.deadline = moment

    def _wake(self) -> None:
        few = min(PER_TURN, len(self._due))
        for _ in range(few):
            self._due[0]()
            self._due.popleft()  # only now, so that whoever asks meanwhile knows that this goes on
        self._woken += few
        if self._woken >= MANY:
            keep_many()
            self._woken = 0
        if not self._due:
            self._woken = 0
        else:
            trio.lowlevel.current_trio_token().run_sync_soon(self._wake)

    async def _watch(self) -> None:
        """Wait for the earliest moment, as long as there are any."""
        while self._alarm is not None:
            with self._alarm:
                await trio.sleep_forever()
            now = trio.current_time()
            while self._later and self._later[0][0] <= now:
                self.soon(heappop(self._later)[2])
            self._alarm = trio.CancelScope(deadline=self._later[0][0]) if self._later else None


_wakes: trio.lowlevel.RunVar[Wakes] = trio.lowlevel.RunVar("_wakes")


def wakes() -> Wakes:
    try:
        return _wakes.get()
    except LookupError:
        _wakes.set(made := Wakes())
        return made


class Bell:
    """What one task waits at for whatever may concern it; whoever is rung for takes turns with all others."""

    def __init__(self) -> None:
        self._wakes = wakes()
        self._rung = False
        self._waiting: trio.lowlevel.Task | None = None
        self._alarms: list[float] = []

    def ring(self) -> None:
        """End the wait soon, or the next one at once. Never waits."""
        if not self._rung:
            self._rung = True
            self._wakes.soon(self._wake)

    async def rings(self, by: float = math.inf) -> None:
        """Wait until it is rung, or about until `by`, in seconds of the trio clock; maybe for less. One task only.

        A checkpoint unless it was rung since the last time.
        """
        if not self._rung:
            if by < math.inf and (not self._alarms or by < self._alarms[0]):  # else that comes first, and asks again
                heappush(self._alarms, by)
                self._wakes.at(by, self._on_alarm)
            self._waiting = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._given_up)
        self._rung = False

    def _wake(self) -> None:
        if self._rung and self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            trio.lowlevel.reschedule(waiting)

    def _on_alarm(self) -> None:
        heappop(self._alarms)
        self.ring()

    def _given_up(self, _: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
        self._waiting = None
        return trio.lowlevel.Abort.SUCCEEDED


class DebouncedSignal:
    """A `Signal` that tells `debounce_s` seconds after another one did, once for all that came until then.

    So nobody is woken twice, to wait for more changes and to look at them.
    """

    def __init__(self, signal: Signal, debounce_s: Callable[[], float]) -> None:
        self._signal = signal
        self._debounce_s = debounce_s
        self._heard = ExitStack()
        self._told: dict[Wake, None] = {}
        self._due = False

    @contextmanager
    def on_set(self, tell: Wake) -> Iterator[None]:
        """See `Signal`. What came before anybody waited is told to nobody."""
        if not self._told:
            self._heard.enter_context(self._signal.on_set(self._hear))
        self._told[tell] = None
        try:
            yield
        finally:
            del self._told[tell]
            if not self._told:
                self._heard.close()

    def _hear(self) -> None:
        if not self._due:
            self._due = True
            wakes().at(trio.current_time() + self._debounce_s(), self._tell)

    def _tell(self) -> None:
        self._due = False
        for tell in self._told:
            tell()
