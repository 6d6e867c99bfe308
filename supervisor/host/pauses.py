"""Short pauses of the loop while threads work: how Python shares its lock, and how it looks for garbage.

- A thread that wants to run asks the running one to let go after the switch interval; the loop asks again after each
  of its system calls, three times in a turn. A fifth of the usual 5 ms costs the threads next to nothing.
- A full search for cyclic garbage walks everything that lives, and everything stands still. What lives for the
  life of the daemon, its code and its catalogue, is taken out of that walk. What is not needed any more is still freed
  at once, unless it is part of a cycle: that is never freed then, so it is done a few times in a life and not often.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable

from actors.catalogue.snapshot import Catalogue
from actors.kit import Latest

SWITCH_INTERVAL_S = 0.001
LEAST_GROWN = 500
"""Documents of an index that are worth another time."""


def switch_often() -> None:
    """Let threads take turns every millisecond. For the whole process, for good."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)


def keep_what_lives() -> None:
    """Take all that is there now out of the search for garbage. Takes microseconds; harmless when repeated."""
    gc.freeze()


async def keep_catalogue(catalogue: Latest[Catalogue], keep: Callable[[], None] = keep_what_lives) -> None:
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
        await catalogue.changed(catalogue.version)
