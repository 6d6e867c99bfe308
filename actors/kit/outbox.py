"""Bytes on their way to a pipe that may be slow: bounded, and it is known which of them left.

A sender that stops reading must cost a bounded amount of memory, and after its end it must be known of each call
whether a byte of it left: only what did not was certainly not executed.
"""

from __future__ import annotations

import trio


class Outbox:
    """Bytes on their way to a pipe: many writers put, one task takes all there is and says what it wrote.

    Whoever has much to say asks for room first (`fits`), and is told by `wrote` when to ask again; whoever just
    answers puts without asking, up to `max_bytes`.
    """

    def __init__(self, max_bytes: int, ahead_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._ahead_bytes = ahead_bytes
        self._parts: list[bytes] = []
        self._size = 0
        self._wanted = False
        self._waiters = trio.lowlevel.ParkingLot()
        self.end = 0
        self.written = 0

    def __len__(self) -> int:
        return self._size

    def fits(self, size: int) -> bool:
        """Whether `size` bytes more should be put now: little is unwritten (`ahead_bytes` with them), or nothing."""
        unwritten = self.end - self.written
        self._wanted = bool(unwritten) and unwritten + size > self._ahead_bytes
        return not self._wanted

    def put(self, data: bytes) -> bool:
        """Add bytes; False, and nothing added, if they do not fit (one message always fits into an empty outbox)."""
        if self._parts and self._size + len(data) > self._max_bytes:
            return False
        self._parts.append(data)
        self._size += len(data)
        self.end += len(data)
        self._waiters.unpark_all()
        return True

    async def take(self) -> bytes:
        """Wait for bytes and take them all. A checkpoint."""
        await trio.lowlevel.checkpoint()  # in which more is put, mostly: one write for many messages
        while not self._parts:
            await self._waiters.park()
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return data

    def wrote(self, size: int) -> bool:
        """Note that `size` more bytes left; return whether somebody waits for room, and half of it is there."""
        self.written += size
        if not self._wanted or (self.end - self.written) * 2 > self._ahead_bytes:
            return False
        self._wanted = False
        return True

    def mark(self) -> Mark:
        """Return the place of what will be put next."""
        return Mark(self, self.end)


class Mark:
    """A place in the stream of an outbox."""

    __slots__ = ("_outbox", "_place")

    def __init__(self, outbox: Outbox, place: int) -> None:
        self._outbox = outbox
        self._place = place

    @property
    def passed(self) -> bool:
        """Whether any byte behind it has left."""
        return self._outbox.written > self._place
