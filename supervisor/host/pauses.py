"""Short pauses of the loop: how Python shares its lock and looks for garbage, and how much has its turn at once.

- A thread that wants to run asks the running one to let go after the switch interval; the loop asks again after each of
  its system calls, three times in a turn. A fifth of the usual 5 ms costs the threads next to nothing.
- A full search for cyclic garbage walks everything that lives, and everything stands still: 1.4 s with ten thousand
  clients. So whatever such a search took long for is kept out of the next ones, as is at once what lives as long as the
  daemon, its code and its catalogue. What is not needed any more is still freed at once, unless it is part of a cycle:
  that is never freed then. Hence nothing that comes and goes may be one: no call, no connection, no server.
- Trio takes all that is ready at once and runs its tasks in one turn: three thousand connections whose client has died
  held the loop for half a second, and as many that asked at the same moment for a quarter. The kernel hands out what is
  ready in turns, so only a few are taken in each, and whoever is left over comes next. Trio has no setting for it, only
  an attribute: what it asks the kernel with. That is also where a turn ends and the next one begins: an instrument of
  trio takes 2 µs in each turn.
- Ten thousand streams that are woken together hold the loop until the last of them has written what it has to say,
  whether one change woke them or a moment that came for all of them. So many tasks are woken a few in each turn.
"""

from __future__ import annotations

import gc
import logging
import math
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final, Literal

import trio

from actors.catalogue.snapshot import Catalogue
from actors.kit import Latest
from actors.kit.cells import Signal
from supervisor.host.turns import LoopTurns, loop_turns

log = logging.getLogger(__name__)

READY_PER_TURN: Final = 4
"""A request is handled in the turn in which it is read, up to where it waits; the longest search takes 4 ms."""
_MANY_READY: Final = 256
"""After so many in a row garbage is searched for. Where things of before are freed as fast as new ones are made the
interpreter does not do it, and then once for all of it: 0.1 s. And a search that is asked for waits for its turn."""

Search = Callable[[], None]
Events = list[tuple[int, int]]


class _Few:
    """An epoll that tells of a few descriptors at a time."""

    def __init__(self, epoll: Any, search: Search, turns: LoopTurns) -> None:
        self._all: Callable[[float, int], Events] = epoll.poll
        self._search = search
        self._turns = turns
        self._in_a_row = 0
        self.register, self.modify, self.unregister = epoll.register, epoll.modify, epoll.unregister
        self.close = epoll.close

    def poll(self, timeout: float, most: int) -> Events:
        """Wait as the epoll does. Once it has told of as many as it may again and again, search for garbage first."""
        if self._in_a_row >= _MANY_READY:
            self._in_a_row = 0
            self._search()
        self._turns.end()
        events = self._all(timeout, min(most, READY_PER_TURN))
        self._turns.begin()
        self._in_a_row = self._in_a_row + len(events) if len(events) == READY_PER_TURN else 0
        return events


def few_at_once(search: Search, turns: LoopTurns) -> None:
    """Bound what this run of the loop takes in one turn; `search` searches for garbage, `turns` are told of each.

    Nothing changes where trio asks the kernel in another way: on other systems, and maybe in a later version.
    """
    inside: Any = trio
    try:
        manager = inside._core._run.GLOBAL_RUN_CONTEXT.runner.io_manager
        manager._epoll = _Few(manager._epoll, search, turns)
    except AttributeError:
        log.debug("trio takes all that is ready in one turn")


SWITCH_INTERVAL_S = 0.001
"""For the whole process, for good."""
LONG_S = 0.005
"""A full search that took longer is not made again over the same things."""
OFTEN = 2
"""After so many searches among what is new, all that is not taken out is searched: some 15,000 things."""
_NEVER = 1_000_000
LEAST_GROWN = 500
"""Documents of an index that are worth another time."""
Soon = Callable[[Callable[[], None]], None]


def keep_many() -> None:
    """Search what is young now, and take what is left out of the search: for whoever makes very much that will live.

    The interpreter counts what is made less what is freed. Where as much is freed as is made it does not search, and
    then once for all of it: 0.2 s.
    """
    gc.collect(1)
    gc.freeze()


@contextmanager
def short_searches(soon: Soon, clock: Callable[[], float] = time.perf_counter) -> Iterator[Callable[[], None]]:
    """Bound the searches for garbage, for the block: often among little, and what took long is kept out of the next.

    The interpreter itself searches all only once what is new has grown to a quarter of what the last search left, taken
    out or not: with three thousand clients for 0.13 s. So `soon` calls the search, from any thread, on the loop.
    """
    thresholds = gc.get_threshold()
    searched_new = 0

    def search_all() -> None:
        nonlocal searched_new
        searched_new, began = 0, clock()
        gc.collect()
        if clock() - began > LONG_S:
            gc.freeze()

    def watch(phase: Literal["start", "stop"], search: dict[str, int]) -> None:
        nonlocal searched_new
        if phase == "stop" and search["generation"] == 1:
            searched_new += 1
            if searched_new == OFTEN:
                soon(search_all)

    gc.callbacks.append(watch)
    gc.set_threshold(*thresholds[:2], _NEVER)
    try:
        yield search_all
    finally:
        gc.callbacks.remove(watch)
        gc.set_threshold(*thresholds)


@contextmanager
def short_pauses() -> Iterator[None]:
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with short_searches(trio.lowlevel.current_trio_token().run_sync_soon) as search:
        few_at_once(search, loop_turns())
        yield


async def keep_catalogue(catalogue: Latest[Catalogue], keep: Callable[[], None] = gc.freeze) -> None:
    """Shorten the searches for garbage, for ever: at once, as offers may be many, once the index is there, and whenever
    that has doubled: a daemon that knows no server yet learns ten thousand tools while it runs.
    """
    keep()
    kept: int | None = None
    while True:
        size = len(catalogue.value.index)
        if catalogue.value.indexed and (kept is None or size >= max(2 * kept, LEAST_GROWN)):
            keep()
            kept = size
        await catalogue.wait_newer(catalogue.version)


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
