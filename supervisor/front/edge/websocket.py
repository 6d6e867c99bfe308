"""One WebSocket: its handshake, its frames and messages, and what a client may do with them.

Rules of this file:
- Messages are pulled: until somebody wants the next one nothing more is read. Frames of one client take turns with
  everybody else's work.
- Frames that carry nothing (pings, pongs, tiny fragments in the middle of a message) are allowed in a rate; more are
  closed with 1008.
- A message has a bound in bytes (1009) and in time (1008), and while it arrives it counts in the daemon's budget (1013
  if there is no room).
- A client that says nothing from one ping to the next is closed with 1008, unless it is us who do not read.
- After a close frame of ours nothing is processed any more, and the client has a moment to read the reason.
- There is no compression: what is not spoken cannot be abused.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from io import BytesIO, StringIO
from typing import Any, Final

import trio
from wsproto import ConnectionType, WSConnection
from wsproto.connection import Connection, ConnectionState
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Event,
    Message,
    Ping,
    Pong,
    Request,
    TextMessage,
)
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from actors.errors import MailboxFull
from supervisor.front.edge.budget import FREE_BYTES, Budget, Share
from supervisor.front.edge.fields import MOST_BYTES
from supervisor.front.edge.parser import HttpProtocolError
from supervisor.front.edge.request import HttpRequest
from supervisor.front.edge.wire import Allowance, Leaving, Turns, Wire
from supervisor.host.pauses import Bell

_LIGHT_BYTES: Final = 128
"""A fragment in the middle of a message that carries less than this counts like a control frame."""

_FRAGMENT_CHARS: Final = 1024 * 1024
"""Longer texts are sent in fragments of so many characters."""

_PROTOCOL_ERROR: Final = 1002
_POLICY: Final = 1008
_TOO_BIG: Final = 1009
_TRY_LATER: Final = 1013
"""RFC 6455 7.4.1, and the registry of WebSocket close codes at IANA."""


class _Incoming:
    """A message that has begun to arrive."""

    def __init__(self, share: Share) -> None:
        self.share = share
        self.size = 0
        self._first: Any = None  # most messages come in one part
        self._joined: StringIO | BytesIO | None = None

    def extend(self, data: Any) -> None:
        """Add a fragment. Raises `MailboxFull` if the daemon has no room for it."""
        size = len(data) if not isinstance(data, str) or data.isascii() else len(data.encode())
        self.size += size
        self.share.grow(size)
        if self._first is None:
            self._first = data
            return
        if self._joined is None:
            self._joined = StringIO() if isinstance(data, str) else BytesIO()
            self._joined.write(self._first)
        self._joined.write(data)

    @property
    def data(self) -> Any:
        return self._first if self._joined is None else self._joined.getvalue()


class WebSocket:
    """The messages of one client. One task receives; any may send. `pings` should run beside."""

    def __init__(self, connection: Wire, frames: Connection) -> None:
        self._connection = connection
        self._settings = connection.context.settings
        self._budget = connection.context.budget
        self._frames = frames
        self._events: Iterator[Event] = iter(())
        self._turns = Turns()
        self._small_bytes = min(FREE_BYTES, self._settings.websocket_max_message_bytes)
        self._allowed = Allowance(self._settings.websocket_control_frames_per_s, trio.current_time())
        self._incoming: _Incoming | None = None
        self._late_at = math.inf
        self._reads_since = math.inf  # in seconds of the trio clock; never while nothing is read
        self._frame_bytes = 0
        self._is_continued = False
        self._closed = False

    @property
    def budget(self) -> Budget:
        return self._budget

    @property
    def leaving(self) -> Leaving:
        return self._connection.leaving

    async def receive(self) -> str | bytes | None:
        """Wait for the next message; None if there will be none. A checkpoint now and then."""
        try:
            return await self._next()
        except RemoteProtocolError as error:
            await self.close(_PROTOCOL_ERROR, str(error)[:100])
            return None
        finally:
            self._drop()  # what is left of a message has no end any more

    async def _next(self) -> str | bytes | None:
        while not self._closed:
            event = next(self._events, None)
            if event is None:
                data = await self._read()
                if data:
                    self._frames.receive_data(data)
                    self._events = self._frames.events()
                elif data is not None:
                    self._closed = True
                continue
            if self._turns.used_up():
                await trio.lowlevel.checkpoint()
            message = await self._act(event)
            if message is not None:
                return message
        return None

    async def _read(self) -> bytes | None:
        """Wait for bytes; None if the message under way has to end instead."""
        incoming = self._incoming
        self._reads_since = trio.current_time()
        try:
            if incoming is None:
                return await self._connection.read()
            with trio.CancelScope(deadline=self._late_at) as scope:
                incoming.share.give_up = scope.cancel
                return await self._connection.read()
        finally:
            self._reads_since = math.inf
        if incoming.share.taken_away:
            await self.close(_TRY_LATER, "the daemon is busy; retry shortly")
        else:
            await self.close(_POLICY, f"a message did not arrive within {self._settings.body_timeout_s:g} s")
        return None

    async def _act(self, event: Event) -> str | bytes | None:
        """Do what an event asks for; return the message that it ends, if any."""
        if isinstance(event, Message):
            return await self._collect(event)
        if isinstance(event, CloseConnection):
            await self._closed_by_peer(event)
        elif isinstance(event, Ping | Pong):
            if not self._allowed.spend(trio.current_time()):
                await self.close(_POLICY, "too many control frames")
            elif isinstance(event, Ping):
                await self._send(event.response())
        return None

    async def _collect(self, part: Message[Any]) -> str | bytes | None:
        if self._is_light(part) and not self._allowed.spend(trio.current_time()):
            await self.close(_POLICY, "too many tiny fragments")
            return None
        incoming = self._incoming
        if incoming is None and part.message_finished and len(part.data) * 4 <= self._small_bytes:
            whole: str | bytes = part.data  # what most messages are
            return whole
        if incoming is None:
            incoming = self._incoming = _Incoming(self._budget.share())
            self._late_at = trio.current_time() + self._settings.body_timeout_s
        try:
            incoming.extend(part.data)
        except MailboxFull:
            await self.close(_TRY_LATER, "the daemon is busy; retry shortly")
            return None
        if incoming.size > self._settings.websocket_max_message_bytes:
            await self.close(_TOO_BIG)
        elif part.message_finished:
            self._drop()
            message: str | bytes = incoming.data
            return message
        return None

    def _is_light(self, part: Message[Any]) -> bool:
        """Say whether this ends a frame in the middle of a message that has carried next to nothing."""
        self._frame_bytes += len(part.data)
        if not part.frame_finished:
            return False
        light = self._is_continued and not part.message_finished and self._frame_bytes < _LIGHT_BYTES
        self._frame_bytes = 0
        self._is_continued = not part.message_finished
        return light

    async def send(self, text: str) -> None:
        """Send a message, a long one in fragments, between which others have their turn."""
        start = 0
        while len(text) - start > _FRAGMENT_CHARS and not self._closed:
            await self._send(TextMessage(data=text[start : start + _FRAGMENT_CHARS], message_finished=False))
            await trio.lowlevel.checkpoint()
            start += _FRAGMENT_CHARS
        await self._send(TextMessage(data=text[start:] if start else text))

    async def pings(self) -> None:
        """Ping until the end, from a moment of its own on: clients that came together are not pinged together.

        Who does not answer by the next ping has left, whatever the kernel at the other end says.
        """
        ping_s = self._settings.websocket_ping_s
        bell, by, pinged_at = Bell(), trio.current_time() + ping_s * random.uniform(0.5, 1), -math.inf
        while not self._closed:
            await bell.rings(by)
            if trio.current_time() < by:
                continue
            if self._reads_since < pinged_at:  # nothing was read since then
                await self.close(_POLICY, f"no answer to a ping within {ping_s:g} s")
                self.leaving.set()
                return
            pinged_at = trio.current_time()
            await self._send(Ping())
            by = trio.current_time() + ping_s

    async def close(self, code: int, reason: str = "") -> None:
        """Say that this is the end, and why: nothing is received or sent from now on."""
        await self._send(CloseConnection(code=code, reason=reason))
        self._closed = True

    async def _closed_by_peer(self, event: CloseConnection) -> None:
        if self._frames.state is ConnectionState.REMOTE_CLOSING:
            await self._send(event.response())
        elif self._frames.state is not ConnectionState.CLOSED:  # it broke the protocol
            await self.close(event.code)
        self._closed = True

    async def _send(self, event: Event) -> None:
        if self._closed:
            await trio.lowlevel.checkpoint()
            return
        try:
            data = self._frames.send(event)
        except LocalProtocolError:  # the client has closed it: nothing is said after that
            await trio.lowlevel.checkpoint()
            return
        await self._connection.write(data)

    def _drop(self) -> None:
        if self._incoming is not None:
            self._incoming.share.close()
            self._incoming = None
            self._late_at = math.inf


class Handshake:
    """The offer of a client to speak WebSocket. Raises `HttpProtocolError` if it is none."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        if request.is_followed:
            raise HttpProtocolError(400, "bytes behind a handshake that is not answered")
        self._library = WSConnection(ConnectionType.SERVER)
        plain = [line for line in request.headers if line[0] != b"sec-websocket-extensions"]
        try:
            self._library.initiate_upgrade_connection(plain, request.target)
            offer = next(self._library.events())
        except (RemoteProtocolError, LocalProtocolError, UnicodeError) as error:
            raise HttpProtocolError(400, f"no handshake of a WebSocket: {error}") from None
        assert isinstance(offer, Request)
        self.subprotocols = offer.subprotocols

    async def accept(self, subprotocol: str | None) -> WebSocket:
        connection = self._request.hand_over()
        limit = b"%d" % connection.context.settings.websocket_max_message_bytes
        data = self._library.send(AcceptConnection(subprotocol=subprotocol, extra_headers=[(MOST_BYTES, limit)]))
        frames = self._library.connection
        assert frames is not None
        await connection.write(data)
        return WebSocket(connection, frames)
