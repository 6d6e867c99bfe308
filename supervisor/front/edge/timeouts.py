"""Deadlines of many things that all wait for the same time: the oldest is always the first one due.

So no timer and no order by time is needed for any of them: one task looks after all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import trio

T = TypeVar("T")


class Timeouts(Generic[T]):
    """What waits, each for `timeout_s`; `expire` is called for what has waited that long, and must not raise.

    What waits may be looked at and taken out at any time.
    """

    def __init__(self, timeout_s: float, expire: Callable[[T], None]) -> None:
        self._timeout_s = timeout_s
        self._expire = expire
        self._deadlines: dict[T, float] = {}
        self._bell = trio.lowlevel.ParkingLot()

    def add(self, item: T) -> None:
        self._deadlines[item] = trio.current_time() + self._timeout_s
        if len(self._deadlines) == 1:
            self._bell.unpark()

    def discard(self, item: T) -> bool:
        """It waits no more; return whether it did."""
        return self._deadlines.pop(item, None) is not None

    def expire_all(self) -> None:
        while self._deadlines:
            self._expire_first()

    def _expire_first(self) -> None:
        item = next(iter(self._deadlines))
        del self._deadlines[item]
        self._expire(item)

    async def run(self) -> None:
        while True:
            while not self._deadlines:
                await self._bell.park()
            # Nothing that is added later can be due sooner, so nobody has to wake us before.
            await trio.sleep_until(next(iter(self._deadlines.values())))
            now = trio.current_time()
            while self._deadlines and next(iter(self._deadlines.values())) <= now:
                self._expire_first()
