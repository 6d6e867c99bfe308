"""Asks addresses that servers and authorization servers name: each is checked, and what was checked is connected to.

- A name is looked up once; every address it has must be allowed, and the connection goes to one of these, so that a
  second look-up cannot lead elsewhere. TLS is verified against the name.
- Where a proxy of the environment stands in between, it looks names up; then only what is written is checked.
- This is the border of what is read for logins: nothing but `OAuthTrouble` leaves it.
- Bodies are bounded, there is one deadline for all of it, no cookies, and redirects only for documents, each checked.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final
from urllib.parse import SplitResult, urlsplit

import httpx2
import msgspec
import trio

from actors.errors import SpawnFailed
from actors.kit.fairness.share import LoopShare, share_of
from actors.transport.border import Border
from actors.transport.http.client.client import proxy_before, way_to
from actors.transport.http.client.direct import look_up, send_to
from actors.transport.http.client.pieces import whole
from actors.transport.http.client.verdict import context_for, why
from actors.transport.http.remote import server_of
from supervisor.oauth.issuers.targets import check_addresses, check_scheme
from supervisor.oauth.issuers.trouble import OAuthTrouble, Unreached

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
