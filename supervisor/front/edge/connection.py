"""One client connection: a loop that reads a request, has it handled, and reads the next one.

Theory: there is one task, and it does one thing at a time. While a request is handled nothing is read but its own
body, when its handler asks for it; what the client sends ahead waits in the kernel, which is bounded. So requests are
answered in their order, and there is nothing to pause, to queue or to hand over. That the client leaves meanwhile is
told by the kernel (`Departures`), and a connection that says nothing for too long is ended by one task for all
(`Timeouts`): a request costs no task and no timer.

    ┌─▶ head of a request ─▶ handler ─▶ answer ─▶ kept alive? ──no──▶ last bytes read by the client, or a second
    └──────────────────────────────────────────────── yes ┘

Rules of this file:
- What goes wrong on a connection ends that connection and is counted. It raises nothing but cancellation.
- Everything that waits for the peer has a deadline: the head of a request, each 64 KiB of an answer, the end of the
  input after our last byte. A body's is its reader's.
- What the kernel takes at once is waited for by nobody; whoever has much to do lets others run now and then.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import trio

from actors.kit import is_want, reason_of
from actors.kit.fairness.share import Who
from supervisor.front.edge.fields import Fields
from supervisor.front.edge.parser import HttpProtocolError, IncomingRequest, RequestParser
from supervisor.front.edge.request import ClientGone, HttpRequest
from supervisor.front.edge.wire import ConnectionContext, Timeouts, Turns

log = logging.getLogger(__name__)

_READ_BYTES: Final = 64 * 1024

_CHUNK_BYTES: Final = 64 * 1024
"""So much must leave within one send deadline: 6.4 KiB/s at the default of 10 s."""

_AT_ONCE_BYTES: Final = 256 * 1024
"""As much is handed to the kernel in one turn, which copies it."""

_LINGER_S: Final = 1.0
"""How long a client may go on sending after our last byte, so that it can read that: bytes nobody reads reset it."""

Handler = Callable[[HttpRequest], Awaitable[None]]
"""Answers a request. What it raises is a bug, but for want of resources, a client that left and a malformed body."""


def _address_of(socket: trio.socket.SocketType) -> str:
    """Return the address of a peer, empty where it is gone already."""
    with suppress(OSError, IndexError, TypeError):
        return str(socket.getpeername()[0])
    return ""


class ClientConnection:
    """A connection that can fail, stall or be aborted without anybody else noticing."""

    def __init__(
        self, stream: trio.SocketStream, context: ConnectionContext, handler: Handler, heads: Timeouts[ClientConnection]
    ) -> None:
        """`heads` are those that wait for the head of a request. Raises `OSError` for want."""
        self.socket = stream.socket
        self.address = _address_of(stream.socket)
        self.context = context
        self.who: Who = self.address, None
        self.leaving = context.departures.watch(stream.socket.fileno())
        self._handler = handler
        self._heads = heads
        self._parser = RequestParser()
        self._turns = Turns()
        self._sending = trio.Lock()
        self._over = False  # nothing can be sent any more

    async def run(self) -> None:
        """Serve the connection until it is closed. Raises nothing but cancellation."""
        try:
            while (incoming := await self._next()) is not None:
                if not await self._served(HttpRequest(self, incoming)):
                    break
            await self._linger()
        finally:
            self.abort()
            self._parser.close()

    def abort(self) -> None:
        """Close the socket at once. Whoever waits in it, shielded or not, is woken by that."""
        self._over = True
        self.leaving.set()
        if self.socket.fileno() >= 0:
            self.context.departures.forget(self.socket.fileno())
            self.socket.close()

    async def _next(self) -> IncomingRequest | None:
        """Return the next request; None if there is none, or nothing that is one."""
        try:
            incoming = self._parser.next()
            if incoming is not None:
                await self._yield()
                return incoming
            if self.context.closing.is_set():
                return None
            self._heads.add(self)
            try:
                while incoming is None:
                    data = await self.read()
                    if not data:
                        return None
                    self._parser.add(data)
                    incoming = self._parser.next()
            finally:
                self._heads.discard(self)
            return incoming
        except HttpProtocolError as error:
            await self._refuse(HttpRequest(self, _NO_REQUEST), error)
            return None

    async def _served(self, request: HttpRequest) -> bool:
        """Have a request answered; return whether there may be another one."""
        try:
            await self._handler(request)
        except HttpProtocolError as error:
            await self._refuse(request, error)
        except ClientGone:
            return False
        except Exception as error:  # the border: want, and bugs of whoever handles it
            if is_want(error):
                log.debug("a request was lost for want: %s", reason_of(error))
                await request.fail(503, "the daemon lacks resources; /api/status says what is degraded")
            else:
                log.exception("a bug behind a request")
                self.context.counters.errors += 1
                await request.fail(500, "internal error; the daemon's log says more")
        finally:
            request.release()
        if not request.is_answered:  # cut short: only the end of the connection tells so
            self.abort()
        return not (request.is_last or self._over)

    async def _refuse(self, request: HttpRequest, error: HttpProtocolError) -> None:
        self.context.counters.errors += 1
        log.debug("malformed input: %s", error)
        await request.fail(error.status, str(error))

    def take(self) -> bool:
        """Take the next part of the body under way from what was read; False if there is none.

        Raises `HttpProtocolError`.
        """
        return self._parser.go_on()

    async def more(self) -> None:
        """Wait for the next part of the body of the request under way. Raises `ClientGone` and `HttpProtocolError`."""
        while not self._parser.go_on():
            data = await self.read()
            if not data:
                raise ClientGone
            self._parser.add(data)
        await self._yield()

    @property
    def behind(self) -> bytes:
        """What the client has sent behind the request under way, as far as it was read."""
        return self._parser.remainder

    async def read(self) -> bytes:
        """Wait for bytes and return them, empty if there will be none. There is rarely something before one waits."""
        while self.socket.fileno() >= 0:
            try:
                await trio.lowlevel.wait_readable(self.socket)
                await self.context.turnstile.enter(self.who)
                return os.read(self.socket.fileno(), _READ_BYTES)
            except BlockingIOError:
                continue
            except (trio.ClosedResourceError, OSError):
                break
        return b""

    async def write(self, *parts: bytes) -> None:
        """Send all of it, or nothing more if the client is gone. What the kernel takes at once waits for nothing."""
        if self._sending.locked():
            await self._sending.acquire()
        else:
            self._sending.acquire_nowait()
        try:
            if self._over:
                await trio.lowlevel.checkpoint()  # else whoever goes on sending would never let others run
                return
            try:
                sent = os.writev(self.socket.fileno(), parts)
            except OSError as error:
                if error.errno not in {errno.EAGAIN, errno.EWOULDBLOCK}:
                    self._over = True
                    return
                sent = 0
            for part in parts:
                if sent < len(part):
                    await self._send_all(memoryview(part)[sent:])
                    sent = 0
                else:
                    sent -= len(part)
            await self._yield()
        finally:
            self._sending.release()

    async def _send_all(self, data: memoryview) -> None:
        while data and not self._over:
            rest = max(0, len(data) - _CHUNK_BYTES)
            # Shielded, as half a frame would garble what follows; the deadline is what bounds it.
            with trio.move_on_after(self.context.settings.send_timeout_s, shield=True) as scope:
                try:
                    while len(data) > rest:
                        data = data[await self._send_some(data) :]
                except (trio.BrokenResourceError, trio.ClosedResourceError, OSError):
                    self._over = True
            if scope.cancelled_caught:
                self.context.counters.stalled += 1
                self.abort()

    async def _send_some(self, data: memoryview) -> int:
        """Send what the kernel takes at once of some bytes, when it takes any; return how many. A checkpoint."""
        await trio.lowlevel.wait_writable(self.socket)
        with suppress(BlockingIOError):
            return os.write(self.socket.fileno(), data[:_AT_ONCE_BYTES])
        return 0

    async def _yield(self) -> None:
        if self._turns.used_up():
            await trio.lowlevel.checkpoint()

    async def _linger(self) -> None:
        """Send no more, and let the client read what was sent."""
        if self._over:
            return
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)
        with trio.move_on_after(_LINGER_S):
            while await self.read():
                pass


class EncryptedConnection(ClientConnection):
    """The same with TLS in between: bytes come and go through it, and nothing else is other."""

    def __init__(
        self,
        stream: trio.SSLStream[trio.SocketStream],
        context: ConnectionContext,
        handler: Handler,
        heads: Timeouts[ClientConnection],
    ) -> None:
        """Raises `OSError` for want."""
        super().__init__(stream.transport_stream, context, handler, heads)
        self._tls = stream

    async def run(self) -> None:
        """Agree on keys, within the time for a head, and serve the connection. Raises nothing but cancellation."""
        agreed = False
        try:
            with trio.move_on_after(self.context.settings.head_timeout_s), suppress(*_GONE):
                await self._tls.do_handshake()
                agreed = True
        finally:
            if not agreed:
                self.context.counters.errors += 1
                self.abort()
        if agreed:
            await super().run()

    async def read(self) -> bytes:
        if self.socket.fileno() >= 0:
            with suppress(*_GONE):
                data = bytes(await self._tls.receive_some(_READ_BYTES))
                await self.context.turnstile.enter(self.who)
                return data
        return b""

    async def write(self, *parts: bytes) -> None:
        async with self._sending:
            await self._send_all(memoryview(b"".join(parts)))
            await self._yield()

    async def _send_some(self, data: memoryview) -> int:
        await self._tls.send_all(data := data[:_CHUNK_BYTES])
        return len(data)

    async def _linger(self) -> None:
        """Say that no more comes, which is signed, too, and let the client read what was sent."""
        if not self._over:
            with trio.move_on_after(_LINGER_S), suppress(*_GONE):
                await self._tls.unwrap()


_GONE: Final = (trio.BrokenResourceError, trio.ClosedResourceError, OSError)
_NO_REQUEST: Final = IncomingRequest("", b"", "1.1", [], Fields({}), keep_alive=False, complete=True)
"""In the place of what could not be read."""
