"""Which addresses may be asked that a server, or an authorization server, names. Pure.

What the operator wrote is allowed; what others name must be out in the world, or where the operator's own server is:
else a server could have us ask what only we can reach (MCP, "Security Best Practices", server-side request forgery).
"""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, Literal
from urllib.parse import SplitResult, urlsplit

from supervisor.oauth.issuers.metadata import origin
from supervisor.oauth.issuers.trouble import OAuthTrouble

Where = Literal["public", "private", "loopback", "elsewhere"]
"""`elsewhere` is nothing for us: link-local, where clouds keep their secrets, multicast, whatever is reserved."""
MAX_ADDRESS_CHARS: Final = 2048
_EMBEDDING: Final = tuple(map(IPv6Network, ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")))
"""Prefixes whose last 32 bits are an IPv4 address: compatible and mapped (RFC 4291 2.5.5), translated (RFC 2765 2.1),
NAT64 (RFC 6052 2.1)."""
_PRIVATE: Final = tuple(map(ip_network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")))
"""RFC 1918, RFC 6598, RFC 4193."""
_UNICAST: Final = tuple(map(ip_network, ("0.0.0.0/1", "128.0.0.0/2", "192.0.0.0/3", "2000::/3")))
"""Where global unicast addresses are (RFC 5771, RFC 4291 2.4)."""
_SPECIAL: Final = tuple(map(ip_network, ("192.0.0.0/24", "192.88.99.0/24", "2001::/23", "3fff::/20")))
"""Within these, and not for hosts (RFC 6890 and the registries of special-purpose addresses)."""


def where(address: str) -> Where:
    """Return where an IP address leads. An IPv4 address inside of an IPv6 one counts as itself.

    Only what is known to be global unicast, private or loopback is that: whatever else there is, or will be, is
    `elsewhere`.
    """
    try:
        ip = _inner(ip_address(address.partition("%")[0]))
    except ValueError:
        return "elsewhere"
    if ip.is_loopback:
        return "loopback"
    if any(ip in network for network in _PRIVATE):
        return "private"
    if any(ip in network for network in _UNICAST) and ip.is_global and not any(ip in network for network in _SPECIAL):
        return "public"
    return "elsewhere"


def _inner(ip: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    if isinstance(ip, IPv4Address) or ip.is_loopback or ip.is_unspecified:
        return ip
    if any(ip in network for network in _EMBEDDING):
        return IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.sixtofour or ip


def split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        usable = usable and len(url) <= MAX_ADDRESS_CHARS and url.isascii() and url.isprintable() and " " not in url
    except ValueError:
        usable = False
    if not usable or parts.username is not None or parts.password is not None:
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
