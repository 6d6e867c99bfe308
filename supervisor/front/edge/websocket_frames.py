"""One WebSocket below its messages: frames, and what a client may do with them.

Rules of this file:
- Frames of one client take turns with everybody else's work.
- Frames that carry nothing (pings, pongs, tiny fragments in the middle of a message) are allowed in a rate; more are
  closed with 1008.
- A message has a bound in bytes (1009) and in time (1008), and while it arrives it counts in the daemon's budget
  (1013 if there is no room). It is handed on when the application takes it: until then nothing more is read.
- After a close frame of ours nothing is processed any more, and the client has a moment to read the reason.
"""

from __future__ import annotations

import math
import random
from io import BytesIO, StringIO
from typing import Any

import msgspec
import trio
from hypercorn.protocol.events import StreamClosed
from hypercorn.protocol.ws_stream import WSStream
from wsproto.connection import ConnectionState
from wsproto.events import CloseConnection, Event, Message, Ping, Pong, TextMessage

from actors.errors import MailboxFull
from supervisor.front.edge.budget import FREE_BYTES, Budget, Share
from supervisor.front.edge.token_bucket import Allowance
from supervisor.front.edge.turns import Turns
from supervisor.host.wakes import Bell

LIGHT_BYTES = 128
"""A fragment in the middle of a message that carries less than this counts like a control frame."""

FRAGMENT_CHARS = 1024 * 1024
"""Longer texts are sent in fragments of so many characters."""

POLICY, TOO_BIG, TRY_LATER = 1008, 1009, 1013
"""RFC 6455 7.4.1, and the registry of WebSocket close codes at IANA."""


class FrameSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of the frames of one WebSocket."""

    max_message_bytes: int = 1024 * 1024
    control_frames_per_s: float = 100.0
    message_timeout_s: float = 30.0
    """From the first fragment of a message to its last."""


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
        """The whole message, text or bytes."""
        return self._first if self._joined is None else self._joined.getvalue()


class WebSocketStream(WSStream):
    """hypercorn's WebSocket with bounds of ours on what comes in."""

    def __init__(self, *arguments: Any, settings: FrameSettings, budget: Budget, turns: Turns) -> None:
        super().__init__(*arguments)
        self._settings = settings
        self._budget = budget
        self._turns = turns
        self._small_bytes = min(FREE_BYTES, settings.max_message_bytes)
        self._allowed = Allowance(settings.control_frames_per_s, trio.current_time())
        self._incoming: _Incoming | None = None
        self._frame_bytes = 0
        self._is_continued = False
        self._late = trio.CancelScope()
        self._watched = False

    async def _send_pings(self) -> None:
        """Ping in turns with all others, from a moment of its own on: clients that came together are not pinged so."""
        interval_s = self.config.websocket_ping_interval or math.inf
        bell, by = Bell(), trio.current_time() + interval_s * random.uniform(0.5, 1)
        while not self.closed:
            await bell.rings(by)
            if trio.current_time() >= by and not self.closed:
                await self._send_wsproto_event(Ping())
                by = trio.current_time() + interval_s

    async def handle(self, event: Any) -> None:
        """Process what arrived. At the end of the connection give back what an unfinished message held."""
        await super().handle(event)
        if self.closed:
            self._drop()

    async def app_send(self, message: Any) -> None:
        """Send what the application says; a long text in fragments, between which others have their turn."""
        text = message.get("text") if message is not None and message["type"] == "websocket.send" else None
        if text is not None and len(text) > FRAGMENT_CHARS:
            message = {**message, "text": await self._send_beginning(text)}
        await super().app_send(message)

    async def _send_beginning(self, text: str) -> str:
        """Send fragments until one more frame is enough; return what belongs into that."""
        start = 0
        while len(text) - start > FRAGMENT_CHARS and not self.closed:
            part = text[start : start + FRAGMENT_CHARS]
            await self._send_wsproto_event(TextMessage(data=part, message_finished=False))
            await trio.lowlevel.checkpoint()
            start += FRAGMENT_CHARS
        return text[start:]

    async def _handle_events(self) -> None:
        for event in self.connection.events():
            if self._turns.used_up():
                await trio.lowlevel.checkpoint()
            if self.closed:
                return
            await self._act(event)

    async def _act(self, event: Event) -> None:
        if isinstance(event, Message):
            await self._collect(event)
        elif isinstance(event, CloseConnection):
            await self._closed_by_peer(event)
        elif isinstance(event, Ping | Pong):
            if not self._allowed.spend(trio.current_time()):
                await self._end(POLICY, "too many control frames")
            elif isinstance(event, Ping):
                await self._send_wsproto_event(event.response())

    async def _collect(self, part: Message[Any]) -> None:
        if self._is_light(part) and not self._allowed.spend(trio.current_time()):
            await self._end(POLICY, "too many tiny fragments")
            return
        incoming = self._incoming
        if incoming is None and part.message_finished and len(part.data) * 4 <= self._small_bytes:
            await self._tell(part.data)  # what most messages are
            return
        if incoming is None:
            incoming = self._incoming = _Incoming(self._budget.share(self._give_up))
        try:
            incoming.extend(part.data)
        except MailboxFull:
            await self._end(TRY_LATER, "the daemon is busy; retry shortly")
            return
        if incoming.size > self._settings.max_message_bytes:
            await self._end(TOO_BIG, "")
        elif part.message_finished:
            await self._hand_on(incoming)
        else:
            self._watch()

    def _is_light(self, part: Message[Any]) -> bool:
        """Say whether this ends a frame in the middle of a message that has carried next to nothing."""
        self._frame_bytes += len(part.data)
        if not part.frame_finished:
            return False
        light = self._is_continued and not part.message_finished and self._frame_bytes < LIGHT_BYTES
        self._frame_bytes = 0
        self._is_continued = not part.message_finished
        return light

    async def _hand_on(self, incoming: _Incoming) -> None:
        incoming.share.complete()
        self._late.deadline = math.inf
        await self._tell(incoming.data)
        self._drop()

    async def _tell(self, data: Any) -> None:
        """Hand a message on to the application."""
        is_text = isinstance(data, str)
        assert self.app_put is not None
        await self.app_put(
            {"type": "websocket.receive", "bytes": None if is_text else data, "text": data if is_text else None}
        )

    def _watch(self) -> None:
        """Have an unfinished message end in time."""
        if self._late.deadline == math.inf:
            self._late.deadline = trio.current_time() + self._settings.message_timeout_s
        if not self._watched:
            self._watched = True
            self.task_group.spawn(self._end_late)

    async def _end_late(self) -> None:
        with self._late:
            await trio.sleep_forever()
        await self._end(POLICY, f"a message did not arrive within {self._settings.message_timeout_s:g} s")

    def _give_up(self) -> None:
        self.task_group.spawn(self._end, TRY_LATER, "the daemon is busy; retry shortly")

    async def _closed_by_peer(self, event: CloseConnection) -> None:
        if self.connection.state is ConnectionState.REMOTE_CLOSING:
            await self._send_wsproto_event(event.response())
            await self.send(StreamClosed(stream_id=self.stream_id))
        else:  # it broke the protocol, or answers our own close frame
            await self._end(event.code, "")

    async def _end(self, code: int, reason: str) -> None:
        """Close for a reason of ours; the application is told that the client is gone."""
        if self.closed:
            return
        await self._send_wsproto_event(CloseConnection(code=code, reason=reason))
        await self.send(StreamClosed(stream_id=self.stream_id))

    def _drop(self) -> None:
        if self._incoming is not None:
            self._incoming.share.close()
            self._incoming = None
