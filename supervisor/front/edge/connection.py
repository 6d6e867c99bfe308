"""One client connection: hypercorn's protocol code with the edges that would hurt a daemon taken off.

Rules of this file:
- What goes wrong on a connection ends that connection and is counted; hypercorn 0.18 lets everything but `OSError`
  leave its server's nursery, so that one malformed frame ends the process.
- Everything that waits for the peer has a deadline: the head of a request, each 64 KiB of an answer, the end of the
  input after our last byte. hypercorn sends in a shield without one.
- The socket is read on while a request is under way, so that it is noticed at once when the client leaves.
- A request costs no timer, and as few system calls and turns of the loop as it can: what the kernel takes at once is
  waited for by nobody.
- It is done by subclasses that `serve` uses itself, so nothing in hypercorn is patched and other users of it in the
  same process see no difference.
"""

from __future__ import annotations

import logging
import math
import os
from contextlib import suppress

import msgspec
import trio
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.trio.tcp_server import MAX_RECV, TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import AppWrapper, ConnectionState
from hypercorn.utils import parse_socket_addr

from supervisor.front.edge.budget import Budget
from supervisor.front.edge.http11 import MAX_AHEAD_BYTES, Http11
from supervisor.front.edge.tasks import Tasks
from supervisor.front.edge.websocket_frames import FrameSettings

log = logging.getLogger(__name__)

CHUNK_BYTES = 64 * 1024
"""So much must leave within one send deadline: 6.4 KiB/s at the default of 10 s."""

LINGER_S = 1.0
"""How long a client may go on sending after our last byte, so that it can read that: bytes nobody reads reset it."""

AHEAD_S = 1.0
"""How long requests that were sent ahead wait for their turn before they are refused."""

CLOSE_S = 1.0


class ConnectionCounters(msgspec.Struct, kw_only=True):
    """What happened on the connections of one `serve`; read by whoever reports it."""

    open: int = 0
    accepted: int = 0
    refused: int = 0
    """Over the limit of connections."""
    errors: int = 0
    """Connections that ended with an exception: malformed input, or a bug."""
    stalled: int = 0
    """Connections whose peer took nothing for the send deadline."""


class ClientConnection(TCPServer):
    """A connection that can fail, stall or be aborted without anybody else noticing."""

    def __init__(
        self,
        app: AppWrapper,
        config: Config,
        context: WorkerContext,
        stream: trio.SocketStream,
        *,
        counters: ConnectionCounters,
        send_timeout_s: float,
        frames: FrameSettings,
        budget: Budget,
    ) -> None:
        super().__init__(app, config, context, ConnectionState({}), stream)  # type: ignore[arg-type]  # not only TLS
        self._counters = counters
        self._send_timeout_s = send_timeout_s
        self._frames = frames
        self._budget = budget
        self._open = trio.CancelScope()
        self._waiting = trio.CancelScope()
        self._its_turn = False  # of a request that was sent ahead
        self._ended = False
        self._idle_until = trio.current_time() + config.keep_alive_timeout
        self._looks = trio.CancelScope()  # when it is looked whether the connection is idle for too long

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
            self._http = Http11(
                self.app,
                self.config,
                self.context,
                tasks,
                ConnectionState({}),
                False,
                client,
                server,
                self.protocol_send,
                frames=self._frames,
                budget=self._budget,
            )
            self.protocol = self._http  # type: ignore[assignment]  # the wrapper only chooses among protocols
            try:
                await self._serve(tasks)
            finally:
                self._http.let_go()
        finally:
            with trio.move_on_after(CLOSE_S, shield=True):
                await self._close()

    async def _serve(self, tasks: Tasks) -> None:
        async with tasks:
            self._task_group = tasks
            tasks.spawn(self._idle_timeout)
            with self._open:
                await self._read_data()
            await self.protocol.handle(Closed())
            tasks.peer_gone()

    async def protocol_send(self, event: Event) -> None:
        """Send bytes with a deadline for each chunk, or do what hypercorn does with other events."""
        if isinstance(event, Closed) and self._http.answering:
            return  # input that breaks the protocol must not cut the answer short; its end closes the connection
        if isinstance(event, RawData):
            if not await self._send(event.data):
                await self.protocol.handle(Closed())
        elif isinstance(event, Updated):
            # hypercorn starts and cancels a task for this, twice for each request; ours looks again when it is due.
            self._idle_until = trio.current_time() + self.config.keep_alive_timeout if event.idle else math.inf
            if event.idle and self._looks.deadline == math.inf:
                self._looks.deadline = self._idle_until
            if event.idle and self._http.next_is_here:
                self._its_turn = True
                self._waiting.cancel()
        else:
            await self._end()
            await self.protocol.handle(Closed())

    async def _end(self) -> None:
        """Send no more, and let the client read what was sent."""
        if not self._ended:
            self._ended = True
            with suppress(trio.BrokenResourceError, trio.BusyResourceError, trio.ClosedResourceError):
                await self.stream.send_eof()
            self._open.deadline = trio.current_time() + LINGER_S

    async def _idle_timeout(self) -> None:
        """Close the connection once it has waited for a request too long, or waits when the server ends.

        While a request lasts longer than that, or there is a WebSocket, nobody looks: there may be thousands.
        """
        while trio.current_time() < self._idle_until and not self.context.terminated.is_set():
            with trio.CancelScope(deadline=self._idle_until) as self._looks:
                await self.context.terminated.wait()
        if self._idle_until < math.inf:  # else the end of the request under way closes it
            with trio.CancelScope(shield=True):
                await self._initiate_server_close()

    async def _read_data(self) -> None:
        """Process what arrives until nothing more can. The deadline for that is the idle timeout."""
        data = b"?"
        while data:
            if self._its_turn or self._http.next_is_here:
                arrived = await self._read_ahead()
            else:
                arrived = await self._read()
            if arrived is not None:
                data = arrived
                if not self._ended:
                    await self.protocol.handle(RawData(data))

    async def _read_ahead(self) -> bytes | None:
        """Wait for bytes while a request waits that was sent ahead; None once that one had, or has, its turn."""
        if self._its_turn:
            self._its_turn = False
            await self._http.go_on()
            return None
        if self._http.waiting_bytes >= MAX_AHEAD_BYTES and not self._ended:
            await self._wait_for_turn()
            return None
        with trio.CancelScope() as self._waiting:
            return await self._read()
        return None

    async def _wait_for_turn(self) -> None:
        """Wait with what was sent ahead; a request that takes longer is better watched than what waits behind it."""
        with trio.move_on_after(AHEAD_S) as self._waiting:
            await trio.sleep_forever()
        if not self._its_turn:
            self._http.refuse_more()

    async def _read(self) -> bytes:
        """Wait for bytes and return them, empty if there will be none. There is rarely something before one waits."""
        socket = self.stream.socket
        while socket.fileno() >= 0:
            try:
                await trio.lowlevel.wait_readable(socket)
                return os.read(socket.fileno(), MAX_AHEAD_BYTES if self._http.paused else MAX_RECV)
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
