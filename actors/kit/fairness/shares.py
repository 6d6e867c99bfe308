"""A number of places that people share. Pure."""

from __future__ import annotations

from actors.kit.fairness.quota import Quota
from actors.principal import LOCAL, Principal


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
