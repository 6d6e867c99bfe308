"""How often each tool was called, how often it failed and how long it took. Written to the store now and then."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import trio

from actors.catalogue.criteria import ToolTotals
from actors.principal import Principal
from supervisor.store import Store, ToolUsage

FLUSH_S = 5.0

Key = tuple[Principal, str, str]
Noted = Callable[[str, str, bool, float], None]
"""Told of each call: server, tool, whether it was good, and its milliseconds."""


class Usage:
    """Totals since the store was made, in milliseconds; what was not handed to it yet is kept apart."""

    def __init__(self, store: Store, noted: Noted = lambda server, tool, good, milliseconds: None) -> None:
        self._store = store
        self._noted = noted
        self._totals: dict[Key, ToolUsage] = {}
        self._fresh: dict[Key, ToolUsage] = {}
        self._loaded = False

    async def load(self) -> None:
        if not self._store.ready.is_set():
            return
        saved = {(row.principal, row.server, row.tool): row for row in await self._store.load_usage()}
        self._totals, self._loaded = saved, True

    def add(
        self, principal: Principal, server: str, tool: str, good: bool, milliseconds: float, waited_ms: float = 0.0
    ) -> None:
        """Count one call, which waited for its server before it took so long."""
        self._noted(server, tool, good, milliseconds)
        used = ToolUsage(
            principal=principal,
            server=server,
            tool=tool,
            calls=1,
            failures=int(not good),
            total_ms=milliseconds,
            waited_ms=waited_ms,
        )
        before = self._fresh.get((principal, server, tool))
        self._fresh[principal, server, tool] = used if before is None else before.plus(used)

    def flush(self) -> None:
        if self._fresh:
            self._store.add_usage(self._fresh.values())
            self._totals, self._fresh = self._sums(), {}

    async def run(self) -> None:
        while True:
            await trio.sleep(FLUSH_S)
            self.flush()
            if not self._loaded:
                await self.load()

    def table(self, principal: Principal) -> list[dict[str, object]]:
        rows = sorted(self._of(principal), key=lambda row: (-row.calls, row.server, row.tool))
        return [
            {name: value for name, value in msgspec.structs.asdict(row).items() if name != "principal"}
            for row in rows[:1000]
        ]

    def totals(self, principal: Principal) -> dict[tuple[str, str], ToolTotals]:
        return {
            (row.server, row.tool): ToolTotals(row.calls, row.failures, row.total_ms, row.waited_ms)
            for row in self._of(principal)
        }

    def _of(self, principal: Principal) -> list[ToolUsage]:
        return [row for row in self._sums().values() if row.principal == principal]

    def _sums(self) -> dict[Key, ToolUsage]:
        sums = dict(self._totals)
        for key, row in self._fresh.items():
            sums[key] = sums[key].plus(row) if key in sums else row
        return sums
