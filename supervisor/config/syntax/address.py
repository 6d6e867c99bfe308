"""Addresses as people write them. PURE."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from supervisor.config.syntax.jsonc import KeyPath

PORTS: Final = {"http": 80, "ws": 80, "https": 443, "wss": 443}
DOORS: Final = ("/mcp", "/ws", "/sse")
"""Where clients look for MCP at our address, with whatever follows."""


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
        not doors_only or parts.path.startswith(DOORS)
    )


def ways_to(own: Mapping[str, Any], listen: str) -> Iterator[KeyPath]:
    """Yield which keys of an entry, expanded, lead to `listen`: its address, or that which a bridge is started with."""
    if own.get("url") and leads_to(own["url"], listen, doors_only=False):
        yield ("url",)
    for at, text in enumerate(own.get("args", ())):
        if leads_to(text, listen, doors_only=True):
            yield ("args", at)


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
