"""Requests of clients that another node answers: both ends of one, over a link.

An answer goes as fast as its client takes it: a window of bytes may be on its way, and what is taken is said.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

import trio

from actors.errors import SupervisorError
from supervisor.fleet.engine import NodeAway
from supervisor.fleet.links import frames
from supervisor.fleet.links.frames import (
    PART_BYTES,
    Abandoned,
    AnswerBegun,
    AnswerEnded,
    AnswerPart,
    BadFrame,
    Failed,
    FrameStream,
    HeaderLines,
    PartTaken,
    RequestLeft,
    RequestSent,
)

_WINDOW_BYTES: Final = 2 * PART_BYTES
"""Of one answer that may be on their way, or wait to be taken."""
_STALL_S: Final = 30.0
"""For so long a whole window may wait to be taken; then the client is gone."""


class SentRequest:
    """The end at the node of the client: the answer as it comes. `read_head` first, then `next` until None."""

    def __init__(self, stream: FrameStream, id_: int) -> None:
        self._stream = stream
        self._id = id_
        self._head: AnswerBegun | None = None
        self._parts: deque[bytes] = deque()
        self._waiting = 0
        self._failure: Exception | None = None
        self.over = False
        self._bell = trio.lowlevel.ParkingLot()

    async def read_head(self) -> AnswerBegun:
        """Wait for the head of the answer. Raises what the other node says, and `NodeAway` if it is lost."""
        while self._head is None:
            self._check()
            await self._bell.park()
        return self._head

    async def next(self) -> bytes | None:
        """Wait for a part; None after the last one. Raises as `read_head` does."""
        while not self._parts:
            self._check()
            if self.over:
                return None
            await self._bell.park()
        part = self._parts.popleft()
        self._waiting -= len(part)
        if not self.over and not self._stream.gone:
            self._stream.send(PartTaken(self._id, len(part)))
        return part

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def leave(self) -> None:
        """The client has left: whatever needs it there ends."""
        self._say(RequestLeft(self._id))

    def abandon(self) -> None:
        """It may not be answered any more."""
        self._say(Abandoned(self._id))

    def _say(self, frame: RequestLeft | Abandoned) -> None:
        if not self.over and not self._stream.gone:
            self._stream.send(frame)

    def take(self, frame: AnswerBegun | AnswerPart | AnswerEnded | Failed) -> None:
        """Take what arrived. Raises `BadFrame` for more than the window."""
        match frame:
            case AnswerBegun():
                self._head = frame
            case AnswerPart(part=part):
                self._waiting += len(part)
                if self._waiting > _WINDOW_BYTES + PART_BYTES:
                    raise BadFrame("an answer that comes faster than it is taken")
                self._parts.append(part)
            case AnswerEnded():
                self.over = True
            case Failed(error=error):
                self.fail(frames.decode_failure(error))
        self._bell.unpark_all()

    def fail(self, error: Exception) -> None:
        """Nothing comes any more."""
        self.over = True
        if self._failure is None:
            self._failure = error
        self._bell.unpark_all()


class DistantRequest:
    """The end at the node that answers: `head` and `body` of the request."""

    def __init__(self, stream: FrameStream, sent: RequestSent, body: bytes) -> None:
        self.head = sent.head
        self.body = body
        self._tell_left: Callable[[], None] = lambda: None
        self._stream = stream
        self._id = sent.id
        self._on_way = 0
        self._left = False
        self._over = False
        self._scope = trio.CancelScope()
        self._bell = trio.lowlevel.ParkingLot()

    async def begin(self, status: int, lines: HeaderLines, *, whole: bool) -> None:
        """Begin the answer. `whole`: all of it follows now."""
        await trio.lowlevel.checkpoint()
        self._send(AnswerBegun(self._id, status, lines, whole))

    async def send(self, part: bytes) -> None:
        """Send a part of the answer, as soon as there is room for it. To a client that has left nothing is sent."""
        await trio.lowlevel.checkpoint()
        for start in range(0, len(part), PART_BYTES):
            with trio.move_on_after(_STALL_S) as waiting:
                while self._on_way >= _WINDOW_BYTES and not self._left:
                    await self._bell.park()
                while self._stream.crowded and not (self._left or self._stream.gone):  # by all answers together
                    await self._stream.wait_room()
            if waiting.cancelled_caught:
                self.leave()
            piece = part[start : start + PART_BYTES]
            if not self._left:
                self._on_way += len(piece)
                self._send(AnswerPart(self._id, piece))

    def end(self) -> None:
        """It is answered."""
        self._send(AnswerEnded(self._id))
        self._over = True

    def on_leave(self, tell: Callable[[], None]) -> None:
        """Call `tell` when its client has left, at once if it has."""
        self._tell_left = tell
        if self._left:
            tell()

    def leave(self) -> None:
        """Its client has left, or does not read."""
        if not self._left:
            self._left = True
            self._bell.unpark_all()
            self._tell_left()

    def take_taken(self, size: int) -> None:
        self._on_way -= size
        self._bell.unpark_all()

    def abandon(self) -> None:
        """Stop answering it at once."""
        self._scope.cancel()

    def refuse(self, error: SupervisorError) -> None:
        """It is not answered here."""
        self._send(Failed(self._id, frames.encode_failure(error)))
        self._over = True

    async def serve(self, answer: Callable[[DistantRequest], Awaitable[None]]) -> None:
        """Have it answered. What is cut short fails at the other end, too. Raises nothing but cancellation."""
        with self._scope:
            await answer(self)
        if not self._over:
            self.refuse(NodeAway("the node of this session has cut it short", outcome="unknown"))

    def _send(self, frame: AnswerBegun | AnswerPart | AnswerEnded | Failed) -> None:
        if not self._over and not self._stream.gone:
            self._stream.send(frame)
