"""Time that a test moves."""

from __future__ import annotations


class Clock:
    """Gives `now`, in seconds."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
