"""What is kept of a login: which server it is for, who issued it, as which client, and the tokens. Pure.

A grant is bound to the server's address, the issuer and the resource: if one of them changes it is not used any more.
"""

from __future__ import annotations

import math
from typing import Final, Literal

import msgspec

from actors.transport.redaction import Confidential
from supervisor.oauth.issuers.metadata import IssuerMetadata

AHEAD_S: Final = 60.0
"""An access token is renewed so long before it ends; one that lives for less than ten minutes, in its last tenth."""
LEAST_AHEAD_S: Final = 5.0
"""A tenth may be less than a renewal takes: then it is that, but half of the token's life at the most."""

AuthMethod = Literal["none", "client_secret_basic", "client_secret_post", "private_key_jwt"]
"""How a client says who it is at the token endpoint (OpenID Connect Core 9)."""


class OAuthClient(Confidential, msgspec.Struct, frozen=True, kw_only=True):
    """Who we are to an issuer. `registered`: it gave us that name itself; `secret_until`: unix seconds, 0 for never."""

    id: str
    secret: str = ""
    method: AuthMethod = "none"
    redirect_uri: str = ""
    registered: bool = False
    secret_until: float = 0.0


class Tokens(Confidential, msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of one server. Times are unix time in seconds; without `expires_at` nobody said how long they last."""

    access: str
    refresh: str = ""
    issued_at: float = 0.0
    expires_at: float | None = None
    scope: tuple[str, ...] = ()

    @property
    def life_s(self) -> float:
        return math.inf if self.expires_at is None else max(0.0, self.expires_at - self.issued_at)

    @property
    def ahead_s(self) -> float:
        return min(AHEAD_S, max(LEAST_AHEAD_S, self.life_s / 10), self.life_s / 2)

    def left_s(self, now: float) -> float:
        """Return how many seconds it has left: never more than it was issued for, wherever the clock was set to."""
        return math.inf if self.expires_at is None else min(self.expires_at - now, self.life_s)


class Grant(Confidential, msgspec.Struct, frozen=True, kw_only=True):
    """A login at the address `server`, asked for `scope`. `tokens` are None when of no use; `client` outlives them."""

    server: str
    issuer: IssuerMetadata
    resource: str
    client: OAuthClient
    tokens: Tokens | None = None
    scope: tuple[str, ...] = ()
