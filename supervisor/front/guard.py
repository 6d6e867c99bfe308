"""Whom the front talks to: the check of `Host`, `Origin` and ambiguous framing, before any work, on every route.

Rules of this file:
- A browser that was tricked (DNS rebinding, a hostile page) tells the truth in `Host` and `Origin`. `Host` must be a
  name of ours (421 otherwise) and `Origin`, where there is one, a page of ours (403 otherwise). MCP 2026-07-28
  basic/transports/streamable-http "Security Warning"; RFC 9110 7.4 for 421.
- A name counts, not where a packet came from: `X-Forwarded-*` and friends are not looked at.
- What can be read in two ways is refused with 400: several `Host` lines, one that is not `name[:port]`, a request
  target that names an authority of its own.
- Pure: headers in, a `Refusal` or None out. A refusal repeats only what passed a strict pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

import msgspec

from actors import codes
from actors.protocol.wire import jsonrpc
from supervisor.config.address import Authority, authority, is_loopback, origin_of
from supervisor.front.edge.fields import Fields

T = TypeVar("T")

MAX_KNOWN = 64
"""So many `Host` lines of ours are remembered: a client sends the same one with each request."""

_WILDCARDS = frozenset({"", "0.0.0.0", "::", "*"})


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why a request is not served. `setting` is the configuration key that would change it, or empty."""

    status: int
    reason: str
    message: str
    setting: str = ""

    def body(self) -> bytes:
        """Return the JSON body: a JSON-RPC error without id, which an MCP client can show and a person can read."""
        data = {"type": self.reason}
        if self.setting:
            data["setting"] = self.setting
        return jsonrpc.failure(b"null", codes.INVALID_REQUEST, self.message, data)


class Guard:
    """The names one listening address answers to."""

    def __init__(
        self,
        listen_host: str,
        ports: Collection[int],
        allowed_hosts: Iterable[str] = (),
        allowed_origins: Iterable[str] = (),
    ) -> None:
        """`allowed_hosts` are `name` (any port) or `name:port`, `allowed_origins` `scheme://name[:port]`.

        On a loopback or wildcard address the loopback names are ours with any port, so that a forwarded port works;
        on any other address that address is. Entries of another form allow nothing.
        """
        self._ports = frozenset(ports)
        self._own = listen_host.strip("[]").lower()
        self._loopback = self._own in _WILDCARDS or is_loopback(self._own)
        self._hosts = frozenset(filter(None, map(authority, allowed_hosts)))
        self._origins = frozenset(filter(None, map(origin_of, allowed_origins)))
        self._known: dict[bytes, Authority] = {}  # `Host` lines that were found to be ours

    def check(self, fields: Fields, target: bytes = b"/") -> Refusal | None:
        """Return why a request with these headers and this request target is refused, or None."""
        line = None if b"host" in fields.doubled else fields.lines.get(b"host")
        known = None if line is None else self._known.get(line)
        host = known or _only(fields, b"host", authority)
        if host is None:
            return _bad("bad_host", "the Host header must be there once and be name or name:port")
        if not target.startswith(b"/"):
            return _bad("bad_target", "the request target must be a path")
        if known is None:
            if not self._is_ours(host):
                return Refusal(
                    status=421,
                    reason="host_refused",
                    message=f'this daemon does not answer to the host "{host}"; add it to "allowed_hosts" if it should',
                    setting="allowed_hosts",
                )
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            assert line is not None
            self._known[line] = host
        return self._check_origin(fields, host) if b"origin" in fields.lines else None

    def _check_origin(self, fields: Fields, host: Authority) -> Refusal | None:
        origin = _only(fields, b"origin", origin_of)
        if origin is not None and self._is_our_page(origin, host):
            return None
        shown = f'"{origin[0]}://{origin[1]}"' if origin is not None else "of this request"
        return Refusal(
            status=403,
            reason="origin_refused",
            message=f'pages of the origin {shown} may not call this daemon; add it to "allowed_origins" if they should',
            setting="allowed_origins",
        )

    def _is_ours(self, host: Authority) -> bool:
        if host in self._hosts or Authority(host.name, None) in self._hosts:
            return True
        if self._loopback:
            return is_loopback(host.name)
        return host.name == self._own and (host.port is None or host.port in self._ports)

    def _is_our_page(self, origin: tuple[str, Authority], host: Authority) -> bool:
        scheme, page = origin
        if origin in self._origins:
            return True
        if scheme not in {"http", "https"}:
            return False
        # Same origin: browsers leave a default port out of both headers, so the two compare as they are written.
        return page == host or (page.port in self._ports and self._is_ours(page))


def _bad(reason: str, message: str) -> Refusal:
    return Refusal(status=400, reason=reason, message=message)


def _only(fields: Fields, name: bytes, read: Callable[[str], T | None]) -> T | None:
    """Return what a field says that may be there only once; None if it is not there, doubled, or malformed."""
    value = fields.lines.get(name)
    return None if value is None or name in fields.doubled else read(value.decode("ascii", "replace"))
