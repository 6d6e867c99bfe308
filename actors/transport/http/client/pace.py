"""How often the reader of a stream gets up: a stream of many notes is read a few at a time, not one by one.

What one read brings costs some turns of the loop, about a millisecond, whether it is one event or forty. A server that
tells of progress a thousand times a second would take hundreds of turns from everybody else; read at this pace it takes
twenty, and its socket holds meanwhile what is not read. Whoever says little is read at once. What lasts for long may
wait a little longer: the answer after a flood of notes is late by a part of the time that it took.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Generator
from typing import Any, TypeVar

T = TypeVar("T")

APART_S = (0.01, 0.05)
"""Between two reads of a stream that says much, at least and at most: an answer after it is late by two at most."""
PART = 0.05
"""Between two reads there is this part of the time since the first one."""
AT_ONCE = 5
"""So many reads in a row do not wait for that."""


class Pace:
    """Counts the reads of one stream: in the long run they are `APART_S` apart, and `AT_ONCE` in a row may not be."""

    def __init__(self) -> None:
        self._first = math.inf
        self._next = 0.0

    def after(self, now: float) -> float:
        """Count a read at `now`; return the moment, maybe past, before which there should be no other."""
        self._first = min(self._first, now)
        least, most = APART_S
        apart = min(max((now - self._first) * PART, least), most)
        self._next = max(self._next, now - AT_ONCE * apart) + apart
        return self._next


class Waiting(Generator[Any, Any, T]):
    """Awaits something once, and knows afterwards whether that had to wait: `waited`."""

    def __init__(self, awaitable: Awaitable[T]) -> None:
        self._steps = awaitable.__await__()
        self.waited = False

    def __await__(self) -> Generator[Any, Any, T]:
        return self

    def send(self, value: Any) -> Any:
        trap = self._steps.send(value)
        self.waited = True
        return trap

    def throw(self, *error: Any) -> Any:
        return self._steps.throw(*error)
