"""Fairness between connections: how much of one has its turn in a row, and how often something may happen. Pure."""

from __future__ import annotations

EVENTS_PER_TURN = 16
"""Frames, chunks or requests of one connection in a row: about a millisecond of the loop."""


class Turns:
    """Counts the events of one connection. One that sends without pause has so many of them, then everybody else."""

    def __init__(self, events: int = EVENTS_PER_TURN) -> None:
        self._events = events
        self._left = events

    def used_up(self) -> bool:
        """Count one event; True, each time a turn is used up: then a checkpoint is due."""
        self._left -= 1
        if self._left > 0:
            return False
        self._left = self._events
        return True


class Allowance:
    """So many in a second; what was not used adds up to one second's worth."""

    def __init__(self, per_s: float, now: float) -> None:
        """`now` in seconds, of any clock that only goes forward."""
        self._per_s = per_s
        self._left = per_s
        self._at = now

    def spend(self, now: float) -> bool:
        """Use one; False if there is none left."""
        self._left = min(self._per_s, self._left + (now - self._at) * self._per_s)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
