"""Tickets for WebSockets: shown once in an address by clients that can send neither a header nor a subprotocol. Pure.

Whoever has a credential gets one for it, and opens one socket with it within half a minute. It is worth what the
credential is worth, and nothing once that is revoked or means another person.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from typing import Final

from supervisor.identity.requester import Requester

GOOD_FOR_S: Final = 30.0
MAX_OF_ONE: Final = 16
"""So many of one principal may be open; for one more the oldest is good for nothing."""
MAX_OPEN: Final = 4096
"""The same of all."""


class Tickets:
    """Those that are open. Moments are seconds of one clock that does not go back."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, tuple[Requester, float]] = OrderedDict()

    def make(self, requester: Requester, now: float) -> str:
        """Return a ticket for somebody who has shown a credential."""
        self._expire(now)
        own = [ticket for ticket, (each, _) in self._open.items() if each.principal == requester.principal]
        for ticket in own[: max(0, len(own) - MAX_OF_ONE + 1)]:
            del self._open[ticket]
        if len(self._open) >= MAX_OPEN:
            self._open.popitem(last=False)
        made = secrets.token_urlsafe(32)
        self._open[made] = requester, now + GOOD_FOR_S
        return made

    def take(self, ticket: str, now: float) -> Requester | None:
        """Return whose ticket that is, once; None if it is nobody's."""
        self._expire(now)
        taken = self._open.pop(ticket, None)
        return None if taken is None else taken[0]

    def revoke(self, digest: bytes) -> None:
        """Let go of what was given for a token of that digest."""
        gone = [
            ticket for ticket, (each, _) in self._open.items() if each.token is not None and each.token.digest == digest
        ]
        for ticket in gone:
            del self._open[ticket]

    def _expire(self, now: float) -> None:
        while self._open and next(iter(self._open.values()))[1] <= now:
            self._open.popitem(last=False)
