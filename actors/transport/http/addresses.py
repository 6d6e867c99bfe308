"""Where an IP address leads: out into the world, into a private network, to this machine, or nowhere for us. Pure.

Whoever may name an address that we ask could have us ask what only we can reach (server-side request forgery). What is
known is known from IANA's registries of special-purpose addresses, IPv4 and IPv6.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, Literal
from urllib.parse import SplitResult, urlsplit

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


def plain(url: str) -> SplitResult | None:
    """Return the parts of an address of HTTP that somebody else wrote; None for one that hides or lacks something."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        usable = usable and len(url) <= MAX_ADDRESS_CHARS and url.isascii() and url.isprintable() and " " not in url
    except ValueError:
        return None
    return parts if usable and parts.username is None and parts.password is None else None
