"""A connection over a WebSocket: both sides send text messages, each one a message of MCP, as over the pipes of stdio.

No revision of MCP has a WebSocket transport: this is a "custom transport" (2026-07-28, basic/transports), and what the
official SDKs 1.x do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import trio
from trio_websocket import ConnectionClosed, WebSocketConnection
from wsproto.events import TextMessage

from actors.errors import ServerExited
from actors.kit.decoding import decode_in_thread
from actors.protocol.wire.peer import Outgoing
from actors.protocol.wire.weight import LARGE_BYTES
from actors.transport.base import Exit
from actors.transport.border import Border
from actors.transport.http.remote import HttpLimits
from actors.transport.session import Session

PING_S = 20.0
"""How often is asked whether the other side is there: often enough for what stands between to keep the connection."""
PONG_S = 60.0
"""How long it may take to answer that: a tool may hold up its whole server meanwhile."""
FRAME_CHARS = 256 * 1024
"""Longer messages are sent in several frames."""
LAST_WORDS_S = 1.0
_CLOSED = "the connection to it is closed"
_TOO_BIG = 1009
_CAUSES = {1000: "it closed the connection", 1001: "it is going away", 1006: "the connection to it was lost"}
"""By code (RFC 6455 7.4.1). What the server says of its reasons may hold anything."""


class Meter(trio.abc.Stream):
    """The bytes of a WebSocket, counted: what is sent without ever completing a message must not pile up.

    The stream is broken once `limit` bytes came without a `reset`. `ended` is set when nothing more comes.
    `finished` is set by whoever reads it, when that is over; `failure` is then why, where nobody foresaw it.
    """

    def __init__(self, stream: trio.abc.Stream, limit: int) -> None:
        self.ended = trio.Event()
        self.finished = trio.Event()
        self.failure = ""
        self._stream = stream
        self._limit = limit
        self._count = 0

    @property
    def begun(self) -> bool:
        return self._count > 0

    def reset(self) -> None:
        """Begin to count anew: what came was of use."""
        self._count = 0

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return what comes. Raises `trio.BrokenResourceError` over the limit, and as the stream does."""
        try:
            data = bytes(await self._stream.receive_some(max_bytes))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self.ended.set()
            raise
        self._count += len(data)
        if not data or self._count > self._limit:
            self.ended.set()
        if self._count > self._limit:
            raise trio.BrokenResourceError("too much without a message")
        return data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        self.ended.set()
        await self._stream.aclose()


class SocketConnection(Session):
    """One WebSocket; see `Connection` for the contract of each method."""

    def __init__(
        self, socket: WebSocketConnection, meter: Meter, limits: HttpLimits, nursery: trio.Nursery, border: Border
    ) -> None:
        super().__init__(limits.stop_s)
        self._border = border
        self._socket = socket
        self._meter = meter
        self._limits = limits
        nursery.start_soon(self._guard, self._read)
        nursery.start_soon(self._guard, self._beat)

    async def send(self, messages: Sequence[Outgoing], left: Callable[[int], None]) -> bool:
        for message in messages:
            body = message.body
            text = body.decode(errors="replace") if len(body) < LARGE_BYTES else await decode_in_thread(body.decode)
            self.count(message)
            left(1)
            for start in range(0, len(text), FRAME_CHARS):
                end = start + FRAME_CHARS
                frame = TextMessage(data=text[start:end], message_finished=end >= len(text))
                with trio.move_on_after(self._limits.write_timeout_s) as patience:
                    await self._write(frame)
                if patience.cancelled_caught:
                    return False
        return True

    async def _write(self, frame: TextMessage) -> None:
        if self._socket.closed is not None:
            raise ServerExited(_CLOSED)
        try:
            await self._socket._send(frame)  # `send_message` masks all of a message at once: 5 ms a megabyte
        except ConnectionClosed:
            raise ServerExited(_CLOSED) from None

    async def _guard(self, part: Callable[[], Awaitable[None]]) -> None:
        """Run a part of the connection: what nobody foresaw ends the connection, with a reason."""
        try:
            await part()
        except Exception as error:  # noqa: BLE001  (whatever a server may have caused)
            self.lose(self._border.unforeseen(error))

    async def _read(self) -> None:
        try:
            while True:
                message = await self._socket.get_message()
                self._meter.reset()
                await self.hand_on(message.encode() if isinstance(message, str) else message, b"")
        except ConnectionClosed as closed:
            if self._asked:
                self.end(Exit(asked=True))
            if closed.reason is None:  # whoever reads frames has failed, and says why in a moment
                with trio.move_on_after(LAST_WORDS_S):
                    await self._meter.finished.wait()
            self.lose(self._meter.failure or self._cause(closed))

    def _cause(self, closed: ConnectionClosed) -> str:
        code, said = (closed.reason.code, closed.reason.reason) if closed.reason is not None else (1006, None)
        if code == _TOO_BIG and said is not None and said.startswith("Exceeded maximum message size"):
            return f"a message of it is over {self._limits.max_line_bytes} bytes (max_line_bytes)"
        if code == _TOO_BIG:
            return "a message of ours is too large for it"
        return _CAUSES.get(code, f"it closed the connection (code {code})")

    async def _beat(self) -> None:
        while True:
            await trio.sleep(PING_S)
            try:
                answers = await self._answers()
            except ConnectionClosed:
                return
            if not answers:
                self.lose(f"it does not answer a ping within {PONG_S:g} s")
                return
            self._meter.reset()

    async def _answers(self) -> bool:
        """Say whether it answers one of two pings: a standstill of ours, in which it may have, costs one at most."""
        for _ in range(2):
            with trio.move_on_after(PONG_S / 2):
                await self._socket.ping()
                return True
        return False

    async def _say_goodbye(self) -> None:
        await self._socket.aclose()
