"""Addresses as people and requests write them: `host[:port]`, web origins, URLs. Pure."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

import msgspec

PORTS: Final = {"http": 80, "ws": 80, "https": 443, "wss": 443}
_DOORS: Final = ("/mcp", "/ws", "/sse")
"""Where clients look for MCP at our address, with whatever follows."""
_MAX_SHOWN_CHARS = 80

_AUTHORITY = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::(?P<port>[0-9]{1,5}))?")
_ORIGIN = re.compile(r"(?P<scheme>https?|wss?)://(?P<authority>[^/?#@\\]+)", re.IGNORECASE)


def split_address(listen: str) -> tuple[str, int]:
    """Return host and port of `host:port` or `[ipv6]:port`. Raises `ValueError` with what is wrong."""
    host, colon, port = listen.rpartition(":")
    if not colon or not host:
        raise ValueError("an address is host:port")
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65535):
        raise ValueError("the port is a number from 0 to 65535")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError("an IPv6 address needs brackets: [::1]:3001")
    if not host or any(not ("!" <= character <= "~") for character in host):
        raise ValueError("the host is a name or an address")
    return host, int(port)


def leads_to(url: str, listen: str, *, doors_only: bool) -> bool:
    """Say whether a URL leads to whoever listens at `listen`, a `host:port` of this machine.

    `doors_only`: only if its path is one of MCP. Port 0 is a free one, so nothing leads there yet.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or PORTS.get(parts.scheme)
        host, own_port = split_address(listen)
    except ValueError:
        return False
    if parts.scheme not in PORTS or port != own_port or not own_port:
        return False
    name = (parts.hostname or "").rstrip(".")
    return (name == host.lower() or (_is_here(name) and _is_here(host))) and (
        not doors_only or parts.path.startswith(_DOORS)
    )


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_here(host: str) -> bool:
    """Say whether a host is the loopback interface, or all interfaces of this machine."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host.lower() == "localhost"
    return address.is_loopback or address.is_unspecified


def base_url(host: str, port: int) -> str:
    """Return how a browser on this machine reaches a daemon that listens there: by the loopback address if it can."""
    name = host.strip("[]").lower()
    if name in ("", "*", "0.0.0.0", "localhost"):
        name = "127.0.0.1"
    elif name == "::":
        name = "::1"
    return f"http://{f'[{name}]' if ':' in name else name}:{port}"


class Authority(msgspec.Struct, frozen=True):
    """A host in lower case without brackets, and its port if one was written."""

    name: str
    port: int | None

    def __str__(self) -> str:
        name = f"[{self.name}]" if ":" in self.name else self.name
        return (name if self.port is None else f"{name}:{self.port}")[:_MAX_SHOWN_CHARS]


@lru_cache(maxsize=256)
def authority(text: str) -> Authority | None:
    """Return the host and port of `name[:port]` or `[ipv6][:port]`, None if it is neither."""
    match = _AUTHORITY.fullmatch(text)
    if match is None:
        return None
    port = match["port"]
    if port is not None and int(port) > 65535:
        return None
    return Authority(match["name"].strip("[]").lower(), None if port is None else int(port))


def origin_of(text: str) -> tuple[str, Authority] | None:
    """Return the scheme in lower case and the authority of `scheme://name[:port]`, None if it is no origin."""
    match = _ORIGIN.fullmatch(text)
    host = None if match is None else authority(match["authority"])
    return None if match is None or host is None else (match["scheme"].lower(), host)
