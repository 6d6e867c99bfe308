"""The listening sockets, and the accept loop: connections in, one task each.

Rules of this file:
- The sockets exist before anything else starts, so that a port in use is an error of the start and not of a task.
- Several processes listen at one port only where one of them has reserved it for the others (`reserve_port`).
- A connection that waits in the kernel's queue while there is want of descriptors or memory is served afterwards.
- What goes wrong with one connection, its task included, costs that connection.
- A connection that died before it was accepted, or that a firewall forbids, is no error of the listening socket.
"""

from __future__ import annotations

import errno
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import trio

from actors.errors import ConfigError
from actors.kit import Conditions, Pauses, is_want, reason_of
from supervisor.config.address import split_address

log = logging.getLogger(__name__)

WHAT = "accepting connections"
"""How the condition is called."""

_OF_THE_PEER = frozenset({errno.ECONNABORTED, errno.EPERM, errno.EPROTO, errno.ENETDOWN, errno.EHOSTUNREACH})
"""What accept(2) says of a connection, not of the socket that listens."""

Serve = Callable[[trio.SocketStream], Awaitable[None]]


async def accept_for_ever(
    listener: trio.SocketListener, serve: Serve, connections: trio.Nursery, conditions: Conditions
) -> None:
    """Start `serve` in `connections` for each connection; closes the listener when it is cancelled."""
    pauses = Pauses()
    async with listener:
        while True:
            try:
                stream = await listener.accept()
                connections.start_soon(_handle, serve, stream)
            except (OSError, MemoryError) as error:
                if not is_want(error):
                    if isinstance(error, OSError) and error.errno in _OF_THE_PEER:
                        continue
                    raise
                conditions.begin(WHAT, reason_of(error))
                await trio.sleep(pauses.next())
            else:
                pauses.reset()
                conditions.end(WHAT)


async def _handle(serve: Serve, stream: trio.SocketStream) -> None:
    try:
        await serve(stream)
    except* Exception as group:  # the border: it would end every other connection
        if is_want(group):
            log.debug("a connection was lost for want: %s", reason_of(group))
        else:
            log.exception("a bug in a connection")
    finally:
        stream.socket.close()


BACKLOG: Final = 1024
_PORT_TRIES: Final = 5


def open_sockets(listen: str, tcp_user_timeout_s: float, *, reserved: bool = False) -> list[socket.socket]:
    """Return listening sockets for `host:port` or `[ipv6]:port`; for `localhost` one of each family there is.

    Port 0 takes a free port, the same one for both families. On Linux a client that acknowledges nothing for
    `tcp_user_timeout_s` is dropped by the kernel. `reserved`: another process holds the port for this one and others,
    who get all clients as long as these sockets do not listen, which they do not yet. Raises `ConfigError` that says
    what to do. May look up a name, so it is called before the loop runs anything else.
    """
    host, port = split_address(listen)
    for attempt in range(_PORT_TRIES):
        with suppress(_PortRace):
            return _open_all(listen, _addresses(listen, host), port, tcp_user_timeout_s, reserved=reserved)
        log.debug("port of attempt %d was taken in one family", attempt)
    raise _config_error(listen, "no port is free in both IPv4 and IPv6", 'name an address, for example "127.0.0.1:0"')


def reserve_port(listen: str, tcp_user_timeout_s: float) -> list[socket.socket]:
    """Return sockets that hold a port for other processes of this user and do not listen; see `open_sockets`.

    Nobody listens there but with `reserved`: a socket that shares no port is opened first, which is what tells that
    nobody has it, another one of this kind neither, and opens it to those that do.
    """
    held = []
    for gate in open_sockets(listen, tcp_user_timeout_s):
        with gate:
            gate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            holder = socket.socket(gate.family, socket.SOCK_STREAM)
            _prepare(holder, reserved=True)
            holder.bind(gate.getsockname())
            # Else one that does not listen would keep nobody out.
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
            held.append(holder)
    return held


class _PortRace(Exception):
    """Port 0 gave a port in one family that is in use in the other."""


def _addresses(listen: str, host: str) -> list[tuple[socket.AddressFamily, str]]:
    if host == "localhost":  # by RFC 6761, and without asking a resolver that may be wrong about it
        families = [(socket.AF_INET, "127.0.0.1")]
        return [*families, (socket.AF_INET6, "::1")] if _has_ipv6_loopback() else families
    try:
        resolved = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError):
        raise _config_error(listen, f'"{host}" is no address of this machine', 'use for example "127.0.0.1"') from None
    return list(dict.fromkeys((family, str(address[0])) for family, _, _, _, address in resolved))


def _has_ipv6_loopback() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def _open_all(
    listen: str,
    addresses: list[tuple[socket.AddressFamily, str]],
    port: int,
    tcp_user_timeout_s: float,
    *,
    reserved: bool,
) -> list[socket.socket]:
    opened: list[socket.socket] = []
    try:
        for family, address in addresses:
            chosen = opened[0].getsockname()[1] if opened else port
            opened.append(_open_one(family, (address, chosen), tcp_user_timeout_s, reserved=reserved))
    except OSError as error:
        for listener in opened:
            listener.close()
        if opened and port == 0 and error.errno == errno.EADDRINUSE:
            raise _PortRace from None
        raise _explain(listen, error) from None
    return opened


def _open_one(
    family: socket.AddressFamily, address: tuple[str, int], tcp_user_timeout_s: float, *, reserved: bool
) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        _prepare(listener, reserved=reserved)
        # Accepted sockets inherit both of these.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(tcp_user_timeout_s * 1000))
        listener.bind(address)
        if not reserved:
            listener.listen(BACKLOG)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


def _prepare(listener: socket.socket, *, reserved: bool) -> None:
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if reserved:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if listener.family == socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)


def _explain(listen: str, error: OSError) -> ConfigError:
    if error.errno == errno.EADDRINUSE:
        return _config_error(
            listen, "the port is in use", "stop the program that uses it, or choose another port; 0 takes a free one"
        )
    if error.errno in {errno.EACCES, errno.EPERM}:
        return _config_error(listen, "the port needs privileges", "choose a port from 1024 on")
    if error.errno == errno.EADDRNOTAVAIL:
        return _config_error(listen, "this machine does not have the address", 'use for example "127.0.0.1"')
    return _config_error(listen, f"cannot listen there: {error.strerror}", 'try for example "127.0.0.1:3001"')


def _config_error(listen: str, message: str, hint: str) -> ConfigError:
    return ConfigError(f'cannot listen on "{listen}": {message}', key="listen", hint=hint)


def is_listening(listener: socket.socket) -> bool:
    """Say whether clients can connect: not yet to sockets of `open_sockets` with `reserved`."""
    return bool(listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def url_of(listener: socket.socket, scheme: str = "http") -> str:
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if listener.family == socket.AF_INET6 else f"{scheme}://{host}:{port}"
