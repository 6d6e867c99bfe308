"""Opens the HTTP client of one server: by the proxy of the environment that stands before it, or directly.

Which proxy that is:
- The variables are those that curl reads, and names in `NO_PROXY` mean what they mean to httpx2: a name excepts itself
  and what is below it, `.name` and `*.name` only what is below; networks may be given, ports, and `*` for everything.
- This machine is asked directly, whatever the variables say: no proxy can reach it for us.

How much of an answer over HTTP/1.1 is read at once, how large its head may be, and how many answers may precede it, is
bounded here. A head is parsed in one go, during which nobody else has a turn. The HTTP client is cancelled at the
socket, and one read may have brought tens of thousands of chunks: here it is between these, too. It has no setting for
any of this, only attributes of its class of connections.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from typing import Any, Final
from urllib.parse import urlsplit

import h11
import httpx2
import msgspec
import trio
from httpcore2 import AsyncHTTP11Connection, RemoteProtocolError

from actors.errors import SpawnFailed
from actors.transport.http.head import EVENTS, media_type

READ_BYTES: Final = 8 * 1024
STREAM_READ_BYTES: Final = 64 * 1024
"""Of an event stream, where that may be thousands of events."""
BODY_READ_BYTES: Final = 256 * 1024
"""A read costs about as much whatever it brings, and what follows a head is not parsed in one go."""
MAX_HEAD_BYTES: Final = 16 * 1024
"""What is not whole at that size is refused; so is a line of chunks, and what follows the last of them."""
MAX_INTERIM: Final = 32
"""So many answers of `1xx` may precede one that is an answer: we ask for none of them."""
TOO_MANY_INTERIM: Final = "too many interim responses"
CHUNKS_AT_ONCE: Final = 64
"""Of what was read, between two looks whether its reader is cancelled. The end of an answer that is left, for which its
connection serves again, is nearly always within so many."""
_receive_event = AsyncHTTP11Connection._receive_event


class EnvironmentProxy(msgspec.Struct, frozen=True, kw_only=True):
    """A proxy, and the name of the variable that names it."""

    variable: str
    url: str


def proxy_for(url: httpx2.URL, environment: Mapping[str, str]) -> EnvironmentProxy | None:
    """Return the proxy by which an address is reached; None for one that is asked directly."""
    _, excepted = _variable("no", environment)
    if is_loopback(url.host) or any(_fits(entry.strip().lower(), url) for entry in excepted.split(",")):
        return None
    for scheme in (url.scheme, "all"):
        variable, address = _variable(scheme, environment)
        if address:
            return EnvironmentProxy(variable=variable, url=address if "://" in address else f"http://{address}")
    return None


def _variable(scheme: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """Return the name of the variable that counts, and its value: one in small letters counts, even if it is empty."""
    small = f"{scheme}_proxy"
    name = small if small in environment else small.upper()
    return name, environment.get(name, "")


def is_loopback(host: str) -> bool:
    """Say whether a host is this machine by its name alone (RFC 6761 6.3)."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _fits(entry: str, url: httpx2.URL) -> bool:
    """Say whether an entry of `NO_PROXY` excepts an address; one that cannot be read excepts nothing."""
    if entry in ("", "*"):
        return entry == "*"
    try:
        return ip_address(url.host) in ip_network(entry.strip("[]").replace("]/", "/"), strict=False)
    except ValueError:
        return _names(entry, url)


def _names(entry: str, url: httpx2.URL) -> bool:
    scheme, exact, place = entry.rpartition("://")
    try:
        parts = urlsplit(f"//{place}")
        name, port = parts.hostname or "", parts.port
    except ValueError:
        return False
    if parts.path or scheme not in ("", "all", url.scheme) or port not in (None, url.port):
        return False
    below = name.startswith((".", "*."))
    name = name.removeprefix("*.").removeprefix(".")
    return (url.host == name and not below) or (bool(name) and not exact and url.host.endswith(f".{name}"))


def proxy_before(url: str) -> str:
    """Return the name of the variable of the environment whose proxy stands before an address; empty for none."""
    proxy = proxy_for(httpx2.URL(url), os.environ)
    return "" if proxy is None else proxy.variable


def direct_way(trusted: ssl.SSLContext, limits: httpx2.Limits) -> httpx2.AsyncHTTPTransport:
    """Return what sends requests to addresses themselves, whatever proxy the environment names."""
    _bound_reading()
    return httpx2.AsyncHTTPTransport(verify=trusted, limits=limits, trust_env=False)


def way_to(url: str, trusted: ssl.SSLContext, limits: httpx2.Limits) -> httpx2.AsyncHTTPTransport:
    """Return what sends requests to an address. Raises `SpawnFailed` where its proxy cannot be used."""
    proxy = proxy_for(httpx2.URL(url), os.environ)
    if proxy is None:
        return direct_way(trusted, limits)
    _bound_reading()
    try:
        return httpx2.AsyncHTTPTransport(verify=trusted, proxy=proxy.url, limits=limits)
    except (ImportError, ValueError, TypeError, httpx2.InvalidURL) as error:
        raise SpawnFailed(_unusable(proxy, error), permanent=True) from error


def _unusable(proxy: EnvironmentProxy, error: Exception) -> str:
    """Say why a proxy cannot be used; its address may hold a password."""
    socks = isinstance(error, ImportError)  # of the package that speaks it
    kind = "a SOCKS proxy, which is not supported" if socks else "no HTTP proxy that can be used"
    return (
        f"{proxy.variable} in the environment of the daemon names {kind}: "
        "give the address of an HTTP proxy (http://host:port), or except this server in NO_PROXY"
    )


async def _receive_in_bounds(self: AsyncHTTP11Connection, *args: Any, **named: Any) -> Any:
    in_body = self._h11_state.their_state is h11.SEND_BODY
    self.READ_NUM_BYTES = getattr(self, "_body_read_bytes", BODY_READ_BYTES) if in_body else READ_BYTES
    event = await _receive_event(self, *args, **named)
    if isinstance(event, h11.InformationalResponse):
        count = getattr(self, "_interim", 0) + 1
        if count > MAX_INTERIM:
            raise RemoteProtocolError(TOO_MANY_INTERIM)
        self._interim = count  # type: ignore[attr-defined]  # an attribute of ours
        await trio.lowlevel.checkpoint()  # one read may have brought them all, to many calls at once
    elif isinstance(event, h11.Data):
        self._chunks = count = getattr(self, "_chunks", 0) + 1  # type: ignore[attr-defined]  # the same
        if count % CHUNKS_AT_ONCE == 0:
            await trio.lowlevel.checkpoint_if_cancelled()
    elif isinstance(event, h11.Response):
        self._interim = self._chunks = 0  # type: ignore[attr-defined]  # the same
        kind = dict(event.headers).get(b"content-type", b"").decode("latin-1")
        read_bytes = STREAM_READ_BYTES if media_type(kind) == EVENTS else BODY_READ_BYTES
        self._body_read_bytes = read_bytes  # type: ignore[attr-defined]  # the same
    return event


def _bound_reading() -> None:
    """Set the bounds for every connection of this process, those through proxies included."""
    AsyncHTTP11Connection.READ_NUM_BYTES = READ_BYTES
    AsyncHTTP11Connection.MAX_INCOMPLETE_EVENT_SIZE = MAX_HEAD_BYTES
    AsyncHTTP11Connection._receive_event = _receive_in_bounds  # type: ignore[method-assign]  # it counts what comes
