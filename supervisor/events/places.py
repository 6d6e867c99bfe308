"""The ids of events: the start of the daemon, and a number. Pure.

The numbers count what happens to everybody: a member gets them in another order.
"""

from __future__ import annotations

from typing import Final

from actors.principal import Principal
from supervisor.identity.member_numbers import MAX_NUMBER, MemberNumbers

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
