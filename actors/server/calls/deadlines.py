"""The deadlines of calls, the earliest first. A deadline that moved, or whose call has ended, is passed over. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Callable

_SLACK = 64
"""How many deadlines that do not count may be kept beside twice as many as do."""


class Deadlines:
    """Moments by the number of a call. `counts(moment, number)` says whether a deadline still is one."""

    def __init__(self, counts: Callable[[float, int], bool]) -> None:
        self._counts = counts
        self._heap: list[tuple[float, int]] = []

    def note(self, moment: float, number: int, open_calls: int) -> None:
        if len(self._heap) > _SLACK + 2 * open_calls:
            self._heap = [entry for entry in self._heap if self._counts(*entry)]
            heapq.heapify(self._heap)
        heapq.heappush(self._heap, (moment, number))

    def next(self) -> float | None:
        """Return the earliest deadline; forgets what does not count before it."""
        while self._heap and not self._counts(*self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop(self) -> int:
        """Take the earliest one, which `next` has told of; return whose it is."""
        return heapq.heappop(self._heap)[1]
