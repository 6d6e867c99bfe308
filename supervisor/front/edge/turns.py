"""Fairness between connections: who has much to do lets others run now and then."""

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
