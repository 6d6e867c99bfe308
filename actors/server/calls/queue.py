"""The calls of one server that wait to be sent, in the order in which they came, and the deadlines of all. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping

from actors.server.calls.call import Call

_SLACK = 64
"""How many deadlines that do not count may be kept beside twice as many as do."""


class CallQueue:
    """`calls` are those that wait, by number, the oldest first: to be read; `size`: bytes to be written for them."""

    def __init__(self) -> None:
        self.calls: dict[int, Call] = {}
        self.size = 0

    def add(self, call: Call) -> None:
        self.calls[call.number] = call
        self.size += call.size
        call.reply.queued = True

    def add_again(self, calls: Iterable[Call]) -> None:
        """Take calls back of which nothing was done; each waits in its old place."""
        for call in calls:
            call.sent_at = call.mark = call.refused = None
            self.add(call)
        ordered = sorted(self.calls.items())
        self.calls.clear()
        self.calls.update(ordered)

    def take(self, number: int) -> Call | None:
        if (call := self.calls.pop(number, None)) is not None:
            self.size -= call.size
        return call

    def take_all(self) -> list[Call]:
        calls, self.size = list(self.calls.values()), 0
        self.calls.clear()
        return calls


class Deadlines:
    """Moments by the number of a call, the earliest first, of all calls in flight or waiting, by their numbers: when
    they have to be answered, when those that came too often may be sent again, until when others wait for a question.

    One that moved, or whose call has ended, is passed over. `wake_by` is told of each.
    """

    def __init__(
        self, in_flight: Mapping[int, Call], waiting: Mapping[int, Call], wake_by: Callable[[float], None]
    ) -> None:
        self._wake_by = wake_by
        self._in_flight = in_flight
        self._waiting = waiting
        self._heap: list[tuple[float, int]] = []

    def _counts(self, moment: float, number: int) -> bool:
        call = self._in_flight.get(number) or self._waiting.get(number)
        return call is not None and moment in (call.deadline, call.not_before, call.word_by)

    def note(self, moment: float, number: int, open_calls: int) -> None:
        if len(self._heap) > _SLACK + 2 * open_calls:
            self._heap = [entry for entry in self._heap if self._counts(*entry)]
            heapq.heapify(self._heap)
        heapq.heappush(self._heap, (moment, number))
        self._wake_by(moment)

    def next(self) -> float | None:
        """Return the earliest moment; forgets what does not count before it."""
        while self._heap and not self._counts(*self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop(self) -> int:
        """Take the earliest one, which `next` has told of; return whose it is."""
        return heapq.heappop(self._heap)[1]
