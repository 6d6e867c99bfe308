"""The tables of what was called: sums of periods, and the newest calls, both encoded by whoever saves them."""

from __future__ import annotations

from typing import Final

from supervisor.store.write_behind import WriteBehind
from supervisor.store.writes import Payload

MAX_BATCHES: Final = 4096
"""Batches of calls that wait for the disk, at most; the oldest give way."""


class CallTables(WriteBehind):
    """What the store keeps of calls; see `Store`."""

    def save_period(self, level: str, start: int, payload: Payload) -> None:
        """Keep the sums of the period that begins then (unix s), in the place of those before."""
        values = (level, start, payload)
        self._put(("period", level, str(start)), ("INSERT OR REPLACE INTO call_periods VALUES (?, ?, ?)", values))

    async def load_periods(self, level: str, since: float) -> list[tuple[int, bytes]] | None:
        """Return the start and the sums of each period that begins then or later; None if the disk does not say."""
        query = "SELECT start, payload FROM call_periods WHERE level = ? AND start >= ? ORDER BY start"
        return await self._read(self._database.load, tuple[int, bytes], query, (level, since))

    def expire_periods(self, level: str, before: float) -> None:
        """Forget the periods that began before a moment."""
        expire = "DELETE FROM call_periods WHERE level = ? AND start < ?"
        self._put(("expired periods", level), (expire, (level, before)))

    def append_calls(self, number: int, payload: Payload, keep: int) -> None:
        """Add calls, of which the first is the `number`-th of all, and forget those that are `keep` older."""
        trim = ("DELETE FROM calls WHERE number < ?", (number - keep,))
        insert = ("INSERT OR REPLACE INTO calls VALUES (?, ?)", (number, payload))
        self._put(("calls", str(number % MAX_BATCHES)), insert, trim)

    async def load_calls(self) -> list[tuple[int, bytes]] | None:
        """Return the batches that are kept, the oldest first, each with the number of its first call."""
        return await self._read(
            self._database.load, tuple[int, bytes], "SELECT number, payload FROM calls ORDER BY number"
        )
