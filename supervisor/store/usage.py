"""How often each tool was called, how often it failed and how long it took. Written to the store now and then."""

from __future__ import annotations

import msgspec
import trio

from supervisor.store import Store, ToolUsage

FLUSH_S = 5.0


class Usage:
    """Totals since the store was made, in milliseconds; what is not written yet is kept apart."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._totals: dict[tuple[str, str], ToolUsage] = {}
        self._fresh: dict[tuple[str, str], ToolUsage] = {}
        self._loaded = False

    async def load(self) -> None:
        """Read the totals of earlier runs, if the store can be read; `run` tries again."""
        if not self._store.opened.is_set():
            return
        saved = {(row.server, row.tool): row for row in await self._store.load_usage()}
        for key, row in self._fresh.items():  # all that is not in the store yet
            saved[key] = saved[key].plus(row) if key in saved else row
        self._totals, self._loaded = saved, True

    def add(self, server: str, tool: str, good: bool, milliseconds: float) -> None:
        """Count one call."""
        for kept in (self._totals, self._fresh):
            before = kept.get((server, tool)) or ToolUsage(server=server, tool=tool, calls=0, failures=0, total_ms=0.0)
            kept[server, tool] = ToolUsage(
                server=server,
                tool=tool,
                calls=before.calls + 1,
                failures=before.failures + (not good),
                total_ms=before.total_ms + milliseconds,
            )

    def flush(self) -> None:
        """Hand what is new to the store."""
        if self._fresh:
            self._store.add_usage(self._fresh.values())
            self._fresh = {}

    async def run(self) -> None:
        """Flush every few seconds, for ever."""
        while True:
            await trio.sleep(FLUSH_S)
            self.flush()
            if not self._loaded:
                await self.load()

    def table(self) -> list[dict[str, object]]:
        """Return the totals as plain values, the most called first."""
        rows = sorted(self._totals.values(), key=lambda row: (-row.calls, row.server, row.tool))
        return [msgspec.to_builtins(row) for row in rows[:1000]]

    def totals(self) -> dict[tuple[str, str], tuple[int, int, float]]:
        """Return (calls, failures, milliseconds) of every tool by (server, tool)."""
        return {key: (row.calls, row.failures, row.total_ms) for key, row in self._totals.items()}
