"""A bound that clients share: people first, and then the clients of each. Pure.

The name of a client proves nothing: whoever is counted by names alone takes as many shares as they make up names. So
each principal has a share, and what that is goes to their clients as the whole would go to all (`Quota`). A program
that runs wild starves neither other people nor the other programs of the same person.
"""

from __future__ import annotations

from actors.kit.fairness.quota import Quota
from actors.principal import LOCAL, ClientKey, Principal


class ClientQuota:
    """So much of one thing for all clients together: a number, or bytes."""

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
