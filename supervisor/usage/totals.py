"""How often each tool was called since the store was made, how often it failed and how long it took.

- Calls that have ended wait until they are counted: some times a second, all together. To count one call takes a
  twentieth of what the call itself does, and most of that is the way from one place to the next. Many together take it
  once. Whoever reads what is counted has it settled first, so nobody sees it late.
- The arguments of the newest calls are in memory alone: nothing of them reaches the disk, a log, an event or a metric.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import trio

from actors.catalogue.criteria import ToolTotals
from actors.principal import Principal
from supervisor.store import Store, ToolUsage
from supervisor.usage.arguments import Hide, show_arguments
from supervisor.usage.history import FLUSH_S, History
from supervisor.usage.records import FAILED, UNHEARD, CallArguments, CallOutcome, CallRecord

log = logging.getLogger(__name__)

SETTLE_S: Final = 0.1
MOST: Final = 1000
"""So many calls are counted at once, in a few milliseconds."""

Take = Callable[[Sequence[CallRecord]], None]
"""Counts calls, in the order in which they ended. It does not raise."""
Noted = Callable[[str, str, bytes, CallOutcome, float], None]
"""Told of a call of a tool of a server: server, tool, the digest of its definition, how it ended, and milliseconds."""


def _note_nothing(server: str, tool: str, definition: bytes, outcome: CallOutcome, milliseconds: float) -> None:
    del server, tool, definition, outcome, milliseconds


class Ledger:
    """Hands calls to all `takers`. `clock` gives unix seconds; `noted` is told of each call in the task of the call."""

    def __init__(self, clock: Callable[[], float], noted: Noted = _note_nothing) -> None:
        self.takers: list[Take] = []
        self.made = 0
        """So many calls were added."""
        self._clock = clock
        self._noted = noted
        self._fresh: list[CallRecord] = []
        self._any = trio.Event()

    def add(self, record: CallRecord) -> None:
        """Keep a call that has ended now."""
        record.time = self._clock()
        self.made += 1
        if record.server:
            self._noted(record.server, record.tool, record.definition, record.outcome, record.took_ms)
        self._fresh.append(record)
        if len(self._fresh) == 1:
            self._any.set()
        elif len(self._fresh) >= MOST:
            self.settle()

    def settle(self) -> None:
        """Have all counted that is not."""
        if self._fresh:
            records, self._fresh = self._fresh, []
            for take in self.takers:
                try:
                    take(records)
                except Exception:  # a bug with a call must neither end the daemon nor cost what others count
                    log.exception("a bug while counting %d calls", len(records))

    async def run(self) -> None:
        """Settle for ever. Where nothing is called, nothing wakes up."""
        while True:
            await self._any.wait()
            await trio.sleep(SETTLE_S)
            self._any = trio.Event()
            self.settle()


HideFor = Callable[[Principal], Hide]
"""Gives what masks the secrets that are configured, those of somebody among them."""


class KeptArguments:
    """Keeps them while `wanted` says so, of `keep` calls; when it says so no more they are gone."""

    def __init__(self, keep: int, wanted: Callable[[], bool], hide_for: HideFor) -> None:
        self.wanted = wanted
        self._keep = keep
        self._hide_for = hide_for
        self._texts: dict[int, str] = {}

    def keep(self, turn: int, record: CallRecord, given: CallArguments) -> None:
        """Keep the arguments of the first, second, ... call, short and masked."""
        self._texts[turn] = show_arguments(given.arguments, self._hide_for(record.principal), given.schema)
        while len(self._texts) > self._keep:
            del self._texts[next(iter(self._texts))]

    def of(self, turn: int) -> str | None:
        """Return the arguments of the first, second, ... call as JSON; None if they are not kept."""
        self.drop_unwanted()
        return self._texts.get(turn)

    def drop_unwanted(self) -> None:
        """Keep none any more, where they are not wanted now."""
        if self._texts and not self.wanted():
            self._texts.clear()


QUIET_S: Final = 5.0
"""Where nothing is called it looks so often whether anything that is kept is to be forgotten."""

ToolKey = tuple[str, str]
"""Of a tool: its server, and its name."""


class Usage:
    """Totals since the store was made, in milliseconds; what was not handed to it yet is kept apart.

    All that counts calls is among the takers of the `ledger`; the `history` is.
    """

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float],
        keep: int,
        arguments: KeptArguments,
        noted: Noted = _note_nothing,
    ) -> None:
        """`keep` is for the history, `noted` for the ledger, the `clock` for both."""
        self.history = history = History(store.periods, store.calls, clock, keep)
        self.ledger = ledger = Ledger(clock, noted)
        self.arguments = arguments
        self._store = store
        self._totals: defaultdict[Principal, dict[ToolKey, ToolUsage]] = defaultdict(dict)
        self._fresh: defaultdict[Principal, dict[ToolKey, ToolUsage]] = defaultdict(dict)
        self._of_all: dict[ToolKey, ToolUsage] = {}
        self._loaded = False
        self._any = trio.Event()
        ledger.takers += (history.take, self.take)
        history.settle = ledger.settle

    async def load(self) -> None:
        if not self._store.ready.is_set():
            return
        rows = await self._store.usage.load()
        self._totals.clear()
        for row in rows:
            self._totals[row.principal][row.server, row.tool] = row
        self._of_all.clear()
        for row in (*rows, *(row for own in self._fresh.values() for row in own.values())):
            _count(self._of_all, row)
        self._loaded = True

    def add(self, record: CallRecord, given: CallArguments | None = None) -> None:
        """Have a call counted that has ended now. Implements `records.Used`."""
        self.ledger.add(record)
        if given is not None and self.arguments.wanted():
            self.arguments.keep(self.ledger.made, record, given)

    def take(self, records: Sequence[CallRecord]) -> None:
        """Count calls, but those that say nothing about their tool. Implements `ledger.Take`."""
        by_tool: defaultdict[tuple[Principal, str, str], list[CallRecord]] = defaultdict(list)
        for record in records:
            if record.server and record.outcome not in UNHEARD:
                by_tool[record.principal, record.server, record.tool].append(record)
        for (principal, server, tool), calls in by_tool.items():
            used = ToolUsage(
                principal=principal,
                server=server,
                tool=tool,
                calls=len(calls),
                failures=sum([record.outcome in FAILED for record in calls]),
                total_ms=sum([record.took_ms for record in calls]),
                waited_ms=sum([record.waited_ms for record in calls]),
            )
            _count(self._fresh[principal], used)
            _count(self._of_all, used)
        self._any.set()

    def arguments_of(self, number: int) -> str | None:
        """Return the arguments of the call with a number, as JSON, short and masked; None if they are not kept."""
        return self.arguments.of(number - self.history.before)

    def flush(self) -> None:
        """Hand all that is new to the store."""
        self.history.flush()
        self._flush()

    def _flush(self) -> None:
        self.arguments.drop_unwanted()
        self.ledger.settle()
        if self._fresh:
            rows = [row for own in self._fresh.values() for row in own.values()]
            self._store.usage.add(rows)
            for row in rows:
                _count(self._totals[row.principal], row)
            self._fresh.clear()

    async def run(self) -> None:
        """Count, and hand what is new to the store, for ever. Where nothing is called, little wakes up."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.ledger.run)
            nursery.start_soon(self.history.run)
            while True:
                if self._loaded:
                    with trio.move_on_after(QUIET_S):
                        await self._any.wait()
                    self._any = trio.Event()
                await trio.sleep(FLUSH_S)
                self._flush()
                if not self._loaded:
                    await self.load()

    def table(self, principal: Principal) -> list[dict[str, object]]:
        rows = sorted(self.of(principal).values(), key=lambda row: (-row.calls, row.server, row.tool))
        return [
            {name: value for name, value in msgspec.structs.asdict(row).items() if name != "principal"}
            for row in rows[:1000]
        ]

    def totals(self, principal: Principal | None) -> dict[tuple[str, str], ToolTotals]:
        """Return what one has used, or None: what all have."""
        return {
            key: ToolTotals(row.calls, row.failures, row.total_ms, row.waited_ms)
            for key, row in (self._all() if principal is None else self.of(principal)).items()
        }

    def _all(self) -> dict[ToolKey, ToolUsage]:
        self.ledger.settle()
        return self._of_all

    def of(self, principal: Principal) -> dict[ToolKey, ToolUsage]:
        """Return what one has used, without a look at what all others have."""
        self.ledger.settle()
        own = dict(self._totals.get(principal, {}))
        for row in self._fresh.get(principal, {}).values():
            _count(own, row)
        return own


def _count(own: dict[ToolKey, ToolUsage], row: ToolUsage) -> None:
    key = row.server, row.tool
    before = own.get(key)
    own[key] = row if before is None else before.plus(row)
