"""The ids of events: the start of the daemon, and a number. Pure.

The numbers count what happens to everybody: a member gets them in another order.
"""

from __future__ import annotations

import hashlib
from typing import Final

from actors.principal import Principal

_HALF_BITS: Final = 24
_MASK: Final = (1 << _HALF_BITS) - 1
_ROUNDS: Final = 4
MAX_NUMBER: Final = (1 << 2 * _HALF_BITS) - 1


class MemberNumbers:
    """Numbers that count what happens to everybody, as a member is shown them: in another order, up to `MAX_NUMBER`.

    Two of them tell nothing of how much was between them, and nothing to anybody else: they go through a Feistel
    network. `key` is secret.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def show(self, number: int, member: Principal | None) -> int:
        """Return what a number is for a member; None: for those who may know how much happens."""
        return number if member is None else self._turn(number, member, range(_ROUNDS))

    def read(self, number: int, member: Principal | None) -> int:
        """Return the number that is shown so; one that is too large is none, and as it is."""
        if member is None or number > MAX_NUMBER:
            return number
        return self._turn(number, member, range(_ROUNDS)[::-1])

    def _turn(self, number: int, member: Principal, rounds: range) -> int:
        left, right = number >> _HALF_BITS, number & _MASK
        for each in rounds if rounds.step > 0 else ():
            left, right = right, left ^ self._mix(right, member, each)
        for each in rounds if rounds.step < 0 else ():
            left, right = right ^ self._mix(left, member, each), left
        return left << _HALF_BITS | right

    def _mix(self, half: int, member: Principal, number: int) -> int:
        text = b"%d %d " % (number, half) + member.encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.blake2b(text, key=self._key, digest_size=_HALF_BITS // 8).digest(), "big")


MAX_ID_CHARS: Final = 64


class Places:
    """Writes and reads ids. `start` has digits alone, `key` is a secret of this run of the daemon."""

    def __init__(self, start: str, key: bytes) -> None:
        self.start = start
        self._numbers = MemberNumbers(key)

    def show(self, number: int, member: Principal | None = None) -> str:
        """Return the id of an event, for a member if one is given."""
        return f"{self.start}-{self._numbers.show(number, member)}"

    def read(self, text: str, member: Principal | None = None) -> int | None:
        """Return the number of an id; None if it is none of this run."""
        start, _, place = text[:MAX_ID_CHARS].partition("-")
        if start != self.start or not (place.isascii() and place.isdigit()) or int(place) > MAX_NUMBER:
            return None
        return self._numbers.read(int(place), member)
