"""Messages on their way to a peer that may be slow: bounded, and it is known which of them left.

A peer that stops reading must cost a bounded amount of memory, and after its end it must be known of each call whether
any of it left: only what did not was certainly not executed.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Generic, TypeVar

import msgspec
import trio

T = TypeVar("T")


class Outbox(Generic[T]):
    """Messages on their way: many writers put, somebody takes some, hands them over and says which of them left.

    That is whoever has put them (`take_all`) where they are few and the peer takes them at once, else a task that
    waits for the peer (`wake`, `take`). Whoever has much to say asks for room first (`fits`), and is told by `finish`
    when to ask again; whoever just answers puts without asking, up to `max_bytes`.
    """

    def __init__(self, max_bytes: int, ahead_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._ahead_bytes = ahead_bytes
        self._waiting: deque[T] = deque()
        self._sizes: deque[int] = deque()  # of those that wait, and of those that were taken and did not leave
        self._leaving = 0
        self._wanted = False
        self._waiters = trio.lowlevel.ParkingLot()
        self.here = 0
        self.gone = 0

    def fits(self, size: int) -> bool:
        """Whether `size` bytes more should be put now: little is here (`ahead_bytes` with them), or nothing."""
        self._wanted = bool(self.here) and self.here + size > self._ahead_bytes
        return not self._wanted

    def put(self, message: T, size: int) -> bool:
        """Add a message of `size` bytes; False if it does not fit (it always fits into an empty outbox)."""
        if self.here and self.here + size > self._max_bytes:
            return False
        self._waiting.append(message)
        self._sizes.append(size)
        self.here += size
        return True

    def take_all(self, max_bytes: int) -> list[T]:
        """Take all that waits if that is all that is here, and of at most `max_bytes` together; else nothing."""
        if self.here > max_bytes or self._leaving or len(self._sizes) > len(self._waiting):
            return []
        messages = list(self._waiting)
        self._waiting.clear()
        return messages

    def put_back(self, messages: list[T]) -> None:
        self._waiting.extendleft(reversed(messages))

    def wake(self) -> None:
        self._waiters.unpark_all()

    async def take(self, max_bytes: int) -> list[T]:
        """Wait to be woken, and take some messages, at least one, of about `max_bytes` together. A checkpoint."""
        await trio.lowlevel.checkpoint()
        while not self._waiting:
            await self._waiters.park()
        taken: list[T] = []
        size = 0
        first = len(self._sizes) - len(self._waiting)
        while self._waiting and size < max_bytes:
            size += self._sizes[first + len(taken)]
            taken.append(self._waiting.popleft())
        return taken

    def mark_sent(self, count: int) -> None:
        """Note that of the messages that were taken `count` more left, or some of the bytes of the last of them."""
        for _ in range(count):
            self.here -= self._leaving
            self._leaving = self._sizes.popleft()
        self.gone += count

    def finish(self) -> bool:
        """Note that all that was taken left. Return, once, whether somebody was refused room and half is there."""
        self.here -= self._leaving
        self._leaving = 0
        if not self._wanted or self.here * 2 > self._ahead_bytes:
            return False
        self._wanted = False
        return True

    def mark(self) -> Mark:
        return Mark(self, self.gone + len(self._sizes))


class Mark(msgspec.Struct, frozen=True, eq=False):
    """A place in the row of an outbox's messages."""

    outbox: Outbox[Any]
    place: int

    @property
    def passed(self) -> bool:
        """Whether any byte of what was put there has left."""
        return self.outbox.gone > self.place
