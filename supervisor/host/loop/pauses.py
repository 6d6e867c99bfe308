"""Short pauses of the loop: how Python shares its lock and looks for garbage, and how much has its turn at once.

- A thread that wants to run asks the running one to let go after the switch interval; the loop asks again after each
  of its system calls, three times in a turn. A fifth of the usual 5 ms costs the threads next to nothing.
- What is ready at once is taken a few in each turn, see `readiness`.
- A full search for cyclic garbage walks everything that lives, and everything stands still: 1.4 s with ten thousand
  clients. So whatever such a search took long for is kept out of the next ones, as is at once what lives as long as
  the daemon, its code and its catalogue. What is not needed any more is still freed at once, unless it is part of a
  cycle: that is never freed then. Hence nothing that comes and goes may be one: no call, no connection, no server.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import trio

from actors.catalogue.snapshot import Catalogue
from actors.kit import Latest
from supervisor.host.loop.readiness import few_at_once
from supervisor.host.loop.turns import loop_turns

SWITCH_INTERVAL_S = 0.001
"""For the whole process, for good."""
LONG_S = 0.005
"""A full search that took longer is not made again over the same things."""
OFTEN = 2
"""After so many searches among what is new, all that is not taken out is searched: some 15,000 things."""
NEVER = 1_000_000
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
    gc.set_threshold(*thresholds[:2], NEVER)
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
