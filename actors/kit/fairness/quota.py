"""A bound that several share: each may hold as much as is left free for all others. Pure.

A fixed part for each would be too small for one who is alone, or not bounded for many. Here the first holder gets half
at the most, a second one half of the rest, and so on: whoever comes later always gets something, and nobody loses what
it has (the "dynamic thresholds" of shared buffers: Choudhury and Hahne, IEEE/ACM Transactions on Networking 6, 1998).
"""

from __future__ import annotations

from collections.abc import Hashable

from actors.principal import LOCAL, Principal


class Quota:
    """So much of one thing for all holders together: a number, or bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._held: dict[Hashable, int] = {}

    def amount_of(self, holder: Hashable) -> int:
        return self._held.get(holder, 0)

    def has_room(self, holder: Hashable, amount: int = 1) -> bool:
        """Say whether a holder may have so much more: then it has no more than is left free."""
        return self.amount_of(holder) + amount <= self.limit - self.used - amount

    def add(self, holder: Hashable, amount: int = 1) -> None:
        """Give a holder more. Whoever may not refuse any more need not have asked `has_room`."""
        self._held[holder] = self.amount_of(holder) + amount
        self.used += amount

    def remove(self, holder: Hashable, amount: int = 1) -> None:
        self.used -= amount
        left = self.amount_of(holder) - amount
        if left:
            self._held[holder] = left
        else:
            self._held.pop(holder, None)


class Shares(Quota):
    """Nobody has more places than are left for others, but the local principal: the one there is, or the operator."""

    def has_place(self, principal: Principal) -> bool:
        """Say whether somebody may have one more. Whoever has none may have the last one."""
        if self.used >= self.limit:
            return False
        return principal == LOCAL or self.has_room(principal) or not self.amount_of(principal)

    def why_not(self, principal: Principal, what: str) -> str:
        """Say why there is no place for somebody, without a word about others; `what` the places are for."""
        own = self.amount_of(principal)
        if principal == LOCAL or self.has_room(principal) or not own:
            return f"the limit of {self.limit} {what} is reached"
        return f"{own} {what} of yours are open, and the rest of the room is for others: end one of them"
