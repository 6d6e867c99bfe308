"""The newest events in memory, for those who read them as they come: each reader keeps a place of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final

from actors.kit import Latest
from actors.principal import LOCAL, Principal
from supervisor.events.event import DaemonEvent, size_of
from supervisor.events.kinds import EventData

MAX_BYTES: Final = 64 * 1024 * 1024
"""Of all that is kept, about."""


class EventLog:
    """Numbers events from 1 and keeps the newest `keep`. `clock` gives unix seconds; `told` is told of each event."""

    def __init__(self, clock: Callable[[], float], keep: int, max_bytes: int = MAX_BYTES) -> None:
        self.newest: Latest[int] = Latest(0)
        """The number of the newest event, which is its version, too."""
        self.told: Callable[[DaemonEvent], None] = lambda event: None
        self._clock = clock
        self._keep = keep
        self._max_bytes = max_bytes
        self._bytes = 0
        self._events: deque[DaemonEvent] = deque()

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
        self._events.append(event)
        self._bytes += event.size
        while len(self._events) > self._keep or (self._bytes > self._max_bytes and len(self._events) > 1):
            self._bytes -= self._events.popleft().size
        self.told(event)
        self.newest.set(event.number)

    def has_after(self, number: int) -> bool:
        """Say whether all that followed an event is still here."""
        return self.newest.value - len(self._events) <= number <= self.newest.value

    def after(self, number: int, limit: int) -> Sequence[DaemonEvent]:
        """Return the events behind one, the oldest first, at most so many; they must be here, see `has_after`."""
        first = number - (self.newest.value - len(self._events))
        return list(islice(self._events, first, first + limit))
