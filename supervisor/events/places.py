"""The ids of events: the start of the daemon, and a number. Pure.

The numbers count what happens to everybody. So a member gets them in another order: two ids of theirs tell nothing of
how much was between them, and nothing to anybody else.
"""

from __future__ import annotations

import hashlib
from typing import Final

from actors.principal import Principal

_HALF_BITS: Final = 24
_MASK: Final = (1 << _HALF_BITS) - 1
_ROUNDS: Final = 4
MAX_NUMBER: Final = (1 << 2 * _HALF_BITS) - 1
MAX_ID_CHARS: Final = 64


class Places:
    """Writes and reads ids. `start` has digits alone, `key` is a secret of this run of the daemon."""

    def __init__(self, start: str, key: bytes) -> None:
        self.start = start
        self._key = key

    def show(self, number: int, member: Principal | None = None) -> str:
        """Return the id of an event, for a member if one is given."""
        return f"{self.start}-{number if member is None else self._turn(number, member, range(_ROUNDS))}"

    def read(self, text: str, member: Principal | None = None) -> int | None:
        """Return the number of an id; None if it is none of this run."""
        start, _, place = text[:MAX_ID_CHARS].partition("-")
        if start != self.start or not (place.isascii() and place.isdigit()) or int(place) > MAX_NUMBER:
            return None
        return int(place) if member is None else self._turn(int(place), member, range(_ROUNDS)[::-1])

    def _turn(self, number: int, member: Principal, rounds: range) -> int:
        """Return another number, by a Feistel network: the same with the rounds backwards turns it back."""
        left, right = number >> _HALF_BITS, number & _MASK
        for each in rounds if rounds.step > 0 else ():
            left, right = right, left ^ self._mix(right, member, each)
        for each in rounds if rounds.step < 0 else ():
            left, right = right ^ self._mix(left, member, each), left
        return left << _HALF_BITS | right

    def _mix(self, half: int, member: Principal, number: int) -> int:
        text = b"%d %d " % (number, half) + member.encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.blake2b(text, key=self._key, digest_size=_HALF_BITS // 8).digest(), "big")
