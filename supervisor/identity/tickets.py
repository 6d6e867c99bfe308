"""What stands for a credential where that cannot be shown: tickets and cookies. Pure.

- A ticket is shown once in an address: by clients that can send neither a header nor a subprotocol with a handshake,
  or by a browser that begins to be signed in. It is for one of the two. Whoever has a credential gets one for it, for
  half a minute.
- A cookie is what a browser that is signed in shows, for twelve hours. Only its digest is kept, in memory: whoever was
  signed in signs in again after a restart.

Either stands for the credential, and whoever takes one asks about that as if it had been shown itself.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, Literal, TypeVar

from actors.errors import SupervisorError
from actors.principal import Principal
from supervisor.identity.requester import Requester

GOOD_FOR_S: Final = 30.0
MAX_OF_ONE: Final = 16
"""So many of either of one principal may be open; for one more the oldest is good for nothing."""
MAX_OPEN: Final = 4096
"""The same of all."""
LIFE_S: Final = 12 * 3600.0
MAX_CHARS: Final = 128
Purpose = Literal["socket", "sign-in"]
"""What a ticket opens: one WebSocket, or the pages, by a cookie."""
K = TypeVar("K", bound=Hashable)


class _Open(Generic[K]):
    """What stands for the credentials of people, each for `life_s`. Moments are seconds of one clock that does not go
    back.
    """

    def __init__(self, life_s: float) -> None:
        self._life_s = life_s
        self._open: OrderedDict[K, tuple[Requester, float]] = OrderedDict()
        self._of: dict[Principal, OrderedDict[K, None]] = {}

    def add(self, key: K, requester: Requester, now: float) -> None:
        self.expire(now)
        own = self._of.get(requester.principal)
        if own is not None and len(own) >= MAX_OF_ONE:
            self.pop(next(iter(own)))
        if len(self._open) >= MAX_OPEN:
            self.pop(next(iter(self._open)))
        self._open[key] = requester, now + self._life_s
        self._of.setdefault(requester.principal, OrderedDict())[key] = None

    def find(self, key: K, now: float) -> Requester | None:
        self.expire(now)
        held = self._open.get(key)
        return None if held is None else held[0]

    def pop(self, key: K) -> Requester | None:
        held = self._open.pop(key, None)
        if held is None:
            return None
        own = self._of[held[0].principal]
        del own[key]
        if not own:
            del self._of[held[0].principal]
        return held[0]

    def revoke(self, digest: bytes) -> None:
        """Let go of what was given for a token of that digest."""
        for key, (each, _) in [*self._open.items()]:
            if each.token is not None and each.token.digest == digest:
                self.pop(key)

    def expire(self, now: float) -> None:
        while self._open and next(iter(self._open.values()))[1] <= now:
            self.pop(next(iter(self._open)))


class Tickets:
    """Those that are open."""

    def __init__(self) -> None:
        self._open = _Open[tuple[Purpose, str]](GOOD_FOR_S)
        self.revoke = self._open.revoke

    def make(self, requester: Requester, now: float, purpose: Purpose = "socket") -> str:
        """Return a ticket for somebody who has shown a credential."""
        made = secrets.token_urlsafe(32)
        self._open.add((purpose, made), requester, now)
        return made

    def find(self, ticket: str, now: float, purpose: Purpose) -> Requester | None:
        """Return whose ticket that is, and leave it good."""
        return self._open.find((purpose, ticket), now)

    def take(self, ticket: str, now: float, purpose: Purpose = "socket") -> Requester | None:
        """Return whose ticket that is, once; None if it is nobody's, or for something else."""
        self._open.expire(now)
        return self._open.pop((purpose, ticket))


class SignIns:
    """Those that are open.

    `check` takes a token, and the address it comes from, and returns whose it is, or why it opens nothing; None where
    nobody has to show who they are.
    """

    def __init__(self) -> None:
        self.cookie = "mcpvisor"
        """Its name: a browser gives a cookie to all ports of a machine."""
        self.check: Callable[[str, str], Requester | SupervisorError] | None = None
        self._open = _Open[bytes](LIFE_S)
        self.revoke = self._open.revoke

    def open(self, requester: Requester, now: float) -> str:
        """Sign somebody in, and return the text of the cookie."""
        made = secrets.token_urlsafe(32)
        self._open.add(_digest(made), requester, now)
        return made

    def find(self, text: str, now: float) -> Requester | None:
        """Return who is signed in with a cookie; None if nobody is."""
        return self._open.find(_digest(text[:MAX_CHARS]), now)

    def close(self, text: str) -> None:
        self._open.pop(_digest(text[:MAX_CHARS]))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="replace")).digest()
