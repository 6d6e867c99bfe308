"""Whether anybody uses a daemon: one that nobody uses any more may end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio

from supervisor.front.edge.wire import ConnectionCounters

LOOKS: Final = 8
"""So often is looked within the time, which is kept to that part."""


async def watch_idleness(counters: ConnectionCounters, idle_s: float, tell: Callable[[bool], None]) -> None:
    """Tell whether no connection has been open for `idle_s`, whenever that becomes otherwise; never, if that is 0.

    Connections are all there is: a client that is gone leaves a session over HTTP behind, a living one opens another.
    """
    if not idle_s:
        return
    quiet, accepted, told = 0, counters.accepted, False
    while True:
        await trio.sleep(idle_s / LOOKS)
        is_quiet = not counters.open and counters.accepted == accepted
        quiet, accepted = quiet + 1 if is_quiet else 0, counters.accepted
        if (is_idle := quiet >= LOOKS) != told:
            told = is_idle
            tell(is_idle)
