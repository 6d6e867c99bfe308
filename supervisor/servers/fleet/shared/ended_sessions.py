"""The sessions that end at this node, as the engine hears of them: whoever takes over for us must not revive them."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import islice
from typing import Final

import trio

from actors.errors import SupervisorError
from actors.kit import Pauses
from supervisor.fleet.engine import Engine
from supervisor.servers.fleet.shared.pending import Pending

MAX_AT_ONCE: Final = 500
MAX_WAITING: Final = 20_000
"""Of what the engine was not told yet; then the oldest is forgotten."""


class EndedSessions:
    """Those that the engine was not told of yet. `now` gives unix seconds."""

    def __init__(self, engine: Engine, now: Callable[[], float] = time.time) -> None:
        self._engine = engine
        self._now = now
        self._expiring: dict[str, float] = {}
        self._pending = Pending()

    def note(self, digest: str, expires_at: float) -> None:
        """A session is over, whose id would be good until then, in unix seconds."""
        self._expiring[digest] = expires_at
        self._pending.add(digest)
        if len(self._pending) > MAX_WAITING:
            self._forget(next(iter(self._pending)))

    async def flush(self) -> None:
        """Return when the engine knows of those that have ended so far, or after a while. A checkpoint."""
        await self._pending.flush()

    async def run(self) -> None:
        """Tell the engine, as soon as it listens, for ever."""
        pauses = Pauses()
        while True:
            while not self._pending:
                await self._pending.wait()
            page, now = [*islice(self._pending, MAX_AT_ONCE)], self._now()
            try:
                await self._engine.end_sessions({each: max(0.0, self._expiring[each] - now) for each in page})
            except SupervisorError:
                await trio.sleep(pauses.next())
                continue
            pauses.reset()
            for each in page:
                self._forget(each)

    def _forget(self, digest: str) -> None:
        self._expiring.pop(digest, None)
        self._pending.remove(digest)
