"""Cells that are read without asking: the newest value, a bounded history.

A slow reader of a `Latest` costs one pending value, a slow reader of a `Feed` misses events and is told how many:
neither ever makes a queue grow.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Generic, Protocol, TypeVar

import trio

T = TypeVar("T")


class Latest(Generic[T]):
    """A cell with the newest value and a version that grows by one with each `set`."""

    def __init__(self, value: T) -> None:
        self.value = value
        self.version = 0
        self._waiters = trio.lowlevel.ParkingLot()
        self._told: dict[Callable[[], None], None] = {}

    def set(self, value: T) -> None:
        self.value = value
        self.version += 1
        self._waiters.unpark_all()
        for tell in self._told:
            tell()

    @contextmanager
    def on_set(self, tell: Callable[[], None]) -> Iterator[None]:
        """Have `tell`, which must neither wait nor raise, called with each `set` during the block.

        For those who are many: they need not all run in one turn of the loop, as who waits does.
        """
        self._told[tell] = None
        try:
            yield
        finally:
            del self._told[tell]

    async def wait_newer(self, seen: int) -> int:
        """Wait until the version is over `seen`; return it. Versions in between are skipped. A checkpoint."""
        if self.version > seen:
            await trio.lowlevel.checkpoint()
        while self.version <= seen:
            await self._waiters.park()
        return self.version


class Signal(Protocol):
    """Something that says when it may have changed."""

    def on_set(self, tell: Callable[[], None]) -> AbstractContextManager[None]:
        """Have `tell`, which must neither wait nor raise, called whenever it may have changed during the block."""


class AnyOf:
    """Several cells as one `Signal`."""

    def __init__(self, *cells: Latest[Any]) -> None:
        self._cells = cells

    @contextmanager
    def on_set(self, tell: Callable[[], None]) -> Iterator[None]:
        with ExitStack() as stack:
            for cell in self._cells:
                stack.enter_context(cell.on_set(tell))
            yield


class Feed(Generic[T]):
    """The newest `size` events, numbered from 1. Readers keep their own place."""

    def __init__(self, size: int) -> None:
        self._events: deque[T] = deque(maxlen=size)
        self._latest = Latest(0)

    @property
    def newest(self) -> int:
        """The number of the newest event, 0 before the first."""
        return self._latest.value

    def events(self) -> list[T]:
        """Return the events that are remembered, the oldest first."""
        return list(self._events)

    def append(self, event: T) -> None:
        self._events.append(event)
        self._latest.set(self._latest.value + 1)

    async def after(self, number: int) -> tuple[int, int, list[T]]:
        """Wait for events newer than `number`; return (newest number, how many were missed, events). A checkpoint."""
        await self._latest.wait_newer(number)
        wanted = self.newest - number
        events = list(self._events)[max(0, len(self._events) - wanted) :]
        return self.newest, wanted - len(events), events
