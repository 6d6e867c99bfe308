"""Frames over a stream of bytes, both ways: what is sent never waits, and what waits to be sent is bounded."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

import trio

from supervisor.fleet.links.frames import AnyFrame, BadFrame, BodyPart, FrameBuffer, SignOfLife, write

KEEP_ALIVE_S: Final = 3.0
"""Between two signs of life that are asked for."""
DEAD_S: Final = 10.0
"""A peer of whom nothing is heard for so long is gone: it is stopped, or the network is cut."""
MAX_WAITING_BYTES: Final = 64 * 1024 * 1024
"""A peer that leaves so much unread is gone as well."""
CROWDED_BYTES: Final = 1024 * 1024
"""With so much waiting, what may be dropped is dropped."""
_READ_BYTES: Final = 64 * 1024


class FrameStream:
    """The frames of one connection. `gone` once nothing can be sent any more."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.gone = False
        self._stream = stream
        self._frames: deque[bytes] = deque()
        self._parts: deque[bytes] = deque()
        self._waiting = 0
        self._bell = trio.lowlevel.ParkingLot()

    @property
    def crowded(self) -> bool:
        return self._waiting > CROWDED_BYTES

    def send(self, *frames: AnyFrame) -> None:
        """Send frames soon. Parts of long texts leave room for others, so what ends a text is sent as its last part."""
        long = isinstance(frames[0], BodyPart)
        for frame in frames:
            data = write(frame)
            (self._parts if long else self._frames).append(data)
            self._waiting += len(data)
        self._bell.unpark()

    async def run(self, take: Callable[[bytes], None]) -> None:
        """Send, and hand over the bodies of frames as they arrive, until the connection is over; raises nothing."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write)
                nursery.start_soon(self._keep_alive)
                await self._read(take)
                nursery.cancel_scope.cancel()
        except* (trio.BrokenResourceError, trio.ClosedResourceError, OSError, BadFrame):
            pass
        finally:
            self.gone = True
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(self._stream)

    async def _read(self, take: Callable[[bytes], None]) -> None:
        buffer = FrameBuffer()
        while True:
            data = b""
            with trio.move_on_after(DEAD_S):
                data = bytes(await self._stream.receive_some(_READ_BYTES))
            if not data:
                return
            for body in buffer.feed(data):
                take(body)

    async def _write(self) -> None:
        while True:
            while not self._waiting:
                await self._bell.park()
            if self._waiting > MAX_WAITING_BYTES:
                raise trio.BrokenResourceError("it does not read")
            batch = [*self._frames]
            self._frames.clear()
            if self._parts:
                batch.append(self._parts.popleft())
            data = b"".join(batch)
            self._waiting -= len(data)
            await self._stream.send_all(data)

    async def _keep_alive(self) -> None:
        while True:
            await trio.sleep(KEEP_ALIVE_S)
            self.send(SignOfLife(0))
