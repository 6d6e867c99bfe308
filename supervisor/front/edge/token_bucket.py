"""How often something may happen: a token bucket. PURE, the time is an argument."""

from __future__ import annotations


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
