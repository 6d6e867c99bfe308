"""One message to an address of a client: it is looked up and checked, and asked as it was checked; see `callbacks`."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final

import httpx2
import trio

from actors.errors import SpawnFailed
from actors.kit.fairness.share import LoopShare
from actors.transport.http.addresses import where
from actors.transport.http.client.client import direct_way
from actors.transport.http.client.direct import look_up, send_to
from actors.transport.http.client.pieces import whole
from actors.transport.http.client.verdict import context_for
from actors.transport.http.head import retry_after_s
from supervisor.service.events.limits import CALLBACK_CONNECT_S, CALLBACK_S, Undelivered

_MAX_LOOK_UPS: Final = 16
_look_ups = trio.lowlevel.RunVar[trio.CapacityLimiter]("look-ups of callback addresses")


async def post(
    url: str, headers: Mapping[str, str], body: bytes, share: LoopShare, *, limit: int, anywhere: bool
) -> tuple[int, bytes, float]:
    """Return status and body of the answer, and how many seconds it asks to wait; no body of over `limit` bytes.

    `anywhere`: the address may lead into a private network. Raises `Undelivered`.
    """
    try:
        hops = await _addresses(httpx2.URL(url).host, anywhere=anywhere)
        async with _client(await context_for(url)) as client:
            response = await send_to(client, "POST", httpx2.URL(url), headers, body, hops)
            try:
                echo = await whole(response, limit, share) if limit else b""
            finally:
                await response.aclose()
    except httpx2.TimeoutException:
        raise Undelivered("timeout") from None
    except SpawnFailed:  # no certificates to trust
        raise Undelivered("tls_error") from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise Undelivered("tls_error" if _is_of_tls(error) else "connection_refused") from None
    return response.status_code, echo or b"", retry_after_s(response.headers.get("retry-after")) or 0.0


async def _addresses(host: str, *, anywhere: bool) -> Sequence[str]:
    """Return the addresses of a host, all of which may be asked. Raises `Undelivered`."""
    try:
        limiter = _look_ups.get()
    except LookupError:
        limiter = trio.CapacityLimiter(_MAX_LOOK_UPS)
        _look_ups.set(limiter)
    try:
        async with limiter:
            addresses = await look_up(host)
    except (OSError, UnicodeError):
        raise Undelivered("connection_refused") from None
    if not addresses or not (anywhere or all(where(each) == "public" for each in addresses)):
        raise Undelivered("connection_refused")
    return addresses


def _client(trusted: ssl.SSLContext) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        transport=direct_way(trusted, httpx2.Limits(max_connections=1, max_keepalive_connections=0)),
        trust_env=False,
        headers={"user-agent": "mcpvisor"},
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        timeout=httpx2.Timeout(CALLBACK_S, connect=CALLBACK_CONNECT_S),
        follow_redirects=False,
    )


def _is_of_tls(error: BaseException) -> bool:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
