"""What is kept of events, by topic, and the cursors that clients have of it. Pure.

Numbers only grow, over all topics and all lives of the daemon. What is missing is a gap, which has a number, too: who
reads across it is told (`truncated`), once, and goes on behind it. So is who comes with a cursor of which nothing is
known, or from before all that is kept.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

import msgspec

from supervisor.service.events.limits import MAX_KEPT, MAX_KEPT_BYTES

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
    """What is kept of one topic. `since`: nothing up to that number is kept any more; `head`: the newest number."""

    def __init__(self, since: int = 0) -> None:
        self.since = self.head = since
        self._kept: list[Kept] = []
        self._ids: set[str] = set()
        self._gaps: list[int] = []
        self._bytes = 0

    def knows(self, event_id: str) -> bool:
        return event_id in self._ids

    def add(self, kept: Kept) -> None:
        """Keep one with a number over `head`; the oldest give way."""
        self._kept.append(kept)
        self._ids.add(kept.event_id)
        self._bytes += len(kept.body)
        self.head = kept.number
        over = 0
        while len(self._kept) - over > MAX_KEPT or (self._bytes > MAX_KEPT_BYTES and over < len(self._kept) - 1):
            self._bytes -= len(self._kept[over].body)
            over += 1
        if over:
            self._drop(over)

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
        """Return what is kept behind a number, so many at most, up to the next gap; see `Topic.after`."""
        truncated, begin = number < self.since, max(number, self.since)
        while True:
            place = bisect_right(self._kept, begin, key=_number)
            gap = next((gap for gap in self._gaps if gap > begin), None)
            end = len(self._kept) if gap is None else bisect_right(self._kept, gap, key=_number)
            first = next((at for at in range(place, end) if self._kept[at].time >= not_before), end)
            truncated = truncated or first > place
            if gap is None or first < end:
                break
            truncated, begin = True, gap
        events = self._kept[first : min(end, first + limit)]
        more = first + len(events) < len(self._kept) or (gap is not None and bool(events))
        return Reading(events, truncated, events[-1].number if more and events else max(begin, self.head), more)
