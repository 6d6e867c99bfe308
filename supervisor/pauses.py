"""Short pauses of the loop while threads work: how Python shares its lock, and how it looks for garbage.

- A thread that wants to run asks the running one to let go after the switch interval; the loop asks again after each
  of its system calls, three times in a turn. A fifth of the usual 5 ms costs the threads next to nothing.
- A full search for cyclic garbage walks everything that lives, and everything stands still. What lives for the
  life of the daemon, its code and its first catalogue, is taken out of that walk. What is not needed any more is still
  freed at once, unless it is part of a cycle.
"""

from __future__ import annotations

import gc
import sys

from actors.catalogue.snapshot import Catalogue
from actors.kit import Latest

SWITCH_INTERVAL_S = 0.001


def switch_often() -> None:
    """Let threads take turns every millisecond. For the whole process, for good."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)


def keep_what_lives() -> None:
    """Take all that is there now out of the search for garbage. Takes microseconds; harmless when repeated."""
    gc.freeze()


async def keep_catalogue(catalogue: Latest[Catalogue]) -> None:
    """Shorten the searches for garbage: at once, as offers may be many, and once the index is there."""
    keep_what_lives()
    while not catalogue.value.indexed:
        await catalogue.changed(catalogue.version)
    keep_what_lives()
