"""The transports over HTTP: one connection is one session, with sockets of its own."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final

import httpx2
import trio

from actors.errors import SpawnFailed
from actors.kit.nursery import background
from actors.transport.border import Border
from actors.transport.http.authorization import AuthorizedClient, Authorizer
from actors.transport.http.client.client import proxy_before, way_to
from actors.transport.http.client.tls import context_for
from actors.transport.http.connection import HttpConnection
from actors.transport.http.head import ENCODING
from actors.transport.http.remote import HttpKind, HttpLimits, Remote, server_of
from actors.transport.http.site import Site

_KEEP_ALIVE_S: Final = 4.0
"""Many servers close what was idle for five seconds (Node, uvicorn, hypercorn, Apache, as they come). What is sent at
that moment is lost, and nobody knows whether it was read (RFC 9112 §9.3.1)."""
_POOL: Final = httpx2.Limits(max_connections=None, max_keepalive_connections=8, keepalive_expiry=_KEEP_ALIVE_S)


class HttpTransport:
    """Reaches a server by Streamable HTTP or HTTP+SSE: `kind` is what is tried first, then what it speaks."""

    def __init__(
        self,
        remote: Remote,
        limits: HttpLimits | None = None,
        kind: HttpKind = "http",
        authorizer: Authorizer | None = None,
    ) -> None:
        self.kind: str = kind
        self._kind: HttpKind = kind
        self._remote = remote
        self._limits = limits or HttpLimits()
        self._authorizer = authorizer
        self._border = Border(server_of(remote.url))

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[HttpConnection]:
        """Give one session; its first message opens it. Entering raises `SpawnFailed` if nothing can be asked there."""
        client, site = self._open(await context_for(self._remote.url))
        try:
            async with background() as nursery:
                hide = None if self._authorizer is None else client.without_tokens
                connection = HttpConnection(site, nursery, self._kind, self._learn, hide)
                try:
                    yield connection
                finally:
                    connection.kill()
                    nursery.cancel_scope.cancel()
        finally:  # when no task uses it any more
            with trio.move_on_after(self._limits.stop_s, shield=True):
                await client.aclose()

    def _open(self, trusted: ssl.SSLContext) -> tuple[AuthorizedClient, Site]:
        """Return a client, and what is asked by it. Raises `SpawnFailed` if nothing can be asked there."""
        limits, url = self._limits, self._remote.url
        try:
            client = AuthorizedClient(
                self._authorizer,
                transport=way_to(url, trusted, _POOL),
                trust_env=False,
                headers={**self._remote.headers, "user-agent": "mcpvisor", "accept-encoding": ENCODING},
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
                timeout=httpx2.Timeout(None, connect=limits.connect_timeout_s, write=limits.write_timeout_s),
            )
            return client, Site(url, limits, client, self._border, proxy_before(url))
        except UnicodeEncodeError as error:
            text = 'what would be sent to it is no HTTP: look at its "headers"'
            raise SpawnFailed(text, permanent=True) from error
        except (httpx2.InvalidURL, ValueError) as error:
            raise SpawnFailed('what is at "url" is no address', permanent=True) from error

    def _learn(self, kind: HttpKind) -> None:
        self.kind = self._kind = kind
