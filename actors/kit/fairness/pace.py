"""How fast is taken what somebody sends without being asked: a rate, and a burst that may come at once. Pure.

The generic cell rate algorithm (ITU-T I.371): one moment is all that is kept.
"""

from __future__ import annotations

import math


class LinePace:
    """At most `per_s` a second, but for `burst` after a time in which less came. Moments are seconds of one clock.

    Who took more all the same rests for as long as `burst` takes, and no longer.
    """

    def __init__(self, per_s: float, burst: float) -> None:
        self._per_s = per_s
        self._credit_s = burst / per_s
        self._paid_until = -math.inf

    def take(self, count: float, now: float) -> None:
        """Take that so many came."""
        paid_until = max(self._paid_until, now - self._credit_s) + count / self._per_s
        self._paid_until = min(paid_until, now + self._credit_s)

    def rest_s(self, now: float) -> float:
        """Return for how many seconds no more is to be taken."""
        return max(0.0, self._paid_until - now)
