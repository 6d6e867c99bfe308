"""Who may start now, over all servers: starting is what overloads a machine, not running.

- A place for spawning is held from the start of a process to the first thing it says, for a short time at most: a
  server that hangs costs the others no more than that.
- A place for installing is held, before, by a server that its launcher may have to install first, until it says
  something, ends, or nothing of it works any more. Two installs of the same package run one after the other: package
  managers share directories between them that they do not lock.
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
KEPT = 1
"""How many places of each kind are kept for servers that a call waits for."""


class Turn:
    """What one start waits with, at one gate after another. Once `hurry` was called it passes the patient ones.

    `again`: the one before has failed. It lets first attempts pass. `number`: which turn it is of all that were ever
    made. It keeps its place in the line from one gate to the next. `moment`: when whoever has a place may enter, in
    seconds of the trio clock.
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
    """A fixed number of places, where urgent waiters pass the patient ones, and first attempts those again.

    Cold starts share one: somebody who waits for a call must not queue behind the discovery of ninety other servers.
    Hence some places are kept for the urgent, too. Nor must a server that is new queue behind those that have failed
    before, of which there may be many that fail slowly, again and again: they never have all the places that patient
    ones may have. A place that becomes free is handed to one waiter: nobody who comes later can take it on the way.

    At most `places` holders at once; of equal waiters the one whose turn was made first goes first.

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


class Starts:
    """`spawns` processes may be starting and `installs` servers installing at once; `per_s` processes start a second.

    `slot_s`: how long, in seconds, a process that says nothing counts as starting.
    """

    def __init__(self, spawns: int = 4, *, installs: int = 4, per_s: float = 10.0, slot_s: float = 1.0) -> None:
        self.spawning = Gate(spawns, kept=KEPT, interval_s=1 / per_s)
        self.installing = Gate(installs, kept=KEPT)
        self._slot_s = slot_s
        self._packages: dict[str, Gate] = {}

    @asynccontextmanager
    async def install(self, turn: Turn, package: str) -> AsyncIterator[None]:
        """Hold a place for installing, and be the only one for this package unless it is empty. A checkpoint."""
        async with self._alone(turn, package), self.installing.place(turn):
            yield

    async def spawn(self, turn: Turn, placed: trio.Event, spoken: trio.Event) -> None:
        """Wait for a place, set `placed`, and hold it until `spoken` is set, or for `slot_s`. A checkpoint."""
        async with self.spawning.place(turn):
            placed.set()
            with trio.move_on_after(self._slot_s):
                await spoken.wait()

    @asynccontextmanager
    async def _alone(self, turn: Turn, package: str) -> AsyncIterator[None]:
        if not package:
            yield
            return
        async with self._packages.setdefault(package, Gate(1)).place(turn):
            yield
