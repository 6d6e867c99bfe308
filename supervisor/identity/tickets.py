"""What stands for a credential where that cannot be shown: tickets and cookies. Pure.

- A ticket is shown once in an address: by clients that can send neither a header nor a subprotocol with a handshake,
  and by a browser that begins to be signed in. Whoever has a credential gets one for it, for half a minute.
- A cookie is what a browser that is signed in shows, for twelve hours. Only its digest is kept, in memory: whoever was
  signed in signs in again after a restart.

Either is worth what the credential is worth, and nothing once that is revoked, has expired or means another person.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from actors.errors import SupervisorError
from supervisor.identity.requester import Requester

GOOD_FOR_S: Final = 30.0
MAX_OF_ONE: Final = 16
"""So many of either of one principal may be open; for one more the oldest is good for nothing."""
MAX_OPEN: Final = 4096
"""The same of all."""


LIFE_S: Final = 12 * 3600.0
MAX_CHARS: Final = 128


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


class SignIns:
    """Those that are open. Moments are seconds of one clock that does not go back.

    `check` takes a token, and the address it comes from, and returns whose it is, or why it opens nothing; None where
    nobody has to show who they are.
    """

    def __init__(self) -> None:
        self.cookie = "mcpvisor"
        """Its name: a browser gives a cookie to all ports of a machine."""
        self.check: Callable[[str, str], Requester | SupervisorError] | None = None
        self._open: OrderedDict[bytes, tuple[Requester, float]] = OrderedDict()

    def open(self, requester: Requester, now: float) -> str:
        """Sign somebody in, and return the text of the cookie."""
        self._expire(now)
        own = [digest for digest, (each, _) in self._open.items() if each.principal == requester.principal]
        for digest in own[: max(0, len(own) - MAX_OF_ONE + 1)]:
            del self._open[digest]
        if len(self._open) >= MAX_OPEN:
            self._open.popitem(last=False)
        made = secrets.token_urlsafe(32)
        self._open[_digest(made)] = requester, now + LIFE_S
        return made

    def find(self, text: str, now: float) -> Requester | None:
        """Return who is signed in with a cookie; None if nobody is."""
        self._expire(now)
        held = self._open.get(_digest(text[:MAX_CHARS]))
        return None if held is None else held[0]

    def close(self, text: str) -> None:
        self._open.pop(_digest(text[:MAX_CHARS]), None)

    def revoke(self, digest: bytes) -> None:
        """Sign out whoever has shown the token of that digest."""
        for key, (each, _) in [*self._open.items()]:
            if each.token is not None and each.token.digest == digest:
                del self._open[key]

    def _expire(self, now: float) -> None:
        while self._open and next(iter(self._open.values()))[1] <= now:
            self._open.popitem(last=False)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="replace")).digest()
