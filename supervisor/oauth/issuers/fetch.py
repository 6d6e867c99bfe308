"""Asks addresses that servers and authorization servers name: each is checked, and what was checked is connected to.

- A name is looked up once; every address it has must be allowed, and the connection goes to one of these, so that a
  second look-up cannot lead elsewhere. TLS is verified against the name.
- Where a proxy of the environment stands in between, it looks names up; then only what is written is checked.
- This is the border of what is read for logins: nothing but `OAuthTrouble` leaves it.
- Bodies are bounded, there is one deadline for all of it, no cookies, and redirects only for documents, each checked.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Mapping, Sequence
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final, TypeVar
from urllib.parse import SplitResult, urlsplit

import httpx2
import msgspec
import trio

from actors.errors import SpawnFailed
from actors.kit.fairness.share import LoopShare, share_of
from actors.protocol.wire import json
from actors.transport.border import Border
from actors.transport.http.client.client import proxy_before, way_to
from actors.transport.http.client.direct import look_up, send_to
from actors.transport.http.client.pieces import whole
from actors.transport.http.client.verdict import context_for, why
from actors.transport.http.remote import server_of
from supervisor.config import OAuthConfig
from supervisor.oauth.issuers.metadata import (
    Challenge,
    IssuerMetadata,
    OAuthTrouble,
    ResourceMetadata,
    Unreached,
    canonical,
    check_addresses,
    check_scheme,
    checked_issuer,
    checked_resource,
    issuer_addresses,
    legacy_issuer,
    origin,
    resource_addresses,
    words_of,
)

MAX_BODY_BYTES: Final = 64 * 1024
DEADLINE_S: Final = 15.0
"""For one request, its redirects and the look-up included."""
CONNECT_S: Final = 5.0
MAX_REDIRECTS: Final = 3
_MOVED: Final = (301, 302, 303, 307, 308)


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """An answer. `body` is whole; `moved` is where a document is to be had instead."""

    status: int
    body: bytes
    challenges: tuple[str, ...]
    moved: str | None


class Fetcher:
    """Asks for one server, whose address its operator wrote. Everything raises `OAuthTrouble`."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._border = Border(server_of(server))

    async def get(self, url: str) -> Fetched:
        with trio.move_on_after(DEADLINE_S):
            for _ in range(MAX_REDIRECTS + 1):
                page = await self._ask("GET", url, {"accept": "application/json"}, None)
                if page.moved is None:
                    return page
                url = page.moved
            raise OAuthTrouble("what should be its metadata leads on and on")
        raise _late()

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, *, limit: int = MAX_BODY_BYTES) -> Fetched:
        """Return the answer to a message, which is sent nowhere else; with `limit` 0 without its body."""
        with trio.move_on_after(DEADLINE_S):
            return await self._ask("POST", url, headers, body, limit)
        raise _late()

    async def _ask(
        self, verb: str, url: str, headers: Mapping[str, str], body: bytes | None, limit: int = MAX_BODY_BYTES
    ) -> Fetched:
        share = share_of(server_of(self._server))
        return await share.run(self._ask_in_turn, share, verb, url, headers, body, limit)

    async def _ask_in_turn(
        self, share: LoopShare, verb: str, url: str, headers: Mapping[str, str], body: bytes | None, limit: int
    ) -> Fetched:
        parts = check_scheme(url, self._server)
        try:
            proxy = proxy_before(url)
            hops = [None] if proxy else await self._addresses(parts)
            async with _client(url, await context_for(url)) as client:
                response = await send_to(client, verb, httpx2.URL(url), headers, body, hops)
                try:
                    content = await whole(response, limit, share) if limit else b""
                finally:
                    await response.aclose()
            return _page(url, response, content)
        except OAuthTrouble:
            raise
        except httpx2.InvalidURL:  # such as an IPv4 address with octal digits
            raise OAuthTrouble("it names something that is no plain https address") from None
        except SpawnFailed as failed:
            raise Unreached(failed.message) from failed
        except httpx2.HTTPError as error:
            through = f", through the proxy that {proxy} names" if proxy else ""
            text = f"its authorization server, or its metadata, cannot be reached ({why(error)}){through}"
            raise Unreached(text) from error
        except Exception as error:
            raise Unreached(f"its authorization server: {self._border.unforeseen(error)}") from error

    async def _addresses(self, parts: SplitResult) -> list[str | None]:
        """Return the IP addresses of a host, all of which may be asked."""
        own = urlsplit(self._server)
        host, own_host = parts.hostname or "", own.hostname or ""
        addresses = await _looked_up(host)
        operators = addresses if host == own_host else await _looked_up(own_host)
        check_addresses(host, addresses, own_host, operators)
        return list(addresses)


def _late() -> Unreached:
    return Unreached(f"its authorization server, or its metadata, gave no answer within {DEADLINE_S:g} s")


def _page(url: str, response: httpx2.Response, content: bytes | None) -> Fetched:
    if content is None:
        raise OAuthTrouble(f"an answer of its authorization server is over {MAX_BODY_BYTES} bytes")
    location = response.headers.get("location") if response.status_code in _MOVED else None
    try:
        moved = None if location is None else str(httpx2.URL(url).join(location))
    except (httpx2.InvalidURL, ValueError):
        raise OAuthTrouble("what should be its metadata leads to what is no address") from None
    challenges = tuple(response.headers.get_list("www-authenticate"))
    return Fetched(status=response.status_code, body=content, challenges=challenges, moved=moved)


async def _looked_up(host: str) -> Sequence[str]:
    try:
        return await look_up(host)
    except (OSError, UnicodeError) as error:
        raise Unreached("the name of its authorization server, or its own, cannot be looked up") from error


def _client(url: str, context: ssl.SSLContext) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        transport=way_to(url, context, httpx2.Limits()),
        trust_env=False,
        headers={"user-agent": "mcpvisor"},
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        timeout=httpx2.Timeout(DEADLINE_S, connect=CONNECT_S),
        follow_redirects=False,
    )


# Finds out who issues tokens for a server, for which resource, and what they should allow.

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
