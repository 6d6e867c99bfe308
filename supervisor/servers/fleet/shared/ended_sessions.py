"""The sessions that end at this node, as the engine hears of them: whoever takes over for us must not revive them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import trio

from actors.errors import SupervisorError
from actors.kit import Pauses
from supervisor.fleet.engine import Engine

KEPT_S: Final = 2.0
"""For so long whoever ends a session waits for the engine."""
MAX_AT_ONCE: Final = 500
MAX_WAITING: Final = 20_000
"""Of what the engine was not told yet; then the oldest is forgotten."""


class EndedSessions:
    """Those that the engine was not told of yet. `now` gives unix seconds."""

    def __init__(self, engine: Engine, now: Callable[[], float] = time.time) -> None:
        self._engine = engine
        self._now = now
        self._waiting: dict[str, float] = {}
        self._written = trio.lowlevel.ParkingLot()
        self._bell = trio.lowlevel.ParkingLot()

    def note(self, digest: str, expires_at: float) -> None:
        """A session is over, whose id would be good until then, in unix seconds."""
        self._waiting[digest] = expires_at
        if len(self._waiting) > MAX_WAITING:
            del self._waiting[next(iter(self._waiting))]
        self._bell.unpark_all()

    async def flush(self) -> None:
        """Return when the engine knows of those that have ended so far, or after a while. A checkpoint."""
        await trio.lowlevel.checkpoint()
        mine = set(self._waiting)
        with trio.move_on_after(KEPT_S):
            while mine & self._waiting.keys():
                await self._written.park()

    async def run(self) -> None:
        """Tell the engine, as soon as it listens, for ever."""
        pauses = Pauses()
        while True:
            while not self._waiting:
                await self._bell.park()
            page = dict([*self._waiting.items()][:MAX_AT_ONCE])
            try:
                await self._engine.end_sessions({each: max(0.0, at - self._now()) for each, at in page.items()})
            except SupervisorError:
                await trio.sleep(pauses.next())
                continue
            pauses.reset()
            for each in page:
                self._waiting.pop(each, None)
            self._written.unpark_all()
