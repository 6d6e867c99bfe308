"""Whom the front talks to: `Host`, `Origin`, ambiguous framing, pages of other origins, proxies. Pure.

Rules of this file:
- The check is before any work, on every route. A browser that was tricked (DNS rebinding, a hostile page) tells the
  truth in `Host` and `Origin`. `Host` must be a name of ours (421 otherwise) and `Origin`, where there is one, a page
  of ours (403 otherwise). MCP 2026-07-28 basic/transports/streamable-http "Security Warning"; RFC 9110 7.4 for 421.
- A name counts, not where a packet came from: `X-Forwarded-*` and friends are not looked at by the `Guard`.
- What can be read in two ways is refused with 400: several `Host` lines, one that is not `name[:port]`, a request
  target that names an authority of its own.
- Headers in, a `Refusal` or None out. A refusal repeats only what passed a strict pattern.
- A browser asks before it sends (a preflight, without any credential), and shows a page of another origin
  (`allowed_origins`) nothing of an answer that does not name it; WHATWG Fetch 3.2. The guard has already refused every
  origin that is not allowed.
- Each of the proxies that the configuration names (`trusted_proxies`) adds at the end of `X-Forwarded-For`, or of
  `Forwarded` (RFC 7239 5.2), whom it was reached from. Read from there, the first that is no proxy of ours is who sent
  the request; what stands before it, anybody may have written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final, TypeVar

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


ALLOWED: Final = (
    *("authorization", "content-type", "accept", "last-event-id", "if-none-match"),
    *("mcp-protocol-version", "mcp-session-id", "mcp-method", "mcp-name"),
)
_PARAMETER: Final = "mcp-param-"
"""How headers begin that repeat an argument (MCP 2026-07-28, basic/transports/streamable-http)."""
EXPOSED: Final = b"WWW-Authenticate, Mcp-Session-Id, MCP-Protocol-Version, Retry-After, ETag"
_MAX_ASKED: Final = 64
_AGE_S: Final = 600
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
    names = [name.strip() for name in asked[:_MAX_ASKED]]
    extra = [name for name in names if name.startswith(_PARAMETER) and name.replace("-", "").replace("_", "").isalnum()]
    return (
        (b"access-control-allow-methods", b"GET, POST, DELETE"),
        (b"access-control-allow-headers", ", ".join((*ALLOWED, *extra)).encode()),
        (b"access-control-max-age", b"%d" % _AGE_S),
    )


FORWARDED: Final = frozenset({b"forwarded", b"x-forwarded-for", b"x-real-ip", b"via"})
"""What proxies write into what they send on (RFC 7239, RFC 9110 7.6.3, and the older ones)."""
_MAX_HOPS: Final = 32
_MAPPED: Final = "::ffff:"
_LIST: Final = b"x-forwarded-for"
_FORWARDED: Final = b"forwarded"
_FOR: Final = re.compile(
    r"""(?:^|;)\s*for\s*=\s*("?)(\[[0-9A-Fa-f:.]+\]|[0-9.]+)(?::[0-9]+)?\1\s*(?=;|$)""", re.IGNORECASE
)


class TrustedProxies:
    """The proxies of one daemon: addresses and networks."""

    def __init__(self, networks: Iterable[str]) -> None:
        self._networks = tuple(map(ip_network, networks))

    def trusts(self, address: str) -> bool:
        """Say whether somebody at an address is believed."""
        try:
            ip = ip_address(address.partition("%")[0])
        except ValueError:
            return False
        if isinstance(ip, IPv6Address) and ip.ipv4_mapped is not None:
            ip = ip.ipv4_mapped
        return any(ip in network for network in self._networks)

    def may_connect(self, address: str) -> bool:
        """Say whether somebody may connect where only proxies do: they encrypt, and this machine need not."""
        return self.trusts(address) or is_loopback(address.removeprefix(_MAPPED))

    def sender(self, peer: str, fields: Fields) -> str | None:
        """Return where a request comes from that a peer sent on; None: from that peer itself."""
        if not self.trusts(peer):
            return None
        address = None
        for address in _hops(fields):
            if not self.trusts(address):
                break
        return address


def is_from_here(address: str, own: str, names: Iterable[bytes]) -> bool:
    """Say whether a request comes from a program of this machine itself, as far as proxies say that they are one.

    A machine that reaches itself by an address of its `own`, which a request came to, sends from that as well. `names`
    are those of the lines of its head.
    """
    return (is_loopback(address.removeprefix(_MAPPED)) or address == own) and FORWARDED.isdisjoint(names)


def _hops(fields: Fields) -> Iterator[str]:
    """Yield the addresses that proxies added, the last one first, up to one that is none."""
    line = fields.lines.get(_LIST)
    name = _LIST if line is not None else _FORWARDED
    line = fields.lines.get(name) if line is None else line
    if line is None or name in fields.doubled:
        return
    for part in reversed(line.decode("ascii", "replace").split(",")[-_MAX_HOPS:]):
        written = _FOR.search(part.strip()) if name == _FORWARDED else None
        text = part.strip() if name == _LIST else "" if written is None else written[2]
        try:
            yield str(ip_address(text.strip("[]")))
        except ValueError:
            return
