"""Names that a front answers to: `host[:port]` and web origins, as requests and the configuration write them. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

MAX_SHOWN_CHARS = 80

_AUTHORITY = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::(?P<port>[0-9]{1,5}))?")
_ORIGIN = re.compile(r"(?P<scheme>https?|wss?)://(?P<authority>[^/?#@\\]+)", re.IGNORECASE)


class Authority(msgspec.Struct, frozen=True):
    """A host in lower case without brackets, and its port if one was written."""

    name: str
    port: int | None

    def __str__(self) -> str:
        name = f"[{self.name}]" if ":" in self.name else self.name
        return (name if self.port is None else f"{name}:{self.port}")[:MAX_SHOWN_CHARS]


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


def allowed_host(entry: str) -> Authority:
    """Return what an entry of `allowed_hosts` means: `name` (any port) or `name:port`. Raises `ValueError`."""
    host = authority(entry)
    if host is None:
        raise ValueError(f"not a host: {entry!r}")
    return host


def allowed_origin(entry: str) -> tuple[str, Authority]:
    """Return what an entry of `allowed_origins` means: `scheme://name[:port]`. Raises `ValueError`."""
    origin = origin_of(entry)
    if origin is None:
        raise ValueError(f"not an origin: {entry!r}")
    return origin
