"""Identity providers, as the configuration names them, and who their subjects are here. Pure.

A subject is known by issuer and `sub` together, never by an address of mail: those are given to others later.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Final

from msgspec import Struct

from actors.transport.redaction import Confidential

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
"""All that may be configured: they sign with a key that only the provider has (RFC 7518 3.1, RFC 8037, RFC 9864)."""
MAX_ISSUERS: Final = 8
USER_CHARS: Final = 24


class Introspection(Confidential, Struct, frozen=True, kw_only=True):
    """How a provider is asked about a token (RFC 7662)."""

    endpoint: str = ""
    """Where it is asked; empty: where its own metadata say."""
    client_id: str = ""
    """The client as which the daemon asks; empty: it does not ask."""
    client_secret: str = ""
    """The secret of that client, best as `${NAME}`."""


class Issuer(Struct, frozen=True, kw_only=True):
    """One identity provider of the configuration."""

    issuer: str = ""
    """Its address, letter by letter as it stands in `iss` of its tokens."""
    audience: tuple[str, ...] = ()
    """What `aud` of a token may be besides the address of the door that it is shown at, and that of `/mcp`."""
    algorithms: tuple[str, ...] = ("RS256", "PS256", "ES256", "EdDSA")
    """Algorithms by which its tokens may be signed. All but these are refused."""
    allow_untyped: bool = False
    """Take tokens whose `typ` is `JWT`, or that have none, and not only `at+jwt`. What an ID token has is refused
    all the same."""
    introspection: Introspection = Introspection()
    """Ask the provider about each token, also about those that are no JWT: then the daemon hears of one that was
    revoked."""

    @property
    def asks(self) -> bool:
        """Whether the provider is asked about tokens."""
        return bool(self.introspection.client_id)


def user_name(issuer: str, subject: str) -> str:
    """Return what a subject is called where the configuration names no users; no name of a person can be read of it."""
    digest = hashlib.blake2b(f"{issuer}\0{subject}".encode("utf-8", "surrogatepass")).digest()
    return f"u_{base64.b32encode(digest).decode()[:USER_CHARS].lower()}"
