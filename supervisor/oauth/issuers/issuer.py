"""Speaks to the authorization server of one server: registration, tokens, revocation.

Everything raises `OAuthTrouble`; what is `Unreached` says nothing about the tokens.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from supervisor.config import OAuthConfig
from supervisor.oauth.issuers import messages
from supervisor.oauth.issuers.fetch import Fetched, Fetcher
from supervisor.oauth.issuers.grant import Grant, OAuthClient, Tokens
from supervisor.oauth.issuers.metadata import IssuerMetadata
from supervisor.oauth.issuers.registration import read_registration, wanted_method
from supervisor.oauth.issuers.trouble import OAuthTrouble, Unreached

_BUSY = 429


class AuthorizationServer:
    """One authorization server after the other: which one is said with each question. `clock` gives unix time."""

    def __init__(self, config: OAuthConfig, fetcher: Fetcher, clock: Callable[[], float]) -> None:
        self._config = config
        self._fetcher = fetcher
        self._clock = clock

    async def register(self, issuer: IssuerMetadata, redirect_uri: str, scope: tuple[str, ...]) -> OAuthClient:
        """Ask for a name (RFC 7591)."""
        method = wanted_method(issuer)
        said = messages.registration(redirect_uri, method, scope)
        headers = {"content-type": "application/json", "accept": "application/json"}
        page = await self._post(issuer.registration_endpoint, headers, msgspec.json.encode(said))
        if page.status not in (200, 201):
            raise messages.refusal_of(page.status, page.body)
        return read_registration(page.body, method, redirect_uri)

    async def exchange(self, grant: Grant, code: str, verifier: str) -> Tokens:
        """Return tokens for a code (RFC 6749 4.1.3)."""
        members = {"redirect_uri": grant.client.redirect_uri, "code": code, "code_verifier": verifier}
        return await self._tokens(grant, "authorization_code", **members)

    async def refresh(self, grant: Grant) -> Tokens:
        """Return new tokens for old ones (RFC 6749 6)."""
        before = grant.tokens or Tokens(access="")
        return await self._tokens(grant, "refresh_token", refresh_token=before.refresh)

    async def machine(self, grant: Grant) -> Tokens:
        """Return tokens for the client itself (RFC 6749 4.4); there is nothing to renew them with."""
        tokens = await self._tokens(grant, "client_credentials", scope=" ".join(grant.scope))
        return replace(tokens, refresh="")

    async def _tokens(self, grant: Grant, kind: str, **members: str) -> Tokens:
        body, headers = messages.token_request(self._config, grant, kind, **members)
        page = await self._post(grant.issuer.token_endpoint, headers, body)
        return messages.tokens_of(page.status, page.body, self._clock(), grant.tokens)

    async def revoke(self, grant: Grant) -> bool:
        """Have both tokens taken back (RFC 7009), the refresh token first; False where that is not possible."""
        endpoint, tokens = grant.issuer.revocation_endpoint, grant.tokens
        if not endpoint or tokens is None:
            return False
        for hint, token in (("refresh_token", tokens.refresh), ("access_token", tokens.access)):
            if token:
                body, headers = messages.revocation_request(self._config, grant, token, hint)
                page = await self._post(endpoint, headers, body)
                if page.status != 200:
                    raise messages.refusal_of(page.status, page.body)
        return True

    async def _post(self, endpoint: str | None, headers: dict[str, str], body: bytes) -> Fetched:
        page = await self._fetcher.post(endpoint or "", headers, body)
        if page.status >= 500 or page.status == _BUSY:
            raise Unreached(f"its authorization server is not available (HTTP {page.status})")
        if 300 <= page.status < 400:
            raise OAuthTrouble("its authorization server sends us elsewhere, where nothing is sent")
        return page
