"""Which door of which daemon, from an address as people have it. Pure."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

import msgspec

DEFAULT_URL: Final = "http://127.0.0.1:3001"
_SCHEMES: Final = {"http": 80, "ws": 80, "https": 443, "wss": 443}
_PAGES: Final = ("", "/api", "/api/status")
"""Paths that people have at hand, at which there is no MCP."""

_MAIN: Final = ("/mcp", "/ws")


class DoorAddress(msgspec.Struct, frozen=True):
    """Where a door is; `target` is its path with what follows a question mark."""

    secure: bool
    host: str
    port: int
    target: str

    @property
    def authority(self) -> str:
        """Return `host:port`, an IPv6 address in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_here(self) -> bool:
        """Whether it is the loopback interface of this machine."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def has_metatools(self) -> bool:
        """Whether it is the door of the daemon's own tools, and no tool there is one of a server."""
        return self.target.partition("?")[0] in _MAIN

    def __str__(self) -> str:
        path, _, query = self.target.partition("?")
        return f"{'https' if self.secure else 'http'}://{self.authority}{path}{'?...' if query else ''}"


def read_address(text: str) -> DoorAddress:
    """Return the door at an address such as `host:port`, `ws://host/ws` or `http://host:port/mcp/servers/NAME`.

    Without a path it is `/mcp`; without a scheme it has a port, as a word alone is mostly meant as something else.
    Raises `ValueError` that says what is wrong; the address is not in it: it may hold a secret.
    """
    text = text.strip()
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        port = parts.port
    except ValueError:
        raise ValueError("the host is a name or an address, and the port a number up to 65535") from None
    scheme = parts.scheme.lower()
    if scheme not in _SCHEMES:
        raise ValueError(f"an address begins with {', '.join(f'{each}://' for each in _SCHEMES)}")
    if parts.username is not None or parts.password is not None:
        raise ValueError("an address has no user name: the daemon knows none")
    if not parts.hostname:
        raise ValueError("an address has a host: http://127.0.0.1:3001/mcp")
    if port is None and "://" not in text:
        raise ValueError("an address is HOST:PORT, or begins with http://")
    path = parts.path.rstrip("/")
    path = "/mcp" if path in _PAGES else path
    port = _SCHEMES[scheme] if port is None else port
    target = f"{path}?{parts.query}" if parts.query else path
    if not f"{parts.hostname}{target}".isascii() or not f"{parts.hostname}{target}".isprintable() or " " in target:
        raise ValueError("an address has no blanks and no other characters than those of ASCII")
    return DoorAddress(scheme in ("https", "wss"), parts.hostname, port, target)
