"""The tokens of a daemon: made, found, revoked. What is kept of one is its digest. Pure.

- A token is found by its digest, in memory: a request never waits for the disk.
- What is made or revoked is on the disk before anybody is told: a token that comes back after a crash was revoked in
  vain.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import string
import zlib
from collections.abc import Callable, Collection
from typing import Final, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from actors.errors import InvalidArguments, SupervisorError
from supervisor.operations import ROLES, Role

# The text of a token: `mcpv_`, 256 random bits, a checksum.
#
# - The prefix and the checksum let scanners of repositories find a token that leaked, without asking anybody, and tell
#   a typing error from a token that was revoked.
# - Only the SHA-256 digest of a token is ever kept: nobody can guess 256 random bits, so no slow hash is needed (NIST
#   SP 800-63B 5.1.2.2, "look-up secrets").

PREFIX: Final = "mcpv_"
ID_CHARS: Final = 12
_ALPHABET: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase
_SECRET_CHARS: Final = 43
"""62 ** 43 is above 2 ** 256."""
_CHECK_CHARS: Final = 6
"""62 ** 6 is above 2 ** 32."""
_FORM: Final = re.compile(rf"{PREFIX}([0-9A-Za-z]{{{_SECRET_CHARS}}})_([0-9A-Za-z]{{{_CHECK_CHARS}}})")


def new_token() -> str:
    """Return a token that nobody has seen."""
    return token_of(secrets.randbits(256))


def token_of(secret: int) -> str:
    """Return the token of a secret, a number below 2 ** 256."""
    text = _base62(secret, _SECRET_CHARS)
    return f"{PREFIX}{text}_{_checksum(text)}"


def digest_of(token: str) -> bytes | None:
    """Return what a token is kept and found by; None for a text that is no token of ours, or mistyped."""
    match = _FORM.fullmatch(token)
    if match is None or _checksum(match[1]) != match[2]:
        return None
    return hashlib.sha256(token.encode()).digest()


def id_of(digest: bytes) -> str:
    """Return what a token is called where people look; it says nothing of the token."""
    return digest.hex()[:ID_CHARS]


def id_of_text(token: str) -> str:
    """Return what a token of somebody else is called where people look."""
    return id_of(hashlib.sha256(token.encode()).digest())


def _checksum(text: str) -> str:
    return _base62(zlib.crc32(text.encode()), _CHECK_CHARS)


def _base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, rest = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[rest])
    return "".join(reversed(digits))


MAX_TOKENS: Final = 10_000
MAX_LABEL_CHARS: Final = 200
USE_NOTED_S: Final = 60.0
"""That a token is used is noted no more often than that."""


class SavedToken(Struct, frozen=True, kw_only=True, array_like=True):
    """A token of ours, by the digest of its text. `role` is what it gives at most, `team` the one it is for, if one.

    `expires_at` is None for one that does not expire, `used_at` for one that nobody used yet. `server` is the one at
    whose personal address it is shown, and nowhere else; empty for a token that is shown everywhere else.
    """

    digest: bytes
    user: str
    role: Role
    team: str = ""
    label: str = ""
    created_at: float = 0.0
    expires_at: float | None = None
    used_at: float | None = None
    server: str = ""

    def has_expired(self, now: float) -> bool:
        return self.expires_at is not None and now >= self.expires_at


class TooManyTokens(SupervisorError, kind="busy"):
    """There are as many tokens as are kept: revoke some that nobody needs."""


_WHY: Final = "the daemon cannot write its database, or reach the engine of its fleet; /api/status says which"


class NotKept(SupervisorError, kind="unavailable"):
    """The daemon cannot write its database, or tell the other nodes of its fleet: /api/status says why."""


class TokenStore(Protocol):
    """Where tokens outlive the daemon."""

    def put(self, token: SavedToken, /) -> object:
        """Keep it, in the place of one of the same digest."""

    def forget(self, digest: bytes, /) -> object:
        """Keep it no longer."""

    async def secure(self) -> bool:
        """Wait until all of that is on the disk, and say whether it is."""


Noted = Callable[[Literal["create", "revoke", "expire"], SavedToken], None]
"""Told what becomes of tokens, for the audit."""


class _NoStore:
    """Keeps nothing."""

    def put(self, token: SavedToken, /) -> object: ...

    def forget(self, digest: bytes, /) -> object: ...

    async def secure(self) -> bool:
        return False


class TokenTable:
    """All tokens, once they are `read`. `revoked` is told the digest of each that was. Moments are unix seconds."""

    def __init__(self, store: TokenStore, noted: Noted = lambda change, token: None) -> None:
        self._store = store
        self._noted = noted
        self.revoked: Callable[[bytes], None] = lambda digest: None
        self.taken: Callable[[Collection[SavedToken]], None] = lambda saved: None
        """Told which tokens were kept."""
        self.read = False
        self._tokens: dict[bytes, SavedToken] = {}

    @classmethod
    def empty(cls) -> TokenTable:
        """Return the table of a daemon that takes no tokens of its own."""
        table = cls(_NoStore())
        table.read = True
        return table

    def take(self, saved: Collection[SavedToken]) -> None:
        """Know what was kept."""
        self.read = True
        self._tokens |= {token.digest: token for token in saved}
        self.taken(saved)

    def hear_revocation(self, digest: bytes) -> None:
        """It was revoked at another node of the fleet."""
        if digest in self._tokens:
            self._forget(digest)

    def all(self) -> list[SavedToken]:
        """Return all, the oldest first."""
        return sorted(self._tokens.values(), key=lambda token: (token.created_at, token.digest))

    def is_good(self, token: SavedToken, now: float) -> bool:
        """Say whether a token that was found once would be again."""
        return token.digest in self._tokens and not token.has_expired(now)

    def has(self, user: str, team: str, now: float, role: Role = "member") -> bool:
        """Say whether a user has a token that is good at the addresses of all, for one team alone if one is named, and
        for a role or more.

        Nothing says that it has none before they are `read`.
        """
        return not self.read or any(
            token.user == user
            and token.team == team
            and ROLES.index(token.role) >= ROLES.index(role)
            and not (token.server or token.has_expired(now))
            for token in self._tokens.values()
        )

    def find(self, text: str, now: float, server: str = "") -> SavedToken | None:
        """Return what a text is the token of, at the personal address of a server if one is named.

        None for what is none there, or none any more. Notes that it was used.
        """
        digest = digest_of(text)
        token = self._tokens.get(digest) if digest is not None else None
        if token is None or token.server != server or token.has_expired(now):
            return None
        if token.used_at is None or now - token.used_at > USE_NOTED_S:
            token = self._tokens[token.digest] = replace(token, used_at=now)
            self._store.put(token)
        return token

    async def make(
        self,
        user: str,
        *,
        role: Role,
        team: str = "",
        server: str = "",
        label: str = "",
        expires_at: float | None = None,
        now: float,
    ) -> tuple[str, SavedToken]:
        """Return a new token, and what is kept of it. It is shown once: nobody can show it again.

        Raises `TooManyTokens`, and `NotKept` if it would not outlive the daemon.
        """
        for expired in [token for token in self._tokens.values() if token.has_expired(now)]:
            self._forget(expired.digest)
            self._noted("expire", expired)
        if len(self._tokens) >= MAX_TOKENS:
            raise TooManyTokens(f"there are {MAX_TOKENS} tokens; revoke some that nobody needs")
        text = new_token()
        digest = digest_of(text)
        assert digest is not None
        token = SavedToken(
            digest=digest,
            user=user,
            role=role,
            team=team,
            label=label,
            created_at=now,
            expires_at=expires_at,
            server=server,
        )
        self._tokens[digest] = token
        self._store.put(token)
        self._noted("create", token)
        if not await self._store.secure():
            self._forget(digest)
            self._noted("revoke", token)
            raise NotKept(f"no token was made: {_WHY}")
        return text, token

    async def revoke(self, id_: str) -> SavedToken:
        """Let the token of this id be none any more, at once. Raises `InvalidArguments`, `NotKept`.

        With `NotKept` it is refused from now on all the same, until the daemon is started again.
        """
        token = next((token for token in self._tokens.values() if id_of(token.digest) == id_), None)
        if token is None:
            raise InvalidArguments(f"there is no token {id_[:64]!r}; `mcpvisor token list` shows the ids of all")
        self._forget(token.digest)
        self._noted("revoke", token)
        if not await self._store.secure():
            raise NotKept(f"it is refused here from now on, but not kept as revoked: {_WHY}")
        return token

    def _forget(self, digest: bytes) -> None:
        self._tokens.pop(digest, None)  # revoked while it was made, say
        self._store.forget(digest)
        self.revoked(digest)
