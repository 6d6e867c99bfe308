"""Counts how readings of the lists of a server end. No I/O, no trio."""

from __future__ import annotations

from typing import Protocol

from msgspec.structs import replace

from actors.protocol.listing import Readings


class Tell(Protocol):
    """Told of a reading that is over: its seconds, and whether it came to its end."""

    def __call__(self, seconds: float, *, good: bool) -> None: ...


class ReadingCount:
    """`readings` are those so far; `tell` is called with how long each took. Moments are seconds of one clock."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self.readings = Readings()
        self._begun_at: float | None = None

    def begin(self, now: float) -> None:
        self.fail(now)
        self._begun_at = now

    def end(self, now: float) -> None:
        """Note that what was begun came to its end; nothing, if it failed before."""
        if self._begun_at is not None:
            took = round(now - self._begun_at, 3)
            self.readings = replace(self.readings, count=self.readings.count + 1, last_at=now, last_s=took)
            self._begun_at = None
            self._tell(took, good=True)

    def fail(self, now: float) -> None:
        """Note that what was begun did not come to its end, if anything was."""
        if self._begun_at is not None:
            self.readings = replace(self.readings, failures=self.readings.failures + 1)
            self._tell(now - self._begun_at, good=False)
            self._begun_at = None
