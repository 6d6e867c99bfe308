"""Work that may take long for its size, done beside the loop.

- Small work is done at once: a thread would cost more than it saves.
- One piece of large work at a time: it holds Python's lock, so that two would only wait for each other, and the loop
  for both. The loop gets the lock back within a switch interval, or at the end of a single call into C; so whoever
  hands work in keeps each such call short.
- A bench for work that is mostly in C, without the lock, takes several pieces at a time.
- So many may wait for their turn; more are refused. What an answer still needs that is there waits however many do: a
  call that was made must not end as one that was refused, or it would be made again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

import trio

from actors.errors import TooManyCalls
from actors.kit.want import is_want

SMALL_BYTES = 4096
"""Of what a model writes; reading that costs a few milliseconds at the very worst. Work of that size is done at once:
whoever performs every call looks beforehand, as even a coroutine for it is too much.
"""
_MAX_WAITING = 64


T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Workbench:
    """Runs pure functions, so many large ones `at_once`. One for all that is done for clients, and one for searches."""

    def __init__(self, max_waiting: int = _MAX_WAITING, at_once: int = 1) -> None:
        self._turns = trio.CapacityLimiter(at_once)
        self._max_waiting = max_waiting

    async def run(self, size: int, work: Callable[[*Ts], T], *arguments: *Ts) -> T:
        """Return what `work` returns for input of `size` bytes, or raise what it raises.

        Raises `TooManyCalls` if too much waits already. A checkpoint only if the work is large.
        """
        if size <= SMALL_BYTES:
            return work(*arguments)
        if self._turns.statistics().tasks_waiting >= self._max_waiting:
            raise TooManyCalls("busy: too many large requests are being read; retry shortly")
        try:
            return await trio.to_thread.run_sync(work, *arguments, limiter=self._turns)
        except (OSError, RuntimeError, MemoryError) as error:
            if is_want(error):
                raise TooManyCalls("busy: the system has no room for large requests; retry shortly") from None
            raise

    async def finish(self, size: int, work: Callable[[*Ts], T], *arguments: *Ts) -> T:
        """Return what `work` returns for `size` bytes of an answer, or raise what it raises; nothing is refused.

        What waits is there already, and as much of it as there may be calls. It is done here if no thread is to be had.
        A checkpoint only if the work is large.
        """
        if size <= SMALL_BYTES:
            return work(*arguments)
        try:
            return await trio.to_thread.run_sync(work, *arguments, limiter=self._turns)
        except (OSError, RuntimeError, MemoryError) as error:
            if not is_want(error):
                raise
            return work(*arguments)


async def beside(work: Callable[[], T]) -> T:
    """Return what is worked out in a thread; here, if there is none to be had. A checkpoint."""
    try:
        return await trio.to_thread.run_sync(work)
    except (OSError, RuntimeError, MemoryError) as error:
        if not is_want(error):
            raise
        return work()
