"""A gate with a fixed number of places, where urgent waiters pass the patient ones.

Cold starts share one: somebody who waits for a call must not queue behind the discovery of ninety other servers. A
place that becomes free is handed to one waiter: nobody who comes later can take it on the way.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


class Turn:
    """One wait for a place. `urgent` may be raised while it waits."""

    __slots__ = ("granted", "urgent")

    def __init__(self, *, urgent: bool) -> None:
        self.urgent = urgent
        self.granted = trio.Event()


class Gate:
    """At most `places` holders at once; among the waiters, urgent ones go first, then first come first served."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: list[Turn] = []

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        return len(self._waiting)

    @property
    def free(self) -> int:
        """How many places nobody holds."""
        return self._free

    @asynccontextmanager
    async def place(self, turn: Turn) -> AsyncIterator[None]:
        """Hold one place for the block. A checkpoint."""
        await trio.lowlevel.checkpoint()
        if self._free > 0:
            self._free -= 1
        else:
            await self._queue(turn)
        try:
            yield
        finally:
            self._hand_over()

    async def _queue(self, turn: Turn) -> None:
        self._waiting.append(turn)
        try:
            await turn.granted.wait()
        except BaseException:
            if turn in self._waiting:
                self._waiting.remove(turn)
            else:
                self._hand_over()
            raise

    def _hand_over(self) -> None:
        """Give one place to the first urgent waiter, or the first one, or back."""
        turn = next((turn for turn in self._waiting if turn.urgent), self._waiting[0] if self._waiting else None)
        if turn is None:
            self._free += 1
            return
        self._waiting.remove(turn)
        turn.granted.set()
