"""One client connection: hypercorn's protocol code with the edges that would hurt a daemon taken off.

Rules of this file:
- What goes wrong on a connection ends that connection and is counted; hypercorn 0.18 lets everything but `OSError`
  leave its server's nursery, so that one malformed frame ends the process.
- Everything that waits for the peer has a deadline: the head of a request, each 64 KiB of an answer, the close of a
  WebSocket after a message that was too big. hypercorn sends in a shield without one.
- What waits for the application ends with the application: hypercorn's queue to it has no reader once it has answered,
  and whoever still puts would wait for ever.
- HTTP/1.1 only and no WebSocket compression: what is not spoken cannot be abused.
- It is done by subclasses that `serve` uses itself, so nothing in hypercorn is patched and other users of it in the
  same process see no difference.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import trio
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData
from hypercorn.protocol import events as stream_events
from hypercorn.protocol.h11 import STREAM_ID, H11Protocol
from hypercorn.trio.task_group import TaskGroup
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import AppWrapper, ConnectionState
from hypercorn.utils import UnexpectedMessageError, parse_socket_addr

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


class Http11(H11Protocol):
    """HTTP/1.1 and WebSocket without compression; HTTP/2 is answered with 505."""

    _discarding = False
    _refused = False

    @property
    def answering(self) -> bool:
        """True from the first byte of an application's HTTP answer until the application has finished it."""
        state = repr(self.connection.our_state)
        return self.stream is not None and not self._refused and state in {"SEND_BODY", "DONE", "MUST_CLOSE"}

    async def handle(self, event: Event) -> None:
        """Process what arrived, unless a message was too big: then the rest is thrown away."""
        if not (self._discarding and isinstance(event, RawData)):
            await super().handle(event)

    async def stream_send(self, event: stream_events.Event) -> None:
        """Send; after a WebSocket message that was too big, also close soon and process nothing more."""
        await super().stream_send(event)
        # hypercorn answers with 1009 and goes on collecting the message in memory until the client closes.
        if isinstance(event, stream_events.Data) and event.data == _CLOSE_TOO_BIG:
            self._discarding = True
            self.task_group.spawn(self._close_soon)

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


class _ApplicationQueue:
    """Puts events for the application until it has finished; from then on it drops them."""

    def __init__(self) -> None:
        self._finished = False
        self._waiting: set[trio.CancelScope] = set()
        self.target: Callable[[Any], Awaitable[None]] | None = None

    async def put(self, event: Any) -> None:
        if self._finished or self.target is None:
            return
        with trio.CancelScope() as scope:
            self._waiting.add(scope)
            try:
                await self.target(event)
            finally:
                self._waiting.discard(scope)

    def finish(self) -> None:
        self._finished = True
        for scope in self._waiting:
            scope.cancel()


class _Tasks(TaskGroup):
    """A connection's tasks: applications, and helpers (pings, delayed closes) that end with the connection."""

    def __init__(self) -> None:
        super().__init__()
        self._helpers: set[trio.CancelScope] = set()
        self._peer_gone = False

    async def spawn_app(
        self, app: AppWrapper, config: Config, scope: Any, send: Callable[[Any], Awaitable[None]]
    ) -> Callable[[Any], Awaitable[None]]:
        queue = _ApplicationQueue()

        async def tell(message: Any) -> None:
            if message is None or _is_last(message):
                queue.finish()
            elif self._peer_gone:
                # It has been told, or it never asks: whatever it sends now, it has nobody to work for.
                self._cancel()
            try:
                await send(message)
            except (UnexpectedMessageError, TypeError, ValueError):
                raise  # the application's mistake
            except Exception:  # the protocol's state forbids it because of what the peer sent: not worth a traceback
                log.debug("an answer cannot be sent any more", exc_info=True)
                self._cancel()
            # To a peer that is gone hypercorn's send returns at once: a loop of sends would never let others run.
            await trio.lowlevel.checkpoint()

        queue.target = await super().spawn_app(app, config, scope, tell)
        return queue.put

    def spawn(self, func: Callable[..., Awaitable[None]], *args: Any) -> None:
        super().spawn(self._help, func, args)

    async def _help(self, func: Callable[..., Awaitable[None]], args: tuple[Any, ...]) -> None:
        with trio.CancelScope() as scope:
            self._helpers.add(scope)
            await func(*args)

    def _cancel(self) -> None:
        if self._nursery is not None:
            self._nursery.cancel_scope.cancel()

    def peer_gone(self) -> None:
        """End the helpers now and the application at its next attempt to send."""
        self._peer_gone = True
        for scope in self._helpers:
            scope.cancel()


def _is_last(message: Any) -> bool:
    return message["type"] == "http.response.body" and not message.get("more_body", False)


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
            tasks = _Tasks()
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
                await self.idle_task.restart(tasks, self._idle_timeout)
                await self._read_data()
                await self.idle_task.stop()  # or the connection would live on for the rest of its timeout
                tasks.peer_gone()
        finally:
            with trio.move_on_after(CLOSE_S, shield=True):
                await self._close()

    async def protocol_send(self, event: Event) -> None:
        """Send bytes with a deadline for each chunk, or do what hypercorn does with other events."""
        if isinstance(event, Closed) and isinstance(self.protocol, Http11) and self.protocol.answering:
            return  # input that breaks the protocol must not cut the answer short; its end closes the connection
        if not isinstance(event, RawData):
            await super().protocol_send(event)
            return
        async with self.send_lock:
            gone = not await self._send_all(memoryview(event.data))
        if gone:
            await self.protocol.handle(Closed())

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
