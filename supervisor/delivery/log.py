"""The newest events in memory, for those who read them as they come: each reader keeps a place of its own.

A call is kept as what is known of it anyhow: most events are about calls, and hardly any of them is ever read.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, islice
from operator import itemgetter
from typing import Final

import trio

from actors.kit import Latest
from actors.principal import LOCAL, Principal
from supervisor.events.event import USUAL_BYTES, DaemonEvent, size_of
from supervisor.events.kinds import EventData, ToolExecuted
from supervisor.identity.people import team_of, user_of
from supervisor.usage.records import CallRecord

# From a call to the event about it: made only where somebody reads it.

MAX_NAME_CHARS: Final = 200


def event_of(number: int, record: CallRecord) -> DaemonEvent:
    """Return the `number`-th event: a call has ended."""
    return DaemonEvent(
        number=number, time=record.time, data=_data(record), size=USUAL_BYTES, principal=record.principal
    )


def _data(record: CallRecord) -> ToolExecuted:
    return ToolExecuted(
        server_slug=record.server[:MAX_NAME_CHARS] or None,
        tool_name=record.tool[:MAX_NAME_CHARS],
        definition_digest=record.definition.hex() or None,
        user_id=user_of(record.principal) or None,
        team_id=team_of(record.principal) or None,
        client_name=record.client or None,
        success=record.outcome == "ok",
        outcome=record.outcome,
        error_type=record.error or None,
        response_time_ms=round(record.took_ms, 3),
        waited_ms=round(record.waited_ms, 3) or None,
        request_bytes=record.bytes_in or None,
        response_bytes=record.bytes_out or None,
        tokens_shown=record.tokens_shown or None,
        tokens_saved=record.tokens_saved or None,
    )


MAX_BYTES: Final = 64 * 1024 * 1024
"""Of all that is kept, about."""


class EventLog:
    """Numbers events from 1 and keeps the newest `keep`. `clock` gives unix seconds; `told` is told of new ones,
    which are made where it looks at them."""

    def __init__(self, clock: Callable[[], float], keep: int, max_bytes: int = MAX_BYTES) -> None:
        self.newest: Latest[int] = Latest(0)
        """The number of the newest event. Its version is another one: several events may come at once."""
        self.told: Callable[[Iterable[DaemonEvent]], None] = lambda events: None
        self._clock = clock
        self._keep = keep
        self._max_bytes = max_bytes
        self._bytes = 0
        self._kept: deque[DaemonEvent | CallRecord] = deque()
        self._newest_of: defaultdict[type[object], Latest[int]] = defaultdict(lambda: Latest(0))
        self._gone: dict[type[object], int] = {}
        """The number of the newest event that is not here any more, by kind."""

    def append(
        self,
        data: EventData,
        *,
        principal: Principal = LOCAL,
        revision: int | None = None,
        time: float | None = None,
    ) -> None:
        """Tell an event, of now if no other `time` is given."""
        event = DaemonEvent(
            number=self.newest.value + 1,
            time=self._clock() if time is None else time,
            data=data,
            size=size_of(data),
            principal=principal,
            revision=revision,
        )
        self._keep_all([event], event.size)

    def extend(self, calls: Sequence[CallRecord]) -> None:
        """Tell of calls that ended."""
        self._keep_all(calls, USUAL_BYTES * len(calls))

    def _keep_all(self, fresh: Sequence[DaemonEvent | CallRecord], size: int) -> None:
        kept, number = self._kept, self.newest.value + len(fresh)
        first = self.newest.value - len(kept) + 1
        kept.extend(fresh)
        self._bytes += size
        while len(kept) > self._keep or (self._bytes > self._max_bytes and len(kept) > 1):
            oldest = kept.popleft()
            self._bytes -= oldest.size if isinstance(oldest, DaemonEvent) else USUAL_BYTES
            self._gone[_kind(oldest)] = first
            first += 1
        self.told(map(_event, fresh, count(self.newest.value + 1)))
        self.newest.set(number)
        if fresh:  # all of one kind: calls, or one of another
            self._newest_of[_kind(fresh[-1])].set(number)

    def newest_of_each_kind(self, number: int) -> Sequence[DaemonEvent]:
        """Return of each kind the newest event behind one, the oldest first; see `after`."""
        newest: dict[type[object], tuple[int, DaemonEvent | CallRecord]] = {}
        for place, each in self._back_to(number):
            newest.setdefault(_kind(each), (place, each))
        return [_event(each, place) for place, each in sorted(newest.values(), key=itemgetter(0))]

    def _back_to(self, number: int) -> Iterator[tuple[int, DaemonEvent | CallRecord]]:
        """Yield what is behind a number, the newest first."""
        return zip(range(self.newest.value, number, -1), reversed(self._kept), strict=False)

    # One kind alone -------------------------------------------------------------------------------------------------

    async def wait_for(self, kind: type[EventData], number: int) -> None:
        """Wait until there is an event of a kind behind a number. A checkpoint."""
        await trio.lowlevel.checkpoint()
        newest = self._newest_of[kind]
        while newest.value <= number:
            await newest.wait_newer(newest.version)

    def begin_of(self, kind: type[EventData]) -> int:
        """Return the number behind which all events of a kind are still here."""
        return self._gone.get(kind, 0)

    def of(self, kind: type[EventData], number: int, limit: int) -> Sequence[DaemonEvent]:
        """Return the events of a kind behind a number that are still here, the oldest first, at most so many."""
        found = [(place, each) for place, each in self._back_to(number) if _kind(each) is kind]
        return [_event(each, place) for place, each in reversed(found[-limit:])]

    # All kinds ------------------------------------------------------------------------------------------------------

    async def wait_after(self, number: int) -> None:
        """Wait until there is an event behind one. A checkpoint."""
        await trio.lowlevel.checkpoint()
        while self.newest.value <= number:
            await self.newest.wait_newer(self.newest.version)

    def has_after(self, number: int) -> bool:
        """Say whether all that followed an event is still here."""
        return self.newest.value - len(self._kept) <= number <= self.newest.value

    def after(self, number: int, limit: int) -> Sequence[DaemonEvent]:
        """Return the events behind one, the oldest first, at most so many; they must be here, see `has_after`."""
        first = number - (self.newest.value - len(self._kept))
        return [_event(each, place) for place, each in enumerate(islice(self._kept, first, first + limit), number + 1)]


def _kind(kept: DaemonEvent | CallRecord) -> type[EventData]:
    return type(kept.data) if isinstance(kept, DaemonEvent) else ToolExecuted


def _event(kept: DaemonEvent | CallRecord, number: int) -> DaemonEvent:
    return kept if isinstance(kept, DaemonEvent) else event_of(number, kept)
