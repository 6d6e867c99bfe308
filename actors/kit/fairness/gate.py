"""A gate with a fixed number of places, where urgent waiters pass the patient ones, and first attempts those again.

Cold starts share one: somebody who waits for a call must not queue behind the discovery of ninety other servers. Hence
some places are kept for the urgent, too. Nor must a server that is new queue behind those that have failed before, of
which there may be many that fail slowly, again and again: they never have all the places that patient ones may have.
A place that becomes free is handed to one waiter: nobody who comes later can
take it on the way. Beside the number of holders their pace may be bounded: a short burst, then one each `interval_s`.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from operator import attrgetter

import trio

_NUMBERS = count()


class Turn:
    """What one start waits with, at one gate after another. Once `hurry` was called it passes the patient ones.

    `again`: the one before has failed. It lets first attempts pass.
    `number`: which turn it is of all that were ever made. It keeps its place in the line from one gate to the next.
    `moment`: when whoever has a place may enter, in seconds of the trio clock.
    """

    __slots__ = ("_gate", "again", "granted", "moment", "number", "urgent")

    def __init__(self, *, urgent: bool = False, again: bool = False, before: Turn | None = None) -> None:
        """With `before` it has the place in the line that the other one had."""
        self.number: int = next(_NUMBERS) if before is None else before.number
        self.moment = -math.inf
        self.urgent = urgent
        self.again: bool = again if before is None else before.again
        self.granted = trio.Event()
        self._gate: Gate | None = None

    def hurry(self) -> None:
        self.urgent = True
        if self._gate is not None:
            self._gate.grant()

    def wait_at(self, gate: Gate | None) -> None:
        """Begin to wait at a gate, or end it with None."""
        self._gate = gate
        self.granted = trio.Event()


class Gate:
    """At most `places` holders at once; among the waiters, urgent ones go first, then first attempts, then those again;
    and of each the one whose turn was made first.

    The last `kept` places are for urgent ones alone, and the one before for these and first attempts, but where there
    is only one place that somebody may have everybody may have it. No more
    than `places` enter at once, and afterwards one each `interval_s` seconds.
    """

    def __init__(self, places: int, *, kept: int = 0, interval_s: float = 0.0) -> None:
        self._places = places
        self.free = places
        self._kept = max(0, min(kept, places - 1))
        self._kept_of_again = min(self._kept + 1, places - 1)
        self._interval_s = interval_s
        self._next = -math.inf
        self.waiting: list[Turn] = []

    @asynccontextmanager
    async def place(self, turn: Turn) -> AsyncIterator[None]:
        await trio.lowlevel.checkpoint()
        await self._queue(turn)
        try:
            await trio.sleep_until(turn.moment)
            yield
        finally:
            self._hand_over()

    @property
    def has_room(self) -> bool:
        """Whether a patient one could enter now: without waiting for a place, or for the pace."""
        return self.free > self._kept and not self.waiting and self._next <= trio.current_time()

    def grant(self) -> None:
        """Give the free places to those who may have them, for one who became urgent or a place that became free."""
        while (turn := self._first()) is not None:
            self.free -= 1
            self.waiting.remove(turn)
            turn.moment = self._moment()  # here, as tasks run in any order
            turn.granted.set()

    def _first(self) -> Turn | None:
        if self.free <= 0:
            return None
        urgent = next((turn for turn in self.waiting if turn.urgent), None)
        return urgent or next((turn for turn in self.waiting[:1] if self.free > self._kept_of(turn)), None)

    def _kept_of(self, turn: Turn) -> int:
        """Return how many places have to be free beside one for a patient turn."""
        return self._kept_of_again if turn.again else self._kept

    async def _queue(self, turn: Turn) -> None:
        turn.wait_at(self)
        insort(self.waiting, turn, key=attrgetter("again", "number"))
        self.grant()
        try:
            await turn.granted.wait()
        except BaseException:
            if turn in self.waiting:
                self.waiting.remove(turn)
            else:
                self._hand_over()
            raise
        finally:
            turn.wait_at(None)

    def _moment(self) -> float:
        earliest = trio.current_time() - (self._places - 1) * self._interval_s
        moment = max(self._next, earliest)
        self._next = moment + self._interval_s
        return moment

    def _hand_over(self) -> None:
        """Give one place to the first urgent waiter, or the first one, or back."""
        self.free += 1
        self.grant()
