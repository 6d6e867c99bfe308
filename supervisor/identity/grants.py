"""What the token of an identity provider grants here, or that it grants nothing. Pure."""

from __future__ import annotations

from typing import Final, Protocol

from msgspec import Struct

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
