"""A WebSocket of the daemon, as a client of it: text messages, as bytes, in both directions.

- What the daemon said before it closed is received, to the last message.
- Between a look whether the other side still lives (`is_alive`) and the first byte of a message nothing else runs: what
  is sent after the end of a daemon was known to the kernel would be lost without a word.
- There is no compression, no proxy, no redirect: the daemon is on this machine, or reached by its own address.
"""

from __future__ import annotations

import select
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from http import HTTPStatus
from typing import Any, Final, Literal

import msgspec
import trio
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Event,
    Ping,
    Pong,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)
from wsproto.utilities import ProtocolError

from actors.errors import UnknownDoor
from actors.protocol.wire import json
from supervisor.bridge.address import DoorAddress
from supervisor.front.edge.fields import MOST_BYTES
from supervisor.operator_pass import Challenge, NoPass, Stream, authorization, challenge_in, end_of, pass_for

_CONNECT_S: Final = 5.0
_CLOSE_S: Final = 1.0
PING_S: Final = 20.0
"""A daemon that says nothing for so long is asked whether it lives, and has as long again."""
_READ_BYTES: Final = 64 * 1024
_MAX_MESSAGE_BYTES: Final = 256 * 1024 * 1024
"""Of a daemon; the largest answer of a server that a daemon lets pass by default is a sixteenth."""
_LEAST_LIMIT_BYTES: Final = 1024 * 1024
"""What a daemon takes that does not say."""
_DATA: Final = msgspec.json.Decoder(dict[str, Any])
_MAX_WORDS: Final = 300
"""Characters of a refusal that are shown."""


class NotReached(Exception):
    """There is no connection. `kind`: nobody listens there, who does refuses us, or no answer came.

    `challenge`: what the daemon gives to whoever can read its key, as it wants a credential. `error`: what it says to
    the client itself, that it has no such door.
    """

    def __init__(
        self,
        reason: str,
        kind: Literal["refused", "rejected", "away"] = "away",
        challenge: Challenge | None = None,
        error: UnknownDoor | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.kind = kind
        self.challenge = challenge
        self.error = error


class DaemonConnection:
    """One WebSocket. One task sends, one receives. Use `open_connection`."""

    def __init__(self, stream: Stream, frames: WSConnection, limit: int) -> None:
        self.max_message_bytes = limit
        self.why = ""
        """Why it ended, once `receive` returned None."""
        self._stream = stream
        self._frames = frames
        self._events: Iterator[Event] = frames.events()  # there may be some behind the handshake
        self._sending = trio.Lock()
        self._poll = select.poll()
        socket = stream.transport_stream.socket if isinstance(stream, trio.SSLStream) else stream.socket
        self._poll.register(socket.fileno(), getattr(select, "POLLRDHUP", 0))

    def is_alive(self) -> bool:
        """Whether the other side has neither closed the connection nor died, as far as the kernel knows."""
        return not self.why and not self._poll.poll(0)

    async def receive(self) -> bytes | None:
        """Wait for the next message; None if there will be none."""
        parts: list[str] = []
        while not self.why:
            event = next(self._events, None)
            if event is None:
                await self._read()
            elif isinstance(event, TextMessage):
                parts.append(event.data)
                if event.message_finished:
                    return "".join(parts).encode()
                if sum(map(len, parts)) > _MAX_MESSAGE_BYTES:
                    self.why = f"it sent a message of over {_MAX_MESSAGE_BYTES} bytes"
            elif isinstance(event, Ping):
                await self._send(event.response())
            elif isinstance(event, CloseConnection):
                self.why = f"the daemon closed it: {event.reason or f'code {event.code}'}"
                await self._send(event.response())
            elif not isinstance(event, Pong):
                self.why = "what it sent is no text"
        return None

    async def _read(self) -> None:
        """Wait for bytes; after a while ask for some."""
        for asks in (True, False):
            with trio.move_on_after(PING_S) as patience:
                self._take(await self._receive_some())
            if not patience.cancelled_caught:
                return
            if asks:
                await self._send(Ping())
        self.why = f"the daemon said nothing for {2 * PING_S:g} s"

    async def _receive_some(self) -> bytes:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            return bytes(await self._stream.receive_some(_READ_BYTES))
        return b""

    def _take(self, data: bytes) -> None:
        if not data:
            self.why = "the daemon is gone"
            return
        try:
            self._frames.receive_data(data)
        except ProtocolError:
            self.why = "what it sent is no WebSocket"
        self._events = self._frames.events()

    async def send(self, message: bytes) -> None:
        """Send one message, JSON in UTF-8. What is wrong with the connection `receive` will tell."""
        await self._send(TextMessage(data=message.decode()))

    async def _send(self, event: Event) -> None:
        async with self._sending:
            with suppress(ProtocolError, trio.BrokenResourceError, trio.ClosedResourceError):
                await self._stream.send_all(self._frames.send(event))

    async def close(self) -> None:
        """Say that this is the end: the daemon cancels what is under way for this client."""
        await self._send(CloseConnection(code=1000))


@asynccontextmanager
async def open_connection(address: DoorAddress) -> AsyncIterator[DaemonConnection]:
    """Connect to a door for the block. Raises `NotReached`."""
    async with AsyncExitStack() as stack:
        with trio.move_on_after(_CONNECT_S) as patience:
            connection = await _connect(stack, address)
        if patience.cancelled_caught:
            raise NotReached(f"no answer within {_CONNECT_S:g} s")
        try:
            yield connection
        finally:
            with trio.move_on_after(_CLOSE_S, shield=True):
                await connection.close()


async def _connect(stack: AsyncExitStack, address: DoorAddress) -> DaemonConnection:
    """Return a connection, with a pass of the operator if the daemon wants a credential and there is no other one."""
    shown = authorization()
    while True:
        stream = await _stream_to(address)
        stack.push_async_callback(trio.aclose_forcefully, stream)
        try:
            end = end_of(stream)
        except OSError as error:
            raise NotReached(str(error)) from None
        try:
            return await _handshake(stream, address, shown)
        except NotReached as error:
            if shown or error.challenge is None:
                raise
            challenge = error.challenge
        try:
            shown = pass_for(challenge, end, "GET", address.target.partition("?")[0])
        except NoPass as error:
            raise NotReached(str(error), "rejected") from None


async def _stream_to(address: DoorAddress) -> Stream:
    try:
        if address.secure:
            return await trio.open_ssl_over_tcp_stream(address.host, address.port, https_compatible=True)
        return await trio.open_tcp_stream(address.host, address.port)
    except OSError as error:
        reasons = error.__cause__.exceptions if isinstance(error.__cause__, BaseExceptionGroup) else [error.__cause__]
        refused = all(isinstance(each, ConnectionRefusedError) for each in reasons)
        if refused:
            raise NotReached("nobody listens there; start one with: mcpvisor run --config FILE", "refused") from None
        raise NotReached(str(error)) from None


async def _handshake(stream: Stream, address: DoorAddress, shown: Mapping[str, str]) -> DaemonConnection:
    frames = WSConnection(ConnectionType.CLIENT)
    status, said = 0, bytearray()
    lines = [(name.encode(), value.encode()) for name, value in shown.items()]
    try:
        await stream.send_all(frames.send(Request(host=address.authority, target=address.target, extra_headers=lines)))
        while data := await stream.receive_some(_READ_BYTES):
            frames.receive_data(bytes(data))
            for event in frames.events():
                match event:
                    case AcceptConnection():
                        limit = dict(event.extra_headers).get(MOST_BYTES, b"")
                        return DaemonConnection(stream, frames, int(limit) if limit.isdigit() else _LEAST_LIMIT_BYTES)
                    case RejectConnection():
                        status = event.status_code
                    case RejectData():
                        said += event.data
                        if event.body_finished:
                            raise _refusal(status, said)
    except (ProtocolError, trio.BrokenResourceError):
        raise NotReached("something else listens there", "rejected") from None
    raise NotReached("it closed the connection at once")


def _refusal(status: int, said: bytearray) -> NotReached:
    """Return what a refused handshake means: that a daemon is busy passes by itself."""
    words = json.text_at(bytes(said), "error", "message")[:_MAX_WORDS]
    reason = f"it refuses with status {status}" + (f": {words}" if words else "")
    challenge = challenge_in(bytes(said)) if status == HTTPStatus.UNAUTHORIZED else None
    error = _unknown_door(said) if status == HTTPStatus.NOT_FOUND and words else None
    return NotReached(reason, "away" if status >= 500 else "rejected", challenge, error)


def _unknown_door(said: bytearray) -> UnknownDoor:
    """Return the error of a daemon that has no such door, as it would answer it over HTTP."""
    data = json.read_or(_DATA, json.at(bytes(said), "error", "data"), {})
    error = UnknownDoor(json.text_at(bytes(said), "error", "message"))
    error.details = {name: value for name, value in data.items() if name not in error.data()}
    return error
