"""What is ready, a few sockets in each turn of the loop, so that everybody else has a turn in between.

Trio takes all that is ready at once and runs its tasks in one turn: three thousand connections whose client has died
held the loop for half a second, and as many that asked at the same moment for a quarter. The kernel hands out what is
ready in turns, so whoever is left over comes next. Trio has no setting for it, only an attribute: what it asks the
kernel with. That is also where a turn ends and the next one begins: an instrument of trio takes 2 µs in each turn.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

import trio

from supervisor.host.loop.turns import LoopTurns

log = logging.getLogger(__name__)

READY_PER_TURN: Final = 4
"""A request is handled in the turn in which it is read, up to where it waits; the longest search takes 4 ms."""
MANY: Final = 256
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
        if self._in_a_row >= MANY:
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
