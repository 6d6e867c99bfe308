"""A gate with a fixed number of places, where urgent waiters pass the patient ones.

Cold starts share one: somebody who waits for a call must not queue behind the discovery of ninety other servers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


class Gate:
    """At most `places` holders at once; among the waiters, urgent ones go first, then first come first served."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._urgent = trio.lowlevel.ParkingLot()
        self._patient = trio.lowlevel.ParkingLot()

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        return len(self._urgent) + len(self._patient)

    @asynccontextmanager
    async def place(self, *, urgent: bool) -> AsyncIterator[None]:
        """Hold one place for the block. A checkpoint."""
        await trio.lowlevel.checkpoint_if_cancelled()
        while self._free <= 0:
            await (self._urgent if urgent else self._patient).park()
        self._free -= 1
        try:
            yield
        finally:
            self._free += 1
            (self._urgent if len(self._urgent) else self._patient).unpark()
