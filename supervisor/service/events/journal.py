"""What is kept of events, by topic, and the cursors that clients have of it: here, and on the disk, which lags behind.

Numbers only grow, over all topics and all lives of the daemon, whatever of them reached the disk. What is missing is a
gap, which has a number, too: who reads across it is told (`truncated`), once, and goes on behind it. So is who comes
with a cursor of which nothing is known, or from before all that is kept.

With what happened it is saved how far its source was followed. After a crash that is followed on from what was saved,
so what the disk has lost is told again by a source that can, or is a gap.
"""

from __future__ import annotations

import secrets
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, islice
from operator import attrgetter
from typing import Final, Protocol

import msgspec

from supervisor.fleet.peers import DaemonLife
from supervisor.service.events.limits import (
    MAX_ALL_BYTES,
    MAX_CURSOR_CHARS,
    MAX_KEPT,
    MAX_KEPT_BYTES,
    MAX_LOGS,
    MAX_READ_BYTES,
    TooManyEvents,
)
from supervisor.store.records import SavedJournal, SavedOccurrence, SavedTopic

RESERVED: Final = 1_000_000
"""So many numbers are given until it is saved again which ones no later life of the daemon gives."""
TRIMMED_EVERY: Final = 1000
"""So many rows are added until those on the disk that are too old, or too many, are forgotten."""
MAX_DIGITS: Final = 20
CURSOR_DOTS: Final = 3
SUMMED_EVERY: Final = 16
"""With so many numbers it is looked how much there is in memory."""
_number: Final = attrgetter("number")


class Kept(msgspec.Struct, frozen=True):
    """One occurrence. `time`: when it happened, as far as is known, in unix seconds; `body`: an `EventOccurrence`, the
    JSON object without `cursor`, its `name` the one at the doors of many servers."""

    number: int
    event_id: str
    time: float
    body: bytes


class Reading(msgspec.Struct, frozen=True):
    """What was read behind a number.

    `truncated`: some of what happened between that and the first of these `events` is missing. `head`: the number
    behind which to read on; `more`: there is something already.
    """

    events: Sequence[Kept]
    truncated: bool
    head: int
    more: bool


class TopicLog:
    """What is kept of one topic. `since`: nothing up to that number is kept any more; `head`: the newest number.

    `cursor` is how far its source was followed, None if that cannot go on from there.
    """

    def __init__(self, topic: str = "", since: int = 0, cursor: str | None = None) -> None:
        self.topic = topic
        self.cursor = cursor
        self.followed = False
        """It stays in memory."""
        self.owed: int | None = None
        """A gap on the disk, where something was lost, that is still to be written."""
        self.since = self.head = since
        self._kept: list[Kept] = []
        self._ids: set[str] = set()
        self._gaps: list[int] = []
        self.bytes = 0

    def knows(self, event_id: str) -> bool:
        return event_id in self._ids

    def add(self, kept: Kept) -> None:
        """Keep one with a number over `head`; the oldest give way."""
        self._kept.append(kept)
        self._ids.add(kept.event_id)
        self.bytes += len(kept.body)
        self.head = kept.number
        over = 0
        while len(self._kept) - over > MAX_KEPT or (self.bytes > MAX_KEPT_BYTES and over < len(self._kept) - 1):
            self.bytes -= len(self._kept[over].body)
            over += 1
        if over:
            self._drop(over)

    def halve(self) -> None:
        """Keep only the newer half."""
        if self._kept:
            self.bytes -= sum(len(each.body) for each in self._kept[: (len(self._kept) + 1) // 2])
            self._drop((len(self._kept) + 1) // 2)

    def _drop(self, count: int) -> None:
        gone, self._kept = self._kept[:count], self._kept[count:]
        self._ids -= {each.event_id for each in gone}
        self.since = gone[-1].number
        self._gaps = [gap for gap in self._gaps if gap > self.since]

    def mark_gap(self, number: int) -> None:
        """Something before this number, which is over `head`, is missing."""
        if self._gaps and (not self._kept or self._kept[-1].number < self._gaps[-1]):
            self._gaps.pop()  # nothing came in between: whoever has seen that one is behind this one, too
        self._gaps.append(number)
        self.head = number

    def after(self, number: int, limit: int, not_before: float = 0.0) -> Reading:
        """Return what is kept behind a number, so many and so much at most, up to the next gap; see `Topic.after`."""
        truncated, begin = number < self.since, number
        while True:
            place = bisect_right(self._kept, begin, key=_number)
            gap = next((gap for gap in self._gaps if gap > begin), None)
            end = len(self._kept) if gap is None else bisect_right(self._kept, gap, key=_number)
            first = next((at for at in range(place, end) if self._kept[at].time >= not_before), end)
            truncated = truncated or first > place
            if gap is None or first < end:
                break
            truncated, begin = True, gap
        wanted = self._kept[first : min(end, first + limit)]
        sizes = accumulate(len(each.body) for each in wanted)
        events = wanted[: max(1, sum(size <= MAX_READ_BYTES for size in sizes))]
        more = first + len(events) < len(self._kept) or gap is not None
        return Reading(events, truncated, events[-1].number if events else max(begin, self.head), more)


class Disk(Protocol):
    """Where it is kept; see `supervisor.store.tables.OccurrenceRows`."""

    def append(self, rows: Sequence[SavedOccurrence], followed: SavedTopic) -> bool: ...

    def trim(self) -> None: ...

    async def load_topic(self, topic: str) -> tuple[SavedTopic, list[SavedOccurrence]] | None: ...

    async def load_journal(self) -> SavedJournal: ...

    def save_journal(self, journal: SavedJournal) -> None: ...


class Journal:
    """All of it. `clock` gives unix seconds; without a `disk` nothing outlives the daemon. `begin` comes first.

    `node` is which one of a fleet this is: each keeps its own, and cursors say whose they are.
    """

    def __init__(self, clock: Callable[[], float], disk: Disk | None = None, node: DaemonLife | None = None) -> None:
        self.clock = clock
        self._node = node or DaemonLife()
        self.life = secrets.token_urlsafe(8)
        self._disk = disk
        self._number = self._reserved = 0
        self._added = 0
        self._logs: OrderedDict[str, TopicLog] = OrderedDict()

    async def begin(self) -> None:
        """Find out which numbers were given before. A checkpoint.

        Where the disk does not say, or does not take which ones are given from now on, this is another journal: cursors
        from before are none of it, as the same numbers may be given twice.
        """
        fresh, self._number = self.life, round(self.clock() * 1000)
        if self._disk is None:
            return
        kept = await self._disk.load_journal()
        self.life, self._number = kept.life or fresh, max(kept.reserved, self._number)
        self._reserve()
        if await self._disk.load_journal() != SavedJournal(
            self.life, self._reserved
        ):  # it is not there yet, or never will be
            self.life = fresh
            self._reserve()
        self._disk.trim()

    def cursor(self, topic: str, number: int) -> str:
        """Return how clients know a place in a topic."""
        node = f".{self._node.own.hex()}" if self._node.own else ""
        return f"{self.life}.{topic}.{number}{node}"

    def position(self, topic: str, cursor: str) -> int | None:
        """Return the number that a cursor means; None if it is none of this topic, in this journal."""
        life, _, rest = cursor.partition(".")
        id_, _, rest = rest.partition(".")
        number = rest.partition(".")[0]
        known = life == self.life and id_ == topic and number.isascii() and number.isdigit()
        return int(number[:MAX_DIGITS]) if known else None

    def check_here(self, cursor: str) -> None:
        """Raise `HeldElsewhere` for a cursor that another node of the fleet has given, as long as that is there."""
        if self._node.own and cursor.count(".") == CURSOR_DOTS and not cursor.startswith(f"{self.life}."):
            try:
                node = bytes.fromhex(cursor.rpartition(".")[2])
            except ValueError:
                return
            text = "the cursor is of another node of the fleet; ask over HTTP, or begin anew with null"
            self._node.check_here(node, TooManyEvents(text, "cursors"))

    async def open(self, topic: str) -> TopicLog:
        """Return what is kept of a topic. A checkpoint where it has to be read."""
        if topic not in self._logs:
            saved = await self._disk.load_topic(topic) if self._disk is not None else None
            log = TopicLog(topic) if saved is None else restored(*saved)
            self._logs.setdefault(topic, log)
        self._logs.move_to_end(topic)
        idle = (name for name, log in self._logs.items() if not log.followed and name != topic)
        for name in list(islice(idle, max(0, len(self._logs) - MAX_LOGS))):
            del self._logs[name]
        return self._logs[topic]

    def add(self, log: TopicLog, event_id: str, time: float, body: bytes, cursor: str | None) -> None:
        """Keep what happened in a topic, unless it is known, and how far its source was followed with that."""
        known = log.knows(event_id)
        log.cursor = _kept_cursor(cursor)
        if known:
            self._save(log, ())
            return
        kept = Kept(self._next(), event_id, time, body)
        log.add(kept)
        if not kept.number % SUMMED_EVERY and sum(each.bytes for each in self._logs.values()) > MAX_ALL_BYTES:
            max(self._logs.values(), key=lambda each: each.bytes).halve()
        self._save(log, (SavedOccurrence(kept.number, log.topic, event_id, time, body),))

    def mark_gap(self, log: TopicLog, cursor: str | None) -> None:
        """Something is missing in a topic, whose source goes on from there."""
        log.mark_gap(self._next())
        log.cursor = _kept_cursor(cursor)
        self._save(log, (SavedOccurrence(log.head, log.topic, "", self.clock(), b""),))

    def note_cursor(self, log: TopicLog, cursor: str | None) -> None:
        """Nothing happened, but the source was followed until there."""
        if log.cursor != _kept_cursor(cursor):
            log.cursor = _kept_cursor(cursor)
            self._save(log, ())

    def _next(self) -> int:
        self._number += 1
        if self._number >= self._reserved - RESERVED // 2:  # long before, as the disk lags behind
            self._reserve()
        return self._number

    def _reserve(self) -> None:
        self._reserved = self._number + RESERVED
        if self._disk is not None:
            self._disk.save_journal(SavedJournal(self.life, self._reserved))

    def _save(self, log: TopicLog, rows: tuple[SavedOccurrence, ...]) -> None:
        if self._disk is None:
            return
        gaps = () if log.owed is None else (SavedOccurrence(log.owed, log.topic, "", self.clock(), b""),)
        if self._disk.append((*gaps, *rows), SavedTopic(log.topic, log.since, log.cursor)):
            log.owed = None
        elif rows and log.owed is None:
            log.owed = self._next()
        self._added += len(rows)
        if self._added >= TRIMMED_EVERY:
            self._added = 0
            self._disk.trim()


def restored(followed: SavedTopic, rows: Iterable[SavedOccurrence]) -> TopicLog:
    """Return what was kept of a topic before."""
    log = TopicLog(followed.topic, followed.since, followed.cursor)
    for row in rows:
        if row.event_id:
            log.add(Kept(row.number, row.event_id, row.time, row.body))
        else:
            log.mark_gap(row.number)
    return log


def _kept_cursor(cursor: str | None) -> str | None:
    """Return a cursor of a source, unless it is too long to be kept: then that cannot go on from it."""
    return cursor if cursor is None or len(cursor) <= MAX_CURSOR_CHARS else None
