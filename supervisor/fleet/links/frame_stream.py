"""Frames over a stream of bytes, both ways: what is sent never waits, and what waits to be sent is bounded."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

import trio

from supervisor.fleet.links.encoding import HEAD_BYTES, BadFrame, write
from supervisor.fleet.links.frames import MAX_FRAME_BYTES, PART_BYTES, AnyFrame, BodyPart, SignOfLife

KEEP_ALIVE_S: Final = 3.0
"""Between two signs of life that are asked for."""
DEAD_S: Final = 10.0
"""A peer of whom nothing is heard for so long, or that takes nothing, is gone: it is stopped, or the network is cut."""
MAX_WAITING_BYTES: Final = 256 * 1024 * 1024
"""Of what waits to be sent; what would be more is refused."""
CROWDED_BYTES: Final = 1024 * 1024
"""With so much waiting, what may be dropped is dropped."""
_BYTES: Final = 64 * 1024
"""Read at a time, and written at a time beside a part of a long text."""


class FrameBuffer:
    """Takes bytes as they arrive, and gives the bodies of whole frames."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take bytes, and return the frames that are whole by then. Raises `BadFrame` for one that is too long."""
        self._bytes += data
        begin = 0
        while len(self._bytes) - begin >= HEAD_BYTES:
            size = int.from_bytes(self._bytes[begin : begin + HEAD_BYTES], "big")
            if size > MAX_FRAME_BYTES:
                raise BadFrame(f"a frame of {size} bytes")
            if len(self._bytes) - begin < HEAD_BYTES + size:
                break
            yield bytes(self._bytes[begin + HEAD_BYTES : begin + HEAD_BYTES + size])
            begin += HEAD_BYTES + size
        del self._bytes[:begin]


class _Text:
    """A long text on its way, in parts: the frame that ends it goes with the last one."""

    def __init__(self, id_: int, body: bytes, end: AnyFrame) -> None:
        self._id = id_
        self._body = memoryview(body)
        self._end = end
        self._at = 0

    @property
    def over(self) -> bool:
        return self._at >= len(self._body)

    def next(self) -> tuple[bytes, int]:
        """Return the next part as it is sent, and how many bytes of the text it has."""
        part = self._body[self._at : self._at + PART_BYTES]
        self._at += len(part)
        data = write(BodyPart(self._id, bytes(part)))
        return data + write(self._end) if self.over else data, len(part)


class FrameStream:
    """The frames of one connection. `gone` once nothing can be sent any more."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.gone = False
        self._stream = stream
        self._frames: deque[bytes] = deque()
        self._texts: deque[_Text] = deque()
        self._waiting = 0
        self._heard_at = 0.0
        self._writes_since = math.inf
        self._scope = trio.CancelScope()
        self._bell = trio.lowlevel.ParkingLot()
        self._room = trio.lowlevel.ParkingLot()

    @property
    def crowded(self) -> bool:
        return self._waiting > CROWDED_BYTES

    def has_room(self, size: int) -> bool:
        """Say whether so many bytes more may wait to be sent."""
        return self._waiting + size <= MAX_WAITING_BYTES

    async def wait_room(self) -> None:
        """Wait until it may be no longer crowded, or gone."""
        await self._room.park()

    def send(self, frame: AnyFrame) -> None:
        """Send a frame soon."""
        data = write(frame)
        self._frames.append(data)
        self._waiting += len(data)
        self._bell.unpark()

    def send_text(self, id_: int, body: bytes, end: AnyFrame) -> None:
        """Send a long text in parts, and the frame that ends it. Other frames, and parts of other texts, go between."""
        self._texts.append(_Text(id_, body, end))
        self._waiting += len(body)
        self._bell.unpark()

    def hang_up(self) -> None:
        """End the connection; what waits to be sent is not."""
        self._scope.cancel()

    async def run(self, take: Callable[[bytes], None]) -> None:
        """Send, and hand over the bodies of frames as they arrive, until the connection is over; raises nothing."""
        try:
            with self._scope:
                await self._run(take)
        except* (trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError, OSError, BadFrame):
            pass
        finally:
            self.gone = True
            self._room.unpark_all()
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(self._stream)

    async def _run(self, take: Callable[[bytes], None]) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write)
            nursery.start_soon(self._keep_alive)
            await self._read(take)
            nursery.cancel_scope.cancel()

    async def _read(self, take: Callable[[bytes], None]) -> None:
        buffer = FrameBuffer()
        while data := bytes(await self._stream.receive_some(_BYTES)):
            self._heard_at = trio.current_time()
            for body in buffer.feed(data):
                take(body)

    async def _write(self) -> None:
        while True:
            while not self._frames and not self._texts:
                await self._bell.park()
            data = self._next()
            self._writes_since = trio.current_time()
            await self._stream.send_all(data)
            self._writes_since = math.inf

    def _next(self) -> bytes:
        """Return what is sent now: some frames, and one part."""
        batch, size = [], 0
        while self._frames and size < _BYTES:
            batch.append(self._frames.popleft())
            size += len(batch[-1])
        self._waiting -= size
        if self._texts:
            text = self._texts.popleft()
            part, length = text.next()
            batch.append(part)
            self._waiting -= length
            if not text.over:
                self._texts.append(text)
        if not self.crowded:
            self._room.unpark_all()
        return b"".join(batch)

    async def _keep_alive(self) -> None:
        """Ask for signs of life, and end the connection to a peer that gives none, or takes nothing.

        One task sees to that for all that is read and written: a deadline of each would cost more than the rest of it.
        """
        self._heard_at = trio.current_time()
        asks_at = self._heard_at + KEEP_ALIVE_S
        while True:
            now = trio.current_time()
            dead_at = min(self._heard_at, self._writes_since) + DEAD_S
            if now >= dead_at:
                raise trio.TooSlowError
            if now >= asks_at:
                asks_at = now + KEEP_ALIVE_S
                self.send(SignOfLife(0))
            await trio.sleep_until(min(asks_at, dead_at))
