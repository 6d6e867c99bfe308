"""Finds out who issues tokens for a server, for which resource, and what they should allow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from actors.protocol.wire import json
from supervisor.config import OAuthConfig
from supervisor.oauth.issuers.fetch import Fetcher
from supervisor.oauth.issuers.metadata import (
    Challenge,
    IssuerMetadata,
    ResourceMetadata,
    canonical,
    checked_issuer,
    checked_resource,
    issuer_addresses,
    legacy_issuer,
    origin,
    resource_addresses,
    words_of,
)
from supervisor.oauth.issuers.trouble import OAuthTrouble

OFFLINE = "offline_access"

Document = TypeVar("Document", ResourceMetadata, IssuerMetadata)


class Located(msgspec.Struct, frozen=True, kw_only=True):
    """Who issues tokens for a server, for which resource, and what the server says that they should allow."""

    issuer: IssuerMetadata
    resource: str
    scope: tuple[str, ...] = ()


async def locate(
    fetcher: Fetcher, server: str, challenge: Challenge, config: OAuthConfig, *, wanted: bool = True
) -> Located:
    """Follow what a server and its authorization server publish (RFC 9728, 8414). Raises `OAuthTrouble`.

    `wanted`: the server asks for a login; else nothing is supposed of it that it does not publish.
    """
    document = await _resource(fetcher, server, challenge)
    if document is None:
        issuer = await published_issuer(fetcher, origin(server))
        if issuer is None and not wanted:
            raise OAuthTrouble("it answers without one, and publishes nothing of logins")
        issuer = issuer or legacy_issuer(server)
        return Located(issuer=issuer, resource=canonical(server), scope=challenge.scope)
    named = document.authorization_servers
    chosen = config.issuer if config.issuer in named else named[0]
    known = await published_issuer(fetcher, chosen)
    if known is None:
        raise OAuthTrouble("its authorization server publishes no metadata")
    scope = challenge.scope or words_of(" ".join(document.scopes_supported or ()))
    return Located(issuer=known, resource=document.resource, scope=scope)


async def _resource(fetcher: Fetcher, server: str, challenge: Challenge) -> ResourceMetadata | None:
    document = await _first_of(fetcher, resource_addresses(server, challenge), ResourceMetadata)
    if document is None and challenge.resource_metadata:
        raise OAuthTrouble("the metadata that it names cannot be read")
    return document and checked_resource(document, server)


async def published_issuer(fetcher: Fetcher, issuer: str) -> IssuerMetadata | None:
    """Return what an authorization server publishes of itself, None for nothing (RFC 8414 3). Raises `OAuthTrouble`."""
    try:
        addresses = issuer_addresses(issuer)
    except ValueError:
        raise OAuthTrouble("its metadata name an authorization server that is no address") from None
    document = await _first_of(fetcher, addresses, IssuerMetadata)
    return document and checked_issuer(document, issuer)


async def _first_of(fetcher: Fetcher, addresses: Iterable[str], kind: type[Document]) -> Document | None:
    for url in addresses:
        page = await fetcher.get(url)
        document = json.read_or(msgspec.json.Decoder(kind), page.body, None) if page.status == 200 else None
        if document is not None:
            return document
    return None


def wanted_scope(config: OAuthConfig, located: Located, before: tuple[str, ...]) -> tuple[str, ...]:
    """Return what to ask for: what is configured, or what the server wants, and what was asked for `before`.

    (MCP 2026-07-28, basic/authorization "Scope Selection Strategy", "Step-Up Authorization Flow", "Refresh Tokens".)
    """
    scope = words_of(config.scope) or tuple(dict.fromkeys((*before, *located.scope)))
    offline = OFFLINE in (located.issuer.scopes_supported or ()) and config.grant == "authorization_code"
    return tuple(dict.fromkeys((*scope, OFFLINE))) if scope and offline else scope
