"""A store of calls in memory, whose disk may not be there yet."""

from __future__ import annotations

import trio

from supervisor.store.records import CALLS, PERIODS, SavedCalls, SavedPeriod
from supervisor.store.tables import CallRows, PeriodRows
from supervisor.usage.history import History
from tests.fakes.rows import MemoryRows


class _Periods(MemoryRows[SavedPeriod], PeriodRows):
    async def find(self, level: str, since: float) -> list[SavedPeriod] | None:
        await trio.lowlevel.checkpoint()
        return [row for _, row in sorted(self.kept.items()) if row.level == level and row.start >= since]

    def remove_before(self, level: str, moment: float) -> None:
        self.kept = {key: row for key, row in self.kept.items() if row.level != level or row.start >= moment}


class _Calls(MemoryRows[SavedCalls], CallRows):
    def append(self, batch: SavedCalls, keep: int) -> None:
        self.put(batch)
        self.kept = {number: row for number, row in self.kept.items() if number >= batch.number - keep}


class CallMemory:
    """The two tables, of one disk."""

    def __init__(self) -> None:
        self.periods, self.calls = _Periods(PERIODS), _Calls(CALLS)
        self.ready = trio.Event()

    @property
    def ready(self) -> trio.Event:
        return self.periods.ready

    @ready.setter
    def ready(self, event: trio.Event) -> None:
        self.periods.ready = event

    @property
    def written(self) -> int:
        return self.periods.writes + self.calls.writes


def no_history() -> History:
    """Return one without a call."""
    return History((memory := CallMemory()).periods, memory.calls, lambda: 1000.0, 10)
