"""What pages of other origins are allowed, where the configuration allows them (`allowed_origins`). Pure.

A browser asks before it sends (a preflight, without any credential), and shows a page nothing of an answer that
does not name its origin; WHATWG Fetch 3.2. The guard has already refused every origin that is not allowed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from supervisor.config.address import origin_of
from supervisor.front.edge.fields import Fields

ALLOWED: Final = (
    *("authorization", "content-type", "accept", "last-event-id", "if-none-match"),
    *("mcp-protocol-version", "mcp-session-id", "mcp-method", "mcp-name"),
)
PARAMETER: Final = "mcp-param-"
"""How headers begin that repeat an argument (MCP 2026-07-28, basic/transports/streamable-http)."""
EXPOSED: Final = b"WWW-Authenticate, Mcp-Session-Id, MCP-Protocol-Version, Retry-After, ETag"
MAX_ASKED: Final = 64
AGE_S: Final = 600
Lines = tuple[tuple[bytes, bytes], ...]


class CrossOrigin:
    """Which origins may read answers: those that the configuration names, and no others."""

    def __init__(self, allowed_origins: Iterable[str]) -> None:
        self._allowed = frozenset(filter(None, map(origin_of, allowed_origins)))

    def lines(self, fields: Fields) -> Lines:
        """Return what every answer to a request needs so that a page of another origin may read it; else nothing."""
        origin = fields.lines.get(b"origin")
        if origin is None or not self._allowed or origin_of(origin.decode("ascii", "replace")) not in self._allowed:
            return ()
        return (
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", EXPOSED),
            (b"vary", b"Origin"),
        )


def is_preflight(method: str, fields: Fields) -> bool:
    return method == "OPTIONS" and b"origin" in fields.lines and b"access-control-request-method" in fields.lines


def preflight_lines(fields: Fields) -> Lines:
    """Return what a page may send. `*` would not stand for `Authorization`, so the names are those that are asked
    for.
    """
    asked = fields.lines.get(b"access-control-request-headers", b"").decode("ascii", "replace").lower().split(",")
    names = [name.strip() for name in asked[:MAX_ASKED]]
    extra = [name for name in names if name.startswith(PARAMETER) and name.replace("-", "").replace("_", "").isalnum()]
    return (
        (b"access-control-allow-methods", b"GET, POST, DELETE"),
        (b"access-control-allow-headers", ", ".join((*ALLOWED, *extra)).encode()),
        (b"access-control-max-age", b"%d" % AGE_S),
    )
