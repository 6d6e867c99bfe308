"""A circuit breaker: after failures in a row nothing is let through for a while, then one probe. Pure.

Closed, open, half-open, as in Nygard's "Release It!". Values: a pause that grows with each opening and shrinks with
success is Envoy's outlier detection (`base_ejection_time`, its multiplier, `max_ejection_time`, with jitter).

- *Closed*: everything is let through. So many failures in a row open it, or whoever has another reason to (`trip`).
- *Open*: nothing is let through before the pause is over. What was let through earlier may still end, either way: that
  says nothing new, and changes nothing.
- *Half-open*: the first who asks is the probe, and all others wait for what becomes of it. Its success closes, its
  failure opens again for longer. A probe that settles without either has given its place back.

The pauses are n times the first one, within a fifth of that. n counts openings, and loses one for each `open_s` that
it was closed for, as soon as something succeeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

SPREAD: Final = 0.2
"""By this share a pause is longer or shorter, so that not all servers are probed at once."""
PROBE_RETRY_S: Final = 5.0
"""When to ask again while a probe is under way. Nobody knows how long that takes."""


class Probe(Protocol):
    """Whoever was let through: a call, an order, or something that the daemon asks for itself."""

    @property
    def settled(self) -> bool:
        """Whether it is over, however it ended."""


class Trial(msgspec.Struct, eq=False):
    """A probe that nobody has asked for."""

    settled: bool = False


class Breaker:
    """One breaker. `jitter` returns a number in 0..1; moments are seconds of one steady clock.

    `until` is when the pause ends, None while it is closed; `seconds` is how long it is. `failures` are those in a row,
    `reason` is that of the last one. `refused` counts who was not let through since it opened.
    """

    def __init__(self, most_failures: int, open_s: float, max_open_s: float, jitter: Callable[[], float]) -> None:
        self._most_failures = most_failures
        self._open_s = open_s
        self._max_open_s = max_open_s
        self._jitter = jitter
        self._openings = 0
        self._eased_at = 0.0
        self._probe: Probe | None = None
        self.until: float | None = None
        self.seconds = 0.0
        self.failures = self.refused = 0
        self.reason = ""

    @property
    def closed(self) -> bool:
        return self.until is None

    @property
    def fresh(self) -> bool:
        """Whether it is as one that never saw a failure."""
        return self.until is None and not self.failures and not self._openings

    def is_probe(self, probe: Probe) -> bool:
        return self._probe is probe

    def wait_s(self, now: float, probe: Probe | None = None) -> float | None:
        """Return in how many seconds to ask again; None if whoever asks, or is the probe already, may pass."""
        if self.until is None or (probe is not None and self._probe is probe):
            return None
        if now < self.until:
            return self.until - now
        return None if self._free else PROBE_RETRY_S

    @property
    def _free(self) -> bool:
        return self._probe is None or self._probe.settled

    def admit(self, probe: Probe, now: float) -> None:
        """Let somebody through who may pass; see `wait_s`. Who is the first after a pause is the probe."""
        if self.until is not None and now >= self.until and self._free:
            self._probe = probe

    def succeed(self, probe: Probe, now: float) -> bool:
        """Take a success; return whether it closed the breaker."""
        if self.until is None:
            self.failures = 0
            self._ease(now)
            return False
        if self._probe is not probe:
            return False
        self.until = self._probe = None
        self.failures, self._eased_at = 0, now
        return True

    def fail(self, probe: Probe, now: float, reason: str, *, trip: bool = False) -> bool:
        """Take a failure, which opens a closed one in any case if it is to `trip`; return whether it is open by it."""
        if self.until is not None and self._probe is not probe:
            return False
        self.failures, self.reason = self.failures + 1, reason
        if self.until is None and self.failures < self._most_failures and not trip:
            return False
        self._openings = min(self._openings + 1, math.ceil(self._max_open_s / self._open_s))
        self.seconds = pause_s(self._openings, self._open_s, self._max_open_s, self._jitter())
        self.until, self._probe, self.refused = now + self.seconds, None, 0
        return True

    def reset(self) -> bool:
        """Forget everything; return whether that closed it."""
        was_open, self.until, self._probe = self.until is not None, None, None
        self.failures = self._openings = 0
        return was_open

    def _ease(self, now: float) -> None:
        if self._openings:
            steps = int((now - self._eased_at) // self._open_s)
            self._openings = max(0, self._openings - steps)
            self._eased_at += steps * self._open_s


def pause_s(openings: int, open_s: float, max_open_s: float, jitter: float) -> float:
    """Return the pause after so many openings, never more than `max_open_s`; `jitter` is in 0..1.

    The longest one has jitter, too: it is cut before that comes to it.
    """
    return min(open_s * openings, max_open_s / (1 + SPREAD)) * (1 - SPREAD + 2 * SPREAD * jitter)
