"""Which addresses may be asked that a server, or an authorization server, names. Pure.

What the operator wrote is allowed; what others name must be out in the world, or where the operator's own server is:
else a server could have us ask what only we can reach (MCP, "Security Best Practices", server-side request forgery).
"""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final, Literal
from urllib.parse import SplitResult, urlsplit

from supervisor.oauth.metadata import origin
from supervisor.oauth.trouble import UnsafeAddress

Where = Literal["public", "private", "loopback", "elsewhere"]
"""`elsewhere` is nothing for us: link-local, where clouds keep their secrets, multicast, unspecified."""
MAX_ADDRESS_CHARS: Final = 2048
_NAT64: Final = ip_network("64:ff9b::/96")
_SHARED: Final = ip_network("100.64.0.0/10")


def where(address: str) -> Where:
    """Return where an IP address leads. An IPv4 address inside of an IPv6 one counts as itself."""
    try:
        ip = _inner(ip_address(address.partition("%")[0]))
    except ValueError:
        return "elsewhere"
    if ip.is_loopback:
        return "loopback"
    if ip.is_link_local or ip.is_multicast or ip.is_unspecified:
        return "elsewhere"
    if ip.is_global:
        return "public"
    shared = isinstance(ip, IPv4Address) and ip in _SHARED
    return "private" if shared or (ip.is_private and not ip.is_reserved) else "elsewhere"


def _inner(ip: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    if isinstance(ip, IPv6Address):
        if ip in _NAT64:
            return IPv4Address(int(ip) & 0xFFFFFFFF)
        return ip.ipv4_mapped or ip.sixtofour or ip
    return ip


def split(url: str) -> SplitResult:
    """Return the parts of an address that somebody named. Raises `UnsafeAddress` for what cannot be asked."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        usable = usable and len(url) <= MAX_ADDRESS_CHARS and url.isascii() and url.isprintable() and " " not in url
    except ValueError:
        usable = False
    if not usable or parts.username is not None or parts.password is not None:
        raise UnsafeAddress("it names something that is no plain https address")
    return parts


def check_scheme(url: str, operators: str) -> SplitResult:
    """Return the parts of an address that may be asked as far as its letters go. Raises `UnsafeAddress`.

    `operators` is the address of the server as its operator wrote it.
    """
    parts = split(url)
    local = is_local_name(parts.hostname) and is_local_name(urlsplit(operators).hostname)
    if parts.scheme != "https" and not local and origin(url) != origin(operators):
        raise UnsafeAddress("it names an address without TLS (http), which is not asked")
    return parts


def is_local_name(host: str | None) -> bool:
    """Say whether a host is this machine by its name alone."""
    return host is not None and (host == "localhost" or host.endswith(".localhost") or where(host) == "loopback")


def check_addresses(host: str, addresses: Collection[str], operators_host: str, operators: Collection[str]) -> None:
    """Raise `UnsafeAddress` unless every IP address of a host may be asked; `operators` are those of the server."""
    if host == operators_host:
        return
    allowed = {"public"} | ({where(address) for address in operators} & {"private", "loopback"})
    if not addresses or not {where(address) for address in addresses} <= allowed:
        raise UnsafeAddress("it names an address in a private network, on this machine or in a cloud: it is not asked")
