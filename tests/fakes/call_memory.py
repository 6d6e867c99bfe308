"""A store of calls in memory, whose disk may not be there yet."""

from __future__ import annotations

import trio

from supervisor.usage.history import History


class CallMemory:
    """Implements `CallStore`."""

    def __init__(self) -> None:
        self.ready = trio.Event()
        self.rows: dict[tuple[str, int], bytes] = {}
        self.batches: dict[int, bytes] = {}

    def save_period(self, level: str, start: int, payload: bytes) -> None:
        self.rows[level, start] = payload

    async def load_periods(self, level: str, since: float) -> list[tuple[int, bytes]] | None:
        await trio.lowlevel.checkpoint()
        return [(at, row) for (each, at), row in sorted(self.rows.items()) if each == level and at >= since]

    def expire_periods(self, level: str, before: float) -> None:
        self.rows = {key: row for key, row in self.rows.items() if key[0] != level or key[1] >= before}

    def append_calls(self, number: int, payload: bytes, keep: int) -> None:
        self.batches[number] = payload
        self.batches = {each: batch for each, batch in self.batches.items() if each >= number - keep}

    async def load_calls(self) -> list[tuple[int, bytes]] | None:
        await trio.lowlevel.checkpoint()
        return sorted(self.batches.items())


def no_history() -> History:
    """Return one without a call."""
    return History(CallMemory(), lambda: 1000.0, 10)
