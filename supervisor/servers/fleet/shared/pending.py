"""What the engine was not told yet, and whoever waits until it was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import trio

TOLD_S: Final = 2.0
"""For so long whoever has put something waits for the engine."""


class Pending:
    """Keys, the oldest first."""

    def __init__(self) -> None:
        self._keys: dict[str, None] = {}
        self._bell = trio.lowlevel.ParkingLot()
        self._told = trio.lowlevel.ParkingLot()

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def add(self, key: str) -> None:
        self._keys[key] = None
        self.ring()

    def remove(self, key: str) -> None:
        """The engine knows it, or need not."""
        self._keys.pop(key, None)
        self._told.unpark_all()

    def ring(self) -> None:
        """There is something to do for whoever tells the engine."""
        self._bell.unpark_all()

    async def wait(self) -> None:
        """Wait until there may be something to do."""
        await self._bell.park()

    async def flush(self) -> bool:
        """Wait until the engine knows what is there now, or for a while; say whether it does. A checkpoint."""
        await trio.lowlevel.checkpoint()
        mine = self._keys.copy()
        with trio.move_on_after(TOLD_S):
            while mine.keys() & self._keys.keys():
                await self._told.park()
        return not mine.keys() & self._keys.keys()
