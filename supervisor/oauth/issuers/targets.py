"""Which addresses may be asked that a server, or an authorization server, names. Pure.

What the operator wrote is allowed; what others name must be out in the world, or where the operator's own server is:
else a server could have us ask what only we can reach (MCP, "Security Best Practices", server-side request forgery).
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import SplitResult, urlsplit

from actors.transport.http.addresses import plain, where
from supervisor.oauth.issuers.metadata import origin
from supervisor.oauth.issuers.trouble import OAuthTrouble


def split(url: str) -> SplitResult:
    if (parts := plain(url)) is None:
        raise OAuthTrouble("it names something that is no plain https address")
    return parts


def check_scheme(url: str, operators: str) -> SplitResult:
    """Return the parts of an address that may be asked as far as its letters go. Raises `OAuthTrouble`.

    `operators` is the address of the server as its operator wrote it.
    """
    parts = split(url)
    local = is_local_name(parts.hostname) and is_local_name(urlsplit(operators).hostname)
    if parts.scheme != "https" and not local and origin(url) != origin(operators):
        raise OAuthTrouble("it names an address without TLS (http), which is not asked")
    return parts


def is_local_name(host: str | None) -> bool:
    return host is not None and (host == "localhost" or host.endswith(".localhost") or where(host) == "loopback")


def check_addresses(host: str, addresses: Collection[str], operators_host: str, operators: Collection[str]) -> None:
    """Raise `OAuthTrouble` unless every IP address of a host may be asked; `operators` are those of the server."""
    if host == operators_host:
        return
    allowed = {"public"} | ({where(address) for address in operators} & {"private", "loopback"})
    if not addresses or not {where(address) for address in addresses} <= allowed:
        raise OAuthTrouble("it names an address in a private network, on this machine or in a cloud: it is not asked")
