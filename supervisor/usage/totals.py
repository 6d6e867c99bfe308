"""How often each tool was called since the store was made, how often it failed and how long it took."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import msgspec
import trio

from actors.catalogue.criteria import ToolTotals
from actors.principal import Principal
from supervisor.store import Store, ToolUsage
from supervisor.usage.history import History
from supervisor.usage.records import CallRecord

FLUSH_S = 5.0

ToolKey = tuple[str, str]
"""Of a tool: its server, and its name."""
Ended = Callable[[CallRecord], None]
"""Told of each call."""
Noted = Callable[[str, str, bool, float], None]
"""Told of each call: server, tool, whether it was good, and its milliseconds."""


class Usage:
    """Totals since the store was made, in milliseconds; what was not handed to it yet is kept apart."""

    def __init__(
        self,
        store: Store,
        history: History,
        noted: Noted = lambda server, tool, good, milliseconds: None,
        ended: Ended = lambda record: None,
    ) -> None:
        self.history = history
        self._store = store
        self._noted = noted
        self._ended = ended
        self._totals: defaultdict[Principal, dict[ToolKey, ToolUsage]] = defaultdict(dict)
        self._fresh: defaultdict[Principal, dict[ToolKey, ToolUsage]] = defaultdict(dict)
        self._loaded = False
        self.tell: Callable[[CallRecord], None] = lambda record: None
        """Told of each call, also of those that are not counted."""

    async def load(self) -> None:
        if not self._store.ready.is_set():
            return
        rows = await self._store.load_usage()
        self._totals.clear()
        for row in rows:
            self._totals[row.principal][row.server, row.tool] = row
        self._loaded = True

    def add(self, record: CallRecord) -> None:
        """Count a call that has ended. One that was refused or given up says nothing about its tool."""
        self.history.add(record)
        self.tell(record)
        self._ended(record)
        if not record.server or record.outcome in ("rejected", "cancelled"):
            return
        good = record.outcome in ("ok", "tool_error")
        self._noted(record.server, record.tool, good, record.took_ms)
        used = ToolUsage(
            principal=record.principal,
            server=record.server,
            tool=record.tool,
            calls=1,
            failures=int(not good),
            total_ms=record.took_ms,
            waited_ms=record.waited_ms,
        )
        _count(self._fresh[record.principal], used)

    def flush(self) -> None:
        if self._fresh:
            rows = [row for own in self._fresh.values() for row in own.values()]
            self._store.add_usage(rows)
            for row in rows:
                _count(self._totals[row.principal], row)
            self._fresh.clear()

    async def run(self) -> None:
        while True:
            await trio.sleep(FLUSH_S)
            self.flush()
            if not self._loaded:
                await self.load()

    def table(self, principal: Principal) -> list[dict[str, object]]:
        rows = sorted(self._of(principal).values(), key=lambda row: (-row.calls, row.server, row.tool))
        return [
            {name: value for name, value in msgspec.structs.asdict(row).items() if name != "principal"}
            for row in rows[:1000]
        ]

    def totals(self, principal: Principal) -> dict[tuple[str, str], ToolTotals]:
        return {
            key: ToolTotals(row.calls, row.failures, row.total_ms, row.waited_ms)
            for key, row in self._of(principal).items()
        }

    def _of(self, principal: Principal) -> dict[ToolKey, ToolUsage]:
        """Return what one has used, without a look at what all others have."""
        own = dict(self._totals.get(principal, {}))
        for row in self._fresh.get(principal, {}).values():
            _count(own, row)
        return own


def _count(own: dict[ToolKey, ToolUsage], row: ToolUsage) -> None:
    key = row.server, row.tool
    before = own.get(key)
    own[key] = row if before is None else before.plus(row)
