"""Where a remote server is, and the bounds of what is said with it. Pure."""

from __future__ import annotations

from typing import Literal
from urllib.parse import urlsplit

import msgspec

from actors.transport.redaction import Confidential

HttpKind = Literal["http", "sse"]
"""Streamable HTTP, or HTTP+SSE (MCP 2024-11-05, "Transports")."""


class Remote(Confidential, msgspec.Struct, frozen=True, kw_only=True):
    """Where a server is; `headers` go with every request, and nowhere else."""

    url: str
    headers: dict[str, str] = {}


def server_of(url: str) -> str:
    """Return a server of an address, as the log may call it: the rest of the address may hold a secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


class HttpLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one connection. How long an answer may take is the business of the call, up to `call_max_s`.

    At its end what is under way has `stop_s`; when its session is over, `settle_s` after each answer to some of it.
    `max_event_bytes`: None is `max_line_bytes`, as a message is one, whatever carries it.
    """

    max_line_bytes: int = 16 * 1024 * 1024
    max_event_bytes: int | None = None
    connect_timeout_s: float = 5.0
    write_timeout_s: float = 10.0
    call_max_s: float = 600.0
    stop_s: float = 2.0
    settle_s: float = 20.0

    @property
    def event_bytes(self) -> int:
        return self.max_line_bytes if self.max_event_bytes is None else self.max_event_bytes
