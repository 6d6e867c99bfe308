"""Calls that have ended, until they are counted: some times a second, all together.

To count one call takes a twentieth of what the call itself does, and most of that is the way from one place to the
next. Many together take it once. Whoever reads what is counted has it settled first, so nobody sees it late.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

import trio

from supervisor.usage.records import CallOutcome, CallRecord

log = logging.getLogger(__name__)

SETTLE_S: Final = 0.1
MOST: Final = 1000
"""So many calls are counted at once, in a few milliseconds."""

Take = Callable[[Sequence[CallRecord]], None]
"""Counts calls, in the order in which they ended. It does not raise."""
Noted = Callable[[str, str, bytes, CallOutcome, float], None]
"""Told of a call of a tool of a server: server, tool, the digest of its definition, how it ended, and milliseconds."""


def note_nothing(server: str, tool: str, definition: bytes, outcome: CallOutcome, milliseconds: float) -> None:
    del server, tool, definition, outcome, milliseconds


class Ledger:
    """Hands calls to all `takers`. `clock` gives unix seconds; `noted` is told of each call in the task of the call."""

    def __init__(self, clock: Callable[[], float], noted: Noted = note_nothing) -> None:
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
