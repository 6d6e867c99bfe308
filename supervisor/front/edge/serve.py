"""The server of all connections: how many there are, by which certificate they are encrypted, and how they end.

Rules of this file:
- A connection costs one task. Over the limit of connections, and where descriptors are short, a client is told so.
- Shutting down takes at most `grace_s`: then the sockets are closed under whoever still uses them.
- Streams and WebSockets end by themselves when `closing` is set; `serve` only stops waiting for them.
- The certificate is read at the start, and again when its files change. A file that cannot be used later changes
  nothing: connections go on with what was read before, and the log says why.
"""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import trio

from actors.errors import ConfigError
from supervisor.config import Settings
from supervisor.config.file import Stamp, stamp
from supervisor.front.edge.connection import ClientConnection, EncryptedConnection, Handler
from supervisor.front.edge.listening import BACKLOG, Serve, accept_for_ever, is_listening, url_of
from supervisor.front.edge.wire import ConnectionContext, Departures, EdgeState, Timeouts
from supervisor.host import descriptors

log = logging.getLogger(__name__)

_LOOK_EVERY_S: Final = 2.0
"""Whoever renews a certificate writes its files in place, on any volume: not all of these tell of a change."""


class Certificates:
    """`context` is that of connections from now on; `run` keeps it up with the files."""

    def __init__(self, certificate: str, key: str = "") -> None:
        """Read the files, which blocks. Raises `ConfigError`."""
        self._files = (Path(certificate), Path(key or certificate))
        self._stamps = self._look()
        self.context = self._read()

    async def run(self) -> None:
        while True:
            await trio.sleep(_LOOK_EVERY_S)
            stamps = await trio.to_thread.run_sync(self._look)
            if stamps != self._stamps:
                self._stamps = stamps
                await self._renew()

    async def _renew(self) -> None:
        try:
            self.context = await trio.to_thread.run_sync(self._read)
            log.info("the certificate has been read again")
        except ConfigError as error:
            log.error("the certificate has changed and cannot be used: %s; the one before it stays", error.message)

    def _look(self) -> tuple[Stamp, ...]:
        return tuple(map(stamp, self._files))

    def _read(self) -> ssl.SSLContext:
        certificate, key = self._files
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        try:
            # Without a word for the key it would be asked for on the terminal.
            context.load_cert_chain(certificate, key, password=partial(str, ""))
        except (OSError, ValueError) as error:  # ssl.SSLError is the former
            reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or "it cannot be read"
            hint = "give PEM files of a certificate and its key, without a password, that this user can read"
            raise ConfigError(f"the certificate cannot be used: {reason}", key="tls_certificate", hint=hint) from None
        return context


_MAX_REFUSING: Final = 64
"""Connections over the limit that are told so at the same time; more are closed without a word."""

_REFUSE_S: Final = 1.0

_BUSY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\ncontent-length: 21\r\n"
    b"retry-after: 1\r\nconnection: close\r\n\r\ntoo many connections\n"
)


class _Server:
    """The connections of one `serve`."""

    def __init__(self, context: ConnectionContext, handler: Handler, certificates: Certificates | None) -> None:
        self._context = context
        self._certificates = certificates
        self._handler = handler
        self.heads = Timeouts(context.settings.head_timeout_s, ClientConnection.abort)
        self._open: set[ClientConnection] = set()
        self._left = trio.lowlevel.ParkingLot()
        self._refusing = 0

    async def handle(self, stream: trio.SocketStream) -> None:
        most = min(self._context.settings.max_connections, descriptors.for_clients())
        if len(self._open) >= most or not descriptors.spare():
            await self._refuse(stream)
            return
        connection = self._connection(stream)
        counters = self._context.counters
        self._open.add(connection)
        counters.accepted += 1
        counters.open = len(self._open)
        try:
            await connection.run()
        finally:
            self._open.discard(connection)
            counters.open = len(self._open)
            self._left.unpark_all()

    def _connection(self, stream: trio.SocketStream) -> ClientConnection:
        if self._certificates is None:
            return ClientConnection(stream, self._context, self._handler, self.heads)
        tls = trio.SSLStream(stream, self._certificates.context, server_side=True, https_compatible=True)
        return EncryptedConnection(tls, self._context, self._handler, self.heads)

    async def _refuse(self, stream: trio.SocketStream) -> None:
        self._context.counters.refused += 1
        if self._refusing >= _MAX_REFUSING or not descriptors.spare():
            return
        self._refusing += 1
        try:
            with trio.move_on_after(_REFUSE_S), suppress(trio.BrokenResourceError):
                await stream.send_all(_BUSY)
                await stream.send_eof()
                # Closing with unread bytes would reset the connection and take the answer with it.
                while await stream.receive_some(4096):
                    pass
        finally:
            self._refusing -= 1

    async def finish(self, grace_s: float) -> None:
        """Wait until the open requests have ended, at most for so long. Idle connections close at once."""
        self.heads.expire_all()
        with trio.move_on_after(grace_s):
            while self._open:
                await self._left.park()

    def abort(self) -> None:
        for connection in list(self._open):
            connection.abort()


async def serve(
    handler: Handler,
    sockets: Sequence[socket.socket],
    settings: Settings,
    closing: trio.Event,
    *,
    grace_s: float,
    state: EdgeState | None = None,
    certificates: Certificates | None = None,
    task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Have `handler` answer what comes to the sockets of `open_sockets`, until `closing` is set and all have left.

    With `certificates` all connections are encrypted.

    Started with the list of base URLs (`http://127.0.0.1:3001`). The sockets are closed at once when `closing` is
    set; the rest takes at most `grace_s`. Cancelling it closes everything at once. Whoever connects waits until
    `state.opened`; those of a reserved port listen only then.
    """
    if state is None:
        state = EdgeState()
        state.opened.set()
    context = ConnectionContext(
        settings=settings,
        budget=state.budget,
        counters=state.counters,
        departures=Departures(),
        closing=closing,
    )
    server = _Server(context, handler, certificates)
    urls = [url_of(listener, "http" if certificates is None else "https") for listener in sockets]
    async with trio.open_nursery() as connections:
        connections.start_soon(context.departures.run)
        connections.start_soon(server.heads.run)
        connections.start_soon(context.turnstile.run)
        try:
            async with trio.open_nursery() as accepting:
                for listener in sockets:
                    accepting.start_soon(_accept, listener, server.handle, connections, state)
                task_status.started(urls)
                await closing.wait()
                accepting.cancel_scope.cancel()
            await server.finish(grace_s)
        finally:
            # What is being sent is shielded: only closing its socket ends that.
            connections.cancel_scope.cancel()
            server.abort()


async def _accept(listener: socket.socket, handle: Serve, connections: trio.Nursery, state: EdgeState) -> None:
    try:
        await state.opened.wait()
        if not is_listening(listener):
            listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    accepting = trio.SocketListener(trio.socket.from_stdlib_socket(listener))
    await accept_for_ever(accepting, handle, connections, state.conditions)
