"""Keeps what was called: the newest calls, and sums of periods, in memory and on the disk.

Rules of this file:
- What ended counts for whoever reads, and is handed to the store within `FLUSH_S`. The store writes it `LINGER_S`
  later, so that a daemon that is killed loses the calls of its last second at most. Where nothing was called nothing is
  written.
- The newest minute is in memory. When it is over it goes into the quarter and the hour around it, and an hour that is
  over into its day. What a crash left undone is made again at the next start, from the minutes and hours on the disk.
- Until the disk has been read once nothing is written there, and the first minute lasts: what the disk has of the same
  periods would be lost. So it is read again where a clock was set back, until no minute is there for the second time.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Final

import msgspec
import trio

from supervisor.host.workbench import beside
from supervisor.store.records import SavedCalls, SavedPeriod
from supervisor.store.tables import CallRows, PeriodRows
from supervisor.usage.periods import KEPT_S, LENGTH_S, OF, Level, Period, decode, start_of
from supervisor.usage.records import CallRecord

FLUSH_S: Final = 0.4
"""Each row that changed is written so often at most: that of the newest minute, and the calls since."""
_EXPIRE_S: Final = 600.0
SET_BACK_S: Final = 120.0
"""A clock that was set back by less only makes a minute longer."""
_RECORDS: Final = msgspec.msgpack.Decoder(list[CallRecord])
_encode: Final = msgspec.msgpack.Encoder().encode


class History:
    """What was called. `clock` gives unix seconds; `keep` so many calls are remembered one by one."""

    def __init__(self, periods: PeriodRows, calls: CallRows, clock: Callable[[], float], keep: int) -> None:
        self.newest = 0
        """The number of the newest call, from 1."""
        self.before = 0
        """So many of them were before this start, as far as that is known."""
        self.settle: Callable[[], None] = lambda: None
        """Called before anything is read: it may have calls for `take`."""
        self._kept = periods
        self._batches = calls
        self._clock = clock
        self._calls: deque[CallRecord] = deque(maxlen=keep)
        self._keep = keep
        self._fresh: deque[CallRecord] = deque(maxlen=keep)
        self._any = trio.Event()
        self._loaded = False
        self._now: dict[Level, Period] = {level: Period(level, start_of(level, clock())) for level in LENGTH_S}
        self._changed: set[Level] = set()
        self._ahead = self._now["minute"].start
        """The latest minute that the disk may have."""
        self._calls_read = False
        self._expired_at = -math.inf

    # What happens -----------------------------------------------------------------------------------------------------

    def take(self, records: Sequence[CallRecord]) -> None:
        """Keep calls, in the order in which they ended. Implements `ledger.Take`."""
        if start_of("minute", records[0].time) == start_of("minute", records[-1].time):
            self._count(records)
        else:
            for _, of_minute in groupby(records, lambda record: start_of("minute", record.time)):
                self._count([*of_minute])
        self._any.set()
        self._changed.add("minute")
        self._calls.extend(records)
        self._fresh.extend(records)
        self.newest += len(records)

    def _count(self, records: Sequence[CallRecord]) -> None:
        """Count calls of one minute."""
        self._turn(records[0].time)
        self._now["minute"].add(records)

    def _turn(self, moment: float) -> None:
        """Begin the minute of a moment, unless it is the present one or a little before that."""
        minute, start = self._now["minute"], start_of("minute", moment)
        if minute.start - SET_BACK_S <= start <= minute.start or not self._loaded:
            return
        self._close(minute)
        if start > self._ahead == minute.start:
            self._now["minute"] = Period("minute", start)
        else:
            self._now = {level: Period(level, start_of(level, moment)) for level in LENGTH_S}
            self._loaded = False
        self._ahead = max(self._ahead, start)

    def _close(self, over: Period) -> None:
        """Put a period that is over into longer ones. Where that begins another of these, the one before is over."""
        self._save(over)
        for level in (level for level, of in OF.items() if of == over.level):
            before, start = self._now[level], start_of(level, over.start)
            if before.start != start:
                self._close(before)
                self._now[level] = Period(level, start)
            if over.tallies:
                self._now[level].merge(over)
                self._changed.add(level)
                self._save(self._now[level])

    # The disk ---------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Flush for ever. Where nothing is called, nothing wakes up but at the end of a minute."""
        while True:
            await self.load()
            self.flush()
            if self._loaded:
                with trio.move_on_after(LENGTH_S["minute"] - self._clock() % LENGTH_S["minute"]):
                    await self._any.wait()
                self._any = trio.Event()
            await trio.sleep(FLUSH_S)

    def flush(self) -> None:
        """Hand what is new to the store."""
        self.settle()
        now = self._clock()
        self._turn(now)
        if not self._loaded:
            return
        for level in sorted(self._changed):
            self._save(self._now[level])
        if self._fresh:
            fresh = [*self._fresh]
            self._fresh.clear()
            self._batches.append(SavedCalls(self.newest - len(fresh) + 1, _encode(fresh)), self._keep)
        if not 0 <= now - self._expired_at < _EXPIRE_S:
            self._expired_at = now
            for level, kept_s in KEPT_S.items():
                self._kept.remove_before(level, now - kept_s)

    def _save(self, period: Period) -> None:
        if period.level in self._changed:
            self._changed.discard(period.level)
            self._kept.put(SavedPeriod(period.level, period.start, period.encode()))

    async def load(self) -> None:
        """Read what was kept, and make again what was not finished, unless that was done. A checkpoint."""
        if self._loaded or not self._kept.ready.is_set():
            return
        rows: dict[Level, list[SavedPeriod] | None] = {
            level: await self._kept.find(level, start_of("day", self._clock() - LENGTH_S["day"])) for level in LENGTH_S
        }
        batches = [] if self._calls_read else await self._batches.read()
        if batches is None or None in rows.values():
            return
        known = await beside(lambda: {level: dict(_periods(level, each or ())) for level, each in rows.items()})
        calls = await beside(partial(_calls, batches, self._keep))
        self._loaded = True
        self._ahead = max([self._ahead, *known["minute"]])
        self._take(known)
        if not self._calls_read:
            self._calls_read = True
            self._take_calls(*calls)

    def _take_calls(self, last: int, kept: list[CallRecord]) -> None:
        """Put calls of earlier starts before those of this one; the last of them has that number."""
        self.newest, self.before = self.newest + last, last
        room = self._keep - len(self._calls)
        self._calls.extendleft(kept[: -room - 1 : -1] if room else ())

    def _take(self, known: dict[Level, dict[int, Period]]) -> None:
        """Add what the disk has of the present periods, and sum up those before that it has no sum of.

        A present period that was there before may have lost its parts: then its own sum is what is left of them.
        """
        for level, of in OF.items():
            parts = known[of]
            for start in sorted({start_of(level, each) for each in parts}):
                whole = Period(level, start)
                for part in (part for each, part in parts.items() if start_of(level, each) == start):
                    if part.start != self._now[of].start:
                        whole.merge(part)
                if start == self._now[level].start:
                    self._now[level].merge(whole)
                elif whole.calls > (known[level][start].calls if start in known[level] else 0):
                    known[level][start] = whole
                    self._kept.put(SavedPeriod(level, start, whole.encode()))
        for level, of in OF.items():
            part = known[of].get(self._now[of].start, Period(of, 0))
            whole = known[level].get(self._now[level].start, Period(level, 0))
            if whole.calls > self._now[level].calls + part.calls:
                self._now[level] = whole
        minute = self._now["minute"]
        if minute.start in known["minute"]:
            minute.merge(known["minute"][minute.start])
        self._changed |= {level for level, period in self._now.items() if period.tallies}

    # Who asks ---------------------------------------------------------------------------------------------------------

    def calls(self, before: int | None = None) -> Iterator[tuple[int, CallRecord]]:
        """Return the calls that are remembered now, each with its number, the newest first; those before one, if given.

        There may be tens of thousands: whoever may go through all of them does so in a thread.
        """
        self.settle()
        kept = [*reversed(self._calls)]
        newer = 0 if before is None else max(0, self.newest - before + 1)
        return zip(range(self.newest - newer, 0, -1), kept[newer:], strict=False)

    async def periods(self, level: Level, since: float) -> list[Period]:
        """Return the periods that began then or later, the oldest first; those without a call are not there."""
        minute = None
        while minute is not self._now["minute"]:  # one that ended meanwhile would be neither on the disk nor here
            self.settle()
            minute = self._now["minute"]
            rows = await self._kept.find(level, since) if self._kept.ready.is_set() else None
            known = await beside(partial(_by_start, level, rows or ()))
        now = self._now
        known[now[level].start] = Period(level, now[level].start)
        for part in _within(level):
            start = start_of(level, now[part].start)
            known.setdefault(start, Period(level, start)).merge(now[part])
        return [known[start] for start in sorted(known) if start >= since and known[start].tallies]


def _within(level: Level) -> list[Level]:
    """Return this level, and those that will go into it."""
    return [level, *(_within(OF[level]) if level in OF else ())]


def _by_start(level: Level, rows: Sequence[SavedPeriod]) -> dict[int, Period]:
    return dict(_periods(level, rows))


def _periods(level: Level, rows: Sequence[SavedPeriod]) -> Iterator[tuple[int, Period]]:
    for row in rows:
        period = decode(level, row.start, row.payload)
        if period is not None:
            yield row.start, period


def _calls(batches: Sequence[SavedCalls], keep: int) -> tuple[int, list[CallRecord]]:
    """Return the number of the newest call and so many of the newest."""
    kept: deque[CallRecord] = deque(maxlen=keep)
    newest = 0
    for batch in batches:
        try:
            records = _RECORDS.decode(batch.payload)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        kept.extend(records)
        newest = batch.number + len(records) - 1
    return newest, [*kept]
