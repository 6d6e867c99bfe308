"""The end of a daemon that nobody uses any more."""

from __future__ import annotations

import logging
from typing import Final

import trio

from supervisor.front.edge.wire import ConnectionCounters

log = logging.getLogger(__name__)

LOOKS: Final = 8
"""So often is looked within the time, which is kept to that part."""


async def end_when_idle(counters: ConnectionCounters, idle_exit_s: float, closing: trio.Event) -> None:
    """Set `closing` once no connection has been open for `idle_exit_s`; never, if that is 0.

    Connections are all there is: a client that is gone leaves a session over HTTP behind, a living one opens another.
    """
    if not idle_exit_s:
        return
    quiet, accepted = 0, counters.accepted
    while quiet < LOOKS:
        await trio.sleep(idle_exit_s / LOOKS)
        is_quiet = not counters.open and counters.accepted == accepted
        quiet, accepted = quiet + 1 if is_quiet else 0, counters.accepted
    log.info("no client has been connected for %g s: the end", idle_exit_s)
    closing.set()
