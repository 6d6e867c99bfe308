"""The daemon as a protected resource: how it is called, who issues tokens for it, and its challenges (RFC 9728, 6750).

- A resource is called by the address that clients use, never by what a request says of that. On this machine alone,
  where none is configured, it is the loopback name that the client came by, as far as that is ours.
- Every door is a resource, and the daemon is: that of `/mcp`. A token for one server is of no use elsewhere.
- The documents of all addresses below `/mcp` are made alike: they do not tell which servers there are.
- Challenges are one line, with `Bearer` first, no blanks around `=`, and `scope=` nowhere else: clients search them
  with patterns. That of an insufficient scope is always the same: clients end a loop by that.
- A personal address is none: no provider issues tokens for it.
- Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Final
from urllib.parse import quote, unquote, urlsplit

import msgspec

from supervisor.config.address import authority, base_url, is_loopback
from supervisor.front.edge.fields import Fields
from supervisor.identity.requester import EXECUTE, READ, SCOPES, TokenGrant
from supervisor.service.doors.addresses import CARD, MCP_PATH, door_of, has_card, personal_server

WELL_KNOWN: Final = "/.well-known/"
METADATA: Final = f"{WELL_KNOWN}oauth-protected-resource"
NOT_HERE: Final = msgspec.json.encode(
    {"error": "not_found", "error_description": "there is no authorization server at this address"}
)
"""Clients that look for an authorization server here read `error` as a text (RFC 6749 5.2)."""
OWN_CHALLENGE: Final = 'Bearer realm="mcpvisor"'
INVALID: Final = ', error="invalid_token", error_description="not valid here, expired or revoked"'
INSUFFICIENT: Final = ', error="insufficient_scope", error_description="the token was not issued for that"'
PUBLIC_CORS: Final = ((b"access-control-allow-origin", b"*"),)
MAX_PATH_CHARS: Final = 512
_KEPT: Final = "/~:@!$&'()*+,;="
"""What a path may have as it is (RFC 3986 3.3)."""


class ProtectedResource:
    """What one daemon is called, and who issues tokens for it."""

    def __init__(self, public_url: str, listen_host: str, ports: Collection[int], scheme: str = "http") -> None:
        self._public = public_url.rstrip("/")
        self._scheme = scheme
        self._ports = frozenset(ports)
        self._own = scheme + base_url(listen_host, min(ports, default=0)).removeprefix("http")

    def base(self, fields: Fields) -> str:
        """Return the address of the daemon for whoever sent these headers, which the guard has checked."""
        if self._public:
            return self._public
        host = authority(fields.lines.get(b"host", b"").decode("ascii", "replace"))
        ours = host is not None and is_loopback(host.name) and host.port in self._ports
        return f"{self._scheme}://{host}" if ours else self._own

    def name(self, fields: Fields, path: str) -> str:
        """Return how the resource at a path is called; what is no door belongs to that of `/mcp`."""
        return self.base(fields) + _door_path(path)

    def metadata(self, fields: Fields, path: str, issuers: Iterable[str]) -> bytes | None:
        """Return the document at a path (RFC 9728 3.1, 3.2); None if there is none."""
        below = path.removeprefix(METADATA)
        if below == path or personal_server(below) or (below and _door_path(below) != quote(below, safe=_KEPT)):
            return None
        document = {
            "resource": self.name(fields, below),
            "authorization_servers": list(issuers),
            "scopes_supported": SCOPES,
            "bearer_methods_supported": ("header",),
            "resource_name": "mcpvisor",
        }
        return msgspec.json.encode(document)

    def challenge(self, fields: Fields, path: str) -> str:
        """Return what a client that shows no valid token is told: where it finds out who issues one, and for what."""
        where = f"{self.base(fields)}{METADATA}{_door_path(path)}"
        return f'Bearer resource_metadata="{where}", scope="{" ".join(SCOPES)}"'

    def admits(self, grant: TokenGrant, fields: Fields, path: str, audience: Collection[str]) -> bool:
        """Say whether a token is for what is at a path (RFC 8707 2): the door, the daemon, or what is configured."""
        base = self.base(fields)
        ours = {_normal(f"{base}{_door_path(path)}"), _normal(f"{base}{MCP_PATH}")}
        return any(each in audience or _normal(each) in ours for each in grant.audiences)


def _door_path(path: str) -> str:
    """Return the path of a door, as an address has it, also for its card; that of `/mcp` for what is none."""
    path = path.removesuffix(CARD) if has_card(path) else path
    fits = door_of(path) is not None and len(path) <= MAX_PATH_CHARS
    return quote(path, safe=_KEPT) if fits else MCP_PATH


@lru_cache(maxsize=1024)
def _normal(address: str) -> str:
    """Return an address in one form: what its letters may be otherwise, without another meaning (RFC 3986 6.2)."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return address
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    host = f"{(parts.hostname or '').lower()}{'' if port in (None, usual) else f':{port}'}"
    path = quote(unquote(parts.path), safe=_KEPT).rstrip("/")
    more = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{host}{path}{more}"


def needed_scope(path: str, method: str) -> str:
    """Return what a request needs before its body is read: pages that change something are as calls."""
    is_page = door_of(path) is None and path != "/ws"
    return EXECUTE if is_page and method not in ("GET", "HEAD") else READ
