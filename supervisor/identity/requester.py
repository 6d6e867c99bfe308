"""Who sends a request, as the gate found out, and where from; what may stand for a credential; who guesses. Pure."""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from ipaddress import IPv6Address, ip_address
from typing import Final, Generic, Literal, Protocol, TypeVar

from msgspec import Struct

from actors.errors import SupervisorError
from actors.principal import Principal
from actors.transport.redaction import Confidential
from supervisor.identity.people import OPERATOR, Person
from supervisor.identity.tokens import SavedToken

# Tokens of identity providers: what one grants here, or that it grants nothing.

READ: Final = "mcp:read"
"""Scope: see what is there, search, read resources."""
EXECUTE: Final = "mcp:tools:execute"
"""Scope: call tools. It includes `READ`."""
SCOPES: Final = (READ, EXECUTE)


class TokenGrant(Struct, frozen=True, kw_only=True):
    """To whom, for which addresses, for what, and until when. `expires_at` is unix seconds."""

    issuer: str
    subject: str
    audiences: tuple[str, ...]
    scopes: frozenset[str]
    expires_at: float

    def allows(self, scope: str) -> bool:
        return scope in self.scopes or (scope == READ and EXECUTE in self.scopes)


class TokenRefused(Exception):
    """A token is not taken. The reason is ours, for the log of the operator."""


class UnknownKey(TokenRefused):
    """A token is signed by a key that its provider did not publish when it was asked last."""


class Bearer(Protocol):
    """What knows of the tokens of identity providers; see `supervisor/oauth/bearer/verifier.py`."""

    def recall(self, token: str) -> TokenGrant | TokenRefused | None:
        """Return what a token grants, or why it is refused, as far as nobody has to be asked; else None."""

    async def ask(self, token: str, address: str) -> TokenGrant:
        """Raises `TokenRefused`, `ProviderUnavailable`."""

    def is_due(self, token: str) -> bool:
        """Say whether a provider should be asked again about a token."""

    async def is_revoked(self, token: str) -> bool:
        """Ask a provider again about a token that it granted."""


class Requester(Confidential, Struct, frozen=True, kw_only=True):
    """A person with the credential that was shown: its id, empty where none was needed, and the `token` that it is.

    Or the `grant` that it stands for, if it is one of an identity provider; `shown` is its text then: what lasts longer
    than a request asks about it again.
    """

    person: Person
    credential: str = ""
    token: SavedToken | None = None
    grant: TokenGrant | None = None
    shown: str = ""

    @property
    def is_proven(self) -> bool:
        """Whether it has shown who it is: then its role says what it may, wherever it comes from."""
        return bool(self.credential)

    @property
    def expires_at(self) -> float | None:
        """In unix seconds; None for what does not expire."""
        if self.grant is not None:
            return self.grant.expires_at
        return self.token.expires_at if self.token is not None else None

    def allows(self, scope: str) -> bool:
        """Say whether the credential is for that: own tokens have no scopes, and are for all that their role may."""
        return self.grant is None or self.grant.allows(scope)

    @property
    def principal(self) -> Principal:
        return self.person.principal


THE_OPERATOR = Requester(person=OPERATOR)
"""Whoever comes where nobody has to show who they are."""
ANYBODY = Requester(person=Person(user=""))
"""Whoever asks for what is told to anybody."""


class RequestOrigin(Struct, frozen=True):
    """Who sends a request, None for a stranger; from which address, and for which path, without its query."""

    requester: Requester | None = None
    address: str = ""
    path: str = ""


ORIGIN: Final[ContextVar[RequestOrigin | None]] = ContextVar("origin", default=None)
"""Of the request that this task serves, and of what it began; None: the daemon does it of itself."""
MESSAGE_ID: Final[ContextVar[bytes]] = ContextVar("message_id", default=b"")
"""The id of the message that this task performs, as JSON text; empty for what is no message."""


# What stands for a credential where that cannot be shown: tickets and cookies.
#
# - A ticket is shown once in an address: by clients that can send neither a header nor a subprotocol with a handshake,
#   or by a browser that begins to be signed in. It is for one of the two. Whoever has a credential gets one for it, for
#   half a minute.
# - A cookie is what a browser that is signed in shows, for twelve hours. Only its digest is kept, in memory: whoever
#   was signed in signs in again after a restart.
#
# Either stands for the credential, and whoever takes one asks about that as if it had been shown itself.

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
    """Those that are open. `cookie` is the name of theirs: a browser gives a cookie to all ports of a machine.

    `check` takes a token, and the address it comes from, and returns whose it is, or why it opens nothing; None where
    nobody has to show who they are.
    """

    def __init__(self, cookie: str = "mcpvisor") -> None:
        self.cookie = cookie
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


# Failed attempts to show who one is: a bucket for each address, so that guessing is slow.
#
# A valid credential never waits: whoever shares an address with one that guesses is not shut out. So an attempt is
# looked at first, and counts here only if it failed.

MAX_ADDRESSES: Final = 4096
"""So many are remembered; for one more the one that was quiet for the longest is forgotten."""
BURST: Final = 10
"""So many attempts may fail at once: a client with a stale token tries it at every door."""
EVERY_S: Final = 6.0
"""After that one in so long."""
_NETWORK_BITS: Final = 64
"""Whoever has one address of IPv6 has a network of these (RFC 6177 2)."""


class FailedAttempts:
    """Moments are seconds of one clock that does not go back. `total` counts all that failed, also forgotten ones."""

    def __init__(self) -> None:
        self.total = 0
        self._free_at: OrderedDict[str, float] = OrderedDict()
        """When all of an address is forgiven."""

    def fail(self, address: str, now: float) -> float:
        """Count an attempt that failed; return how many seconds the next one should wait, 0 while there may be more."""
        self.total += 1
        network = network_of(address)
        free_at = min(max(self._free_at.pop(network, now), now) + EVERY_S, now + (BURST + 1) * EVERY_S)
        self._free_at[network] = free_at
        if len(self._free_at) > MAX_ADDRESSES:
            self._free_at.popitem(last=False)
        return max(0.0, free_at - now - BURST * EVERY_S)


def network_of(address: str) -> str:
    """Return by what an address is counted: itself, or the network that whoever has it has; empty for none."""
    try:
        known = ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(known, IPv6Address):
        mapped = known.ipv4_mapped
        return str(mapped) if mapped is not None else f"{int(known) >> _NETWORK_BITS:x}::"
    return str(known)
