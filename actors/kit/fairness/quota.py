"""A bound that several share: each may hold as much as is left free for all others. Pure.

A fixed part for each would be too small for one who is alone, or not bounded for many. Here the first holder gets half
at the most, a second one half of the rest, and so on: whoever comes later always gets something, and nobody loses what
it has (the "dynamic thresholds" of shared buffers: Choudhury and Hahne, IEEE/ACM Transactions on Networking 6, 1998).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from actors.principal import LOCAL, ClientKey, Principal


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


class ClientQuota:
    """A bound that clients share: people first, and then the clients of each. Pure.

    The name of a client proves nothing: whoever is counted by names alone takes as many shares as they make up names.
    So each principal has a share, and what that is goes to their clients as the whole would go to all (`Quota`). A
    program that runs wild starves neither other people nor the other programs of the same person.

    So much of one thing for all clients together: a number, or bytes.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._principals = Quota(limit)
        self._clients = Quota(limit)

    @property
    def used(self) -> int:
        return self._principals.used

    def amount_of(self, client: ClientKey) -> int:
        return self._clients.amount_of(client)

    def has_room(self, client: ClientKey, amount: int = 1) -> bool:
        """Say whether a client may have so much more. Whoever has nothing may have the last place."""
        principal, _ = client
        own, held = self._principals.amount_of(principal), self.amount_of(client)
        free = self.limit - self.used
        if amount == 1 and free > 0 and not own:
            return True
        left = self._share(principal) - own
        return amount <= left and (not held or held + amount <= left - amount)

    def add(self, client: ClientKey, amount: int = 1) -> None:
        """Give a client more. Whoever may not refuse any more need not have asked `has_room`."""
        self._principals.add(client[0], amount)
        self._clients.add(client, amount)

    def remove(self, client: ClientKey, amount: int = 1) -> None:
        self._principals.remove(client[0], amount)
        self._clients.remove(client, amount)

    def _share(self, principal: Principal) -> int:
        """Return how much all clients of a principal may have: half of what the others leave. The local one, which is
        the one there is, or the operator, may have all of that.
        """
        left = self.limit - self.used + self._principals.amount_of(principal)
        return left if principal == LOCAL else left // 2


def divide(amount: int, wanted: Sequence[int]) -> list[int]:
    """Divide one amount among several, each as much as it can be given without another one getting less.

    Who wants less than an equal part gets all of that, and the rest is divided among the others in the same way
    (max-min fairness: Bertsekas and Gallager, Data Networks, 6.5.2). Returns what each gets, in the order of `wanted`;
    what does not divide goes to those who want most.
    """
    shares = [0] * len(wanted)
    left = amount
    for done, place in enumerate(sorted(range(len(wanted)), key=lambda place: wanted[place])):
        shares[place] = min(wanted[place], left // (len(wanted) - done))
        left -= shares[place]
    return shares
