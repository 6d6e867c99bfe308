"""One client connection: hypercorn's protocol code with the edges that would hurt a daemon taken off.

Rules of this file:
- What goes wrong on a connection ends that connection and is counted; hypercorn 0.18 lets everything but `OSError`
  leave its server's nursery, so that one malformed frame ends the process.
- Everything that waits for the peer has a deadline: the head of a request, each 64 KiB of an answer, the close of a
  WebSocket after a message that was too big. hypercorn sends in a shield without one.
- A request costs no task but the application's, no timer, and as few system calls and turns of the loop as it can:
  head and body leave in one packet, and what the kernel takes at once is waited for by nobody.
- HTTP/1.1 only and no WebSocket compression: what is not spoken cannot be abused.
- It is done by subclasses that `serve` uses itself, so nothing in hypercorn is patched and other users of it in the
  same process see no difference.
"""

from __future__ import annotations

import logging
import math
import os
from typing import Any

import msgspec
import trio
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol import events as stream_events
from hypercorn.protocol.h11 import STREAM_ID, H11Protocol
from hypercorn.trio.tcp_server import MAX_RECV, TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import AppWrapper, ConnectionState
from hypercorn.utils import parse_socket_addr

from supervisor.front.tasks import Tasks

log = logging.getLogger(__name__)

CHUNK_BYTES = 64 * 1024
"""So much must leave within one send deadline: 6.4 KiB/s at the default of 10 s."""

TOO_BIG_LINGER_S = 1.0
"""How long a client may go on sending after its message was too big, so that it can read the reason (code 1009)."""

CLOSE_S = 1.0

_CLOSE_TOO_BIG = b"\x88\x02\x03\xf1"


class Counters(msgspec.Struct, kw_only=True):
    """What happened on the connections of one `serve`; read by whoever reports it."""

    open: int = 0
    accepted: int = 0
    refused: int = 0
    """Over the limit of connections."""
    errors: int = 0
    """Connections that ended with an exception: malformed input, or a bug."""
    stalled: int = 0
    """Connections whose peer took nothing for the send deadline."""


class UnspokenProtocol(Exception):
    """The peer speaks HTTP/2 without having been asked."""


class RefusedHandshake(Exception):
    """hypercorn has refused a handshake by itself, which it tells neither the application nor the connection."""


class Http11(H11Protocol):
    """HTTP/1.1 and WebSocket without compression; HTTP/2 is answered with 505."""

    _discarding = False
    _refused = False

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._holding = False
        self._held = b""
        self._pass_on = self.send
        self.send = self._gather

    @property
    def answering(self) -> bool:
        """True from the first byte of an application's HTTP answer until the application has finished it."""
        state = repr(self.connection.our_state)
        return self.stream is not None and not self._refused and state in {"SEND_BODY", "DONE", "MUST_CLOSE"}

    async def handle(self, event: Event) -> None:
        """Process what arrived, unless a message was too big: then the rest is thrown away."""
        if not (self._discarding and isinstance(event, RawData)):
            await super().handle(event)
            if self.stream is not None and self.stream.closed:
                raise RefusedHandshake

    async def stream_send(self, event: stream_events.Event) -> None:
        """Send; after a WebSocket message that was too big, also close soon and process nothing more."""
        if isinstance(event, stream_events.Response):
            # The body follows at once where its length is known: both leave in one packet.
            self._holding = any(name == b"content-length" for name, _ in event.headers)
        await super().stream_send(event)
        if self._holding and isinstance(event, stream_events.Body | stream_events.EndBody):
            await self._let_go()
        # hypercorn answers with 1009 and goes on collecting the message in memory until the client closes.
        if isinstance(event, stream_events.Data) and event.data == _CLOSE_TOO_BIG:
            self._discarding = True
            self.task_group.spawn(self._close_soon)

    async def _gather(self, event: Event) -> None:
        if isinstance(event, RawData):
            if self._holding:
                self._held += event.data
                return
            if not event.data:  # what h11 makes of the end of a body whose length was announced
                return
        await self._pass_on(event)

    async def _let_go(self) -> None:
        data, self._held, self._holding = self._held, b"", False
        await self._pass_on(RawData(data=data))

    async def _close_soon(self) -> None:
        await trio.sleep(TOO_BIG_LINGER_S)
        await super().stream_send(stream_events.StreamClosed(stream_id=STREAM_ID))

    async def _check_protocol(self, event: Any) -> None:
        # hypercorn changes to HTTP/2 here. An `Upgrade: h2c` may be ignored (RFC 9110 7.8), a preface may not.
        if event.http_version not in {b"1.0", b"1.1"}:
            await self._send_error_response(505)
            raise UnspokenProtocol

    async def _send_error_response(self, status_code: int) -> None:
        self._refused = True
        await super()._send_error_response(status_code)

    async def _create_stream(self, request: Any) -> None:
        if any(name == b"sec-websocket-extensions" for name, _ in request.headers):
            kept = [(name, value) for name, value in request.headers if name != b"sec-websocket-extensions"]
            request = type(request)(
                method=request.method, target=request.target, http_version=request.http_version, headers=kept
            )
        await super()._create_stream(request)


class Connection(TCPServer):
    """A connection that can fail, stall or be aborted without anybody else noticing."""

    def __init__(
        self,
        app: AppWrapper,
        config: Config,
        context: WorkerContext,
        stream: trio.SocketStream,
        *,
        counters: Counters,
        send_timeout_s: float,
    ) -> None:
        super().__init__(app, config, context, ConnectionState({}), stream)  # type: ignore[arg-type]  # not only TLS
        self._counters = counters
        self._send_timeout_s = send_timeout_s
        self._idle_until = trio.current_time() + config.keep_alive_timeout
        self._idle = trio.CancelScope()

    async def run(self) -> None:
        """Serve the connection until it is closed. Raises nothing but cancellation."""
        try:
            await self._converse()
        except* OSError:
            log.debug("a client is gone")
        except* Exception:  # the border: malformed input and bugs of the protocol code both end here
            self._counters.errors += 1
            log.debug("a connection ended", exc_info=True)
        finally:
            self.abort()

    def abort(self) -> None:
        """Close the socket at once. Whoever waits in it, shielded or not, is woken by that."""
        self.stream.socket.close()

    async def _converse(self) -> None:
        socket = self.stream.socket
        try:
            client = parse_socket_addr(socket.family, socket.getpeername())
            server = parse_socket_addr(socket.family, socket.getsockname())
            tasks = Tasks()
            async with tasks:
                self._task_group = tasks
                self.protocol = Http11(  # type: ignore[assignment]  # the wrapper only chooses among protocols
                    self.app,
                    self.config,
                    self.context,
                    tasks,
                    ConnectionState({}),
                    False,
                    client,
                    server,
                    self.protocol_send,
                )
                tasks.spawn(self._idle_timeout)
                await self._read_data()
                tasks.peer_gone()
        finally:
            with trio.move_on_after(CLOSE_S, shield=True):
                await self._close()

    async def protocol_send(self, event: Event) -> None:
        """Send bytes with a deadline for each chunk, or do what hypercorn does with other events."""
        if isinstance(event, Closed) and isinstance(self.protocol, Http11) and self.protocol.answering:
            return  # input that breaks the protocol must not cut the answer short; its end closes the connection
        if isinstance(event, RawData):
            if not await self._send(event.data):
                await self.protocol.handle(Closed())
        elif isinstance(event, Updated):
            # hypercorn starts and cancels a task for this, twice for each request.
            self._idle_until = trio.current_time() + self.config.keep_alive_timeout if event.idle else math.inf
            self._idle.deadline = self._idle_until
        else:
            await super().protocol_send(event)

    async def _idle_timeout(self) -> None:
        """Close the connection once it has waited for a request too long, or waits when the server ends."""
        while trio.current_time() < self._idle_until and not self.context.terminated.is_set():
            with trio.CancelScope(deadline=self._idle_until) as self._idle:
                await self.context.terminated.wait()
        if self._idle_until < math.inf:  # else the end of the request under way closes it
            with trio.CancelScope(shield=True):
                await self._initiate_server_close()

    async def _read_data(self) -> None:
        """Process what arrives until nothing more can. The deadline for that is the idle timeout."""
        data = b"?"
        while data:
            data = await self._read()
            await self.protocol.handle(RawData(data))
        await self.protocol.handle(Closed())

    async def _read(self) -> bytes:
        """Wait for bytes and return them, empty if there will be none. There is rarely something before one waits."""
        socket = self.stream.socket
        while socket.fileno() >= 0:
            try:
                await trio.lowlevel.wait_readable(socket)
                return os.read(socket.fileno(), MAX_RECV)
            except BlockingIOError:
                continue
            except (trio.ClosedResourceError, OSError):
                break
        return b""

    async def _send(self, data: bytes) -> bool:
        """Send all; False if the peer is gone. What the kernel takes at once is sent without waiting for anything."""
        sent = 0
        if not self.send_lock.locked():
            try:
                sent = os.write(self.stream.socket.fileno(), data)
            except BlockingIOError:
                pass
            except OSError:
                return False
            if sent == len(data):
                return True
            self.send_lock.acquire_nowait()
        else:
            await self.send_lock.acquire()
        try:
            return await self._send_all(memoryview(data)[sent:])
        finally:
            self.send_lock.release()

    async def _send_all(self, data: memoryview) -> bool:
        for start in range(0, len(data), CHUNK_BYTES):
            # Shielded, as half a frame would garble what follows; the deadline is what bounds it.
            with trio.move_on_after(self._send_timeout_s, shield=True) as scope:
                try:
                    await self.stream.send_all(data[start : start + CHUNK_BYTES])
                except (trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError):
                    return False  # gone, or being closed at this moment
            if scope.cancelled_caught:
                self._counters.stalled += 1
                self.abort()
                return False
        return True
