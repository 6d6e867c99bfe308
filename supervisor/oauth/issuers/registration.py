"""As which client we log in: one that is configured, our own document, or a name that the authorization server gives.

In the order of MCP 2025-11-25, basic/authorization "Client Registration Approaches". Pure.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from actors.protocol.wire import json
from supervisor.config import OAuthConfig
from supervisor.oauth.issuers.grant import AuthMethod, Grant, OAuthClient
from supervisor.oauth.issuers.metadata import IssuerMetadata
from supervisor.oauth.issuers.trouble import OAuthTrouble

_PREFERRED: Final[tuple[AuthMethod, ...]] = ("none", "client_secret_basic", "client_secret_post")
_WITH_SECRET: Final[tuple[AuthMethod, ...]] = ("client_secret_basic", "client_secret_post")
MAX_ID_CHARS: Final = 4096

_Word = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ID_CHARS)]


class _RegistrationAnswer(msgspec.Struct):
    client_id: _Word
    client_secret: str | None = None
    client_secret_expires_at: float | None = None
    token_endpoint_auth_method: str | None = None


def known_client(
    config: OAuthConfig, issuer: IssuerMetadata, redirect_uri: str, kept: Grant | None, now: float
) -> OAuthClient | None:
    """Return whom to log in as; None if a name has to be asked for. Raises `OAuthTrouble` with what to configure."""
    if config.client_id:
        expected = config.issuer
        if not expected and kept is not None and kept.client.id == config.client_id:
            expected = kept.issuer.issuer  # who was told that client first: whoever else is named gets no secret of it
        if expected and expected != issuer.issuer:
            raise OAuthTrouble(
                'its authorization server is not the one that the configured client is known to ("issuer" in "oauth"); '
                "if it has moved, log out first"
            )
        method = _method(config, issuer)
        return OAuthClient(id=config.client_id, secret=config.client_secret, method=method, redirect_uri=redirect_uri)
    if config.client_metadata_url and issuer.client_id_metadata_document_supported:
        return OAuthClient(id=config.client_metadata_url, redirect_uri=redirect_uri)
    if kept is not None and _lasts(kept, issuer, redirect_uri, now):
        return kept.client
    if not issuer.registration_endpoint:
        raise OAuthTrouble(
            'its authorization server does not register clients by itself: register one there and put its "client_id" '
            'into "oauth" of the entry' + (f"; its redirect URI is {redirect_uri}" if redirect_uri else "")
        )
    return None


def _method(config: OAuthConfig, issuer: IssuerMetadata) -> AuthMethod:
    if config.private_key:
        return "private_key_jwt"
    if not config.client_secret:
        return "none"
    offered = issuer.token_endpoint_auth_methods_supported or _WITH_SECRET
    return next((method for offer in offered for method in _WITH_SECRET if method == offer), "client_secret_basic")


def _lasts(kept: Grant, issuer: IssuerMetadata, redirect_uri: str, now: float) -> bool:
    """Say whether a name that was given once can be used here: by the same issuer, for the same redirect address."""
    client = kept.client
    same = kept.issuer.issuer == issuer.issuer and client.redirect_uri == redirect_uri
    return client.registered and same and (client.secret_until == 0 or now < client.secret_until)


def wanted_method(issuer: IssuerMetadata) -> AuthMethod:
    """Return how we would like to say who we are: without a secret, or else as the authorization server likes best.

    The order is its own: there are some that take a secret in the head for tokens, and not for their revocation.
    """
    offered = issuer.token_endpoint_auth_methods_supported or ("none",)
    ours = [method for offer in offered for method in _PREFERRED if method == offer]
    return "none" if "none" in ours or not ours else ours[0]


def registration(redirect_uri: str, method: str, scope: tuple[str, ...]) -> dict[str, Any]:
    """Return what we say of ourselves to an authorization server that gives names to clients (RFC 7591 2)."""
    said: dict[str, Any] = {
        "client_name": "mcpvisor",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        "application_type": "native",
    }
    return {**said, "scope": " ".join(scope)} if scope else said


def read_registration(body: bytes, asked: AuthMethod, redirect_uri: str) -> OAuthClient:
    """Return the client of an answer to a registration (RFC 7591 3.2.1). Raises `OAuthTrouble` for what is none."""
    try:
        answer = json.read(msgspec.json.Decoder(_RegistrationAnswer), body)
    except json.UnreadableJson:
        raise OAuthTrouble("its authorization server gave an answer that is no registration") from None
    secret = answer.client_secret or ""
    named = answer.token_endpoint_auth_method
    method = asked if named is None else next((each for each in _PREFERRED if each == named), None)
    if method is None:
        raise OAuthTrouble("its authorization server wants a way of saying who we are that we do not have")
    if method in _WITH_SECRET and not secret:
        raise OAuthTrouble("its authorization server wants a secret of us and gave none")
    return OAuthClient(
        id=answer.client_id,
        secret=secret,
        method=method,
        redirect_uri=redirect_uri,
        registered=True,
        secret_until=answer.client_secret_expires_at or 0.0,
    )
