"""How many calls succeeded and failed lately. Pure."""

from __future__ import annotations

from typing import Final

SLOTS: Final = 12
"""In so many parts the time is cut whose calls count; the oldest part is forgotten as a whole."""


class RecentCalls:
    """How many calls succeeded and failed within the last `window_s` seconds, to a twelfth of that."""

    def __init__(self, window_s: float) -> None:
        self._slot_s = window_s / SLOTS
        self._ends = 0.0
        self._good = [0] * SLOTS
        self._bad = [0] * SLOTS

    def succeed(self, now: float) -> None:
        if now >= self._ends:
            self._turn(now)
        self._good[-1] += 1

    def fail(self, now: float) -> tuple[int, int]:
        """Count a failure; return how many failed, of how many."""
        if now >= self._ends:
            self._turn(now)
        self._bad[-1] += 1
        failed = sum(self._bad)
        return failed, failed + sum(self._good)

    def clear(self) -> None:
        self._good, self._bad = [0] * SLOTS, [0] * SLOTS

    def _turn(self, now: float) -> None:
        number = int(now // self._slot_s)
        steps = min(SLOTS, number + 1 - round(self._ends / self._slot_s))
        self._good = [*self._good[steps:], *[0] * steps]
        self._bad = [*self._bad[steps:], *[0] * steps]
        self._ends = (number + 1) * self._slot_s
