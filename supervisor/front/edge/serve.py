"""The listening sockets and the server behind them: hypercorn's connections under our own accept loop.

Rules of this file:
- hypercorn's own `serve` is not used: it has no limit of connections, dies with a connection that breaks, and waits
  without end for a client that does not read. `connection` has the details; everything here is ours and bounded.
- The sockets exist before anything else starts, so that a port in use is an error of the start and not of a task.
- Shutting down takes at most `graceful_timeout_s`: then the sockets are closed under whoever still uses them.
- There is no lifespan: nothing we run lives in the application.
- `SSE` streams and WebSockets end by themselves when `closing` is set; `serve` only stops waiting for them.
"""

from __future__ import annotations

import errno
import logging
import socket
from collections.abc import Sequence
from contextlib import suppress

import msgspec
import trio
from hypercorn.config import Config
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.utils import wrap_app

from actors.errors import ConfigError
from actors.kit import Conditions
from supervisor.config.address import split_address
from supervisor.front.edge.accept import accept_for_ever
from supervisor.front.edge.asgi import Application
from supervisor.front.edge.budget import Budget
from supervisor.front.edge.connection import ClientConnection, ConnectionCounters
from supervisor.front.edge.websocket_frames import FrameSettings
from supervisor.host import descriptors

log = logging.getLogger(__name__)

MAX_HEAD_BYTES = 16 * 1024
"""Request line and header lines together; more is answered with 431 or 414 and closed."""

BACKLOG = 1024
MAX_REFUSING = 64
"""Connections over the limit that are told so at the same time; more are closed without a word."""

REFUSE_S = 1.0
PORT_TRIES = 5

_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\ncontent-length: 21\r\n"
    b"retry-after: 1\r\nconnection: close\r\n\r\ntoo many connections\n"
)


class ServeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of the server. The daemon fills it from the configuration."""

    max_connections: int = 1000
    """Open at the same time; the share of clients in the file descriptors bounds it, too."""
    head_timeout_s: float = 10.0
    """For the head of a request to be complete, and for a kept-alive connection to be used again."""
    send_timeout_s: float = 10.0
    """For the client to take the next 64 KiB of an answer."""
    graceful_timeout_s: float = 3.0
    """For open requests to end after `closing`."""
    frames: FrameSettings = FrameSettings()
    websocket_ping_s: float = 20.0


def open_sockets(listen: str, tcp_user_timeout_s: float) -> list[socket.socket]:
    """Return listening sockets for `host:port` or `[ipv6]:port`; for `localhost` one of each family there is.

    Port 0 takes a free port, the same one for both families. On Linux a client that acknowledges nothing for
    `tcp_user_timeout_s` is dropped by the kernel. Raises `ConfigError` that says what to do. May look up a name, so
    it is called before the loop runs anything else.
    """
    host, port = _split(listen)
    for attempt in range(PORT_TRIES):
        with suppress(_PortRace):
            return _open_all(listen, _addresses(listen, host), port, tcp_user_timeout_s)
        log.debug("port of attempt %d was taken in one family", attempt)
    raise _config_error(listen, "no port is free in both IPv4 and IPv6", 'name an address, for example "127.0.0.1:0"')


class _PortRace(Exception):
    """Port 0 gave a port in one family that is in use in the other."""


def _split(listen: str) -> tuple[str, int]:
    try:
        return split_address(listen)
    except ValueError as error:
        raise _config_error(listen, str(error), 'for example "127.0.0.1:3001"') from None


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
    listen: str, addresses: list[tuple[socket.AddressFamily, str]], port: int, tcp_user_timeout_s: float
) -> list[socket.socket]:
    opened: list[socket.socket] = []
    try:
        for family, address in addresses:
            chosen = opened[0].getsockname()[1] if opened else port
            opened.append(_open_one(family, address, chosen, tcp_user_timeout_s))
    except OSError as error:
        for listener in opened:
            listener.close()
        if opened and port == 0 and error.errno == errno.EADDRINUSE:
            raise _PortRace from None
        raise _explained(listen, error) from None
    return opened


def _open_one(family: socket.AddressFamily, address: str, port: int, tcp_user_timeout_s: float) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted sockets inherit both of these.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(tcp_user_timeout_s * 1000))
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((address, port))
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


def _explained(listen: str, error: OSError) -> ConfigError:
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


def hypercorn_config(settings: ServeSettings) -> Config:
    """Return all of hypercorn's settings that a connection looks at."""
    config = Config()
    config.h11_max_incomplete_size = MAX_HEAD_BYTES
    config.keep_alive_timeout = settings.head_timeout_s
    config.keep_alive_max_requests = 1 << 30  # a client that stays is no reason to close its connection
    config.read_timeout = None  # it would also end a client that listens to a stream and has nothing to say
    config.graceful_timeout = settings.graceful_timeout_s
    config.max_app_queue_size = 2  # a piece that is worked on and one to come; more only takes memory
    config.websocket_ping_interval = settings.websocket_ping_s
    config.alpn_protocols = ["http/1.1"]
    config.include_server_header = False
    config.accesslog = None
    config.errorlog = log  # through the daemon's queue, never to stderr: a full pipe there would stop the loop
    return config


class _Server:
    """The connections of one `serve`."""

    def __init__(self, app: Application, settings: ServeSettings, counters: ConnectionCounters, budget: Budget) -> None:
        self._settings = settings
        self._budget = budget
        self._counters = counters
        self._config = hypercorn_config(settings)
        self._app = wrap_app(app, self._config.wsgi_max_body_size, "asgi")
        self._context = WorkerContext(None)
        self._open: set[ClientConnection] = set()
        self._left = trio.lowlevel.ParkingLot()
        self._refusing = 0

    async def handle(self, stream: trio.SocketStream) -> None:
        most = min(self._settings.max_connections, descriptors.for_clients())
        if len(self._open) >= most or not descriptors.spare():
            await self._refuse(stream)
            return
        connection = ClientConnection(
            self._app,
            self._config,
            self._context,
            stream,
            counters=self._counters,
            send_timeout_s=self._settings.send_timeout_s,
            frames=self._settings.frames,
            budget=self._budget,
        )
        self._open.add(connection)
        self._counters.accepted += 1
        self._counters.open = len(self._open)
        try:
            await connection.run()
        finally:
            self._open.discard(connection)
            self._counters.open = len(self._open)
            self._left.unpark_all()

    async def _refuse(self, stream: trio.SocketStream) -> None:
        self._counters.refused += 1
        if self._refusing >= MAX_REFUSING or not descriptors.spare():
            return
        self._refusing += 1
        try:
            with trio.move_on_after(REFUSE_S), suppress(trio.BrokenResourceError):
                await stream.send_all(_BUSY)
                await stream.send_eof()
                # Closing with unread bytes would reset the connection and take the answer with it.
                while await stream.receive_some(4096):
                    pass
        finally:
            self._refusing -= 1

    async def finish(self) -> None:
        """Wait until the open requests have ended, at most for the grace. Idle connections close at once."""
        await self._context.terminated.set()
        with trio.move_on_after(self._settings.graceful_timeout_s):
            while self._open:
                await self._left.park()

    def abort(self) -> None:
        for connection in list(self._open):
            connection.abort()


async def serve(
    app: Application,
    sockets: Sequence[socket.socket],
    settings: ServeSettings,
    closing: trio.Event,
    *,
    counters: ConnectionCounters | None = None,
    budget: Budget | None = None,
    conditions: Conditions | None = None,
    task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve `app` on the sockets of `open_sockets` until `closing` is set; return when the connections are gone.

    Started with the list of base URLs (`http://127.0.0.1:3001`). The sockets are closed at once when `closing` is
    set; the rest takes at most `graceful_timeout_s`. Cancelling it closes everything at once.
    """
    server = _Server(app, settings, counters or ConnectionCounters(), budget or Budget())
    conditions = conditions or Conditions()
    urls = [_url(listener) for listener in sockets]
    listeners = [trio.SocketListener(trio.socket.from_stdlib_socket(listener)) for listener in sockets]
    async with trio.open_nursery() as connections:
        try:
            async with trio.open_nursery() as accepting:
                for listener in listeners:
                    accepting.start_soon(accept_for_ever, listener, server.handle, connections, conditions)
                task_status.started(urls)
                await closing.wait()
                accepting.cancel_scope.cancel()
            await server.finish()
        finally:
            # The sends of hypercorn are shielded: only closing their sockets ends them.
            connections.cancel_scope.cancel()
            server.abort()


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if listener.family == socket.AF_INET6 else f"http://{host}:{port}"
