"""Answers on their way to the client of one WebSocket: a bounded queue that its makers wait for.

A client that reads, however slowly, gets everything: who makes answers waits for room, and so nothing more is read
from it. One that does not read is given up once nothing has left for a while although somebody waits for room.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable

import trio

LEAST_BYTES_PER_S = 64 * 1024
"""A long message that is under way has the time that it takes at this rate besides."""


class OutgoingQueue:
    """Messages for the client, which `write` sends. `stalled` is called when it does not read. `run` has to run."""

    def __init__(
        self,
        write: Callable[[bytes], Awaitable[None]],
        max_messages: int,
        max_bytes: int,
        stall_s: float,
        stalled: Callable[[], None],
    ) -> None:
        """`stall_s`: how long a full queue may stand still, in seconds."""
        self._write = write
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._stall_s = stall_s
        self._stalled = stalled
        self._messages: deque[bytes] = deque()
        self._size = 0
        self._sending = 0
        self._taken = 0
        self._room = trio.lowlevel.ParkingLot()
        self._queued = trio.lowlevel.ParkingLot()
        self._sent = trio.lowlevel.ParkingLot()  # another one: else each `tell` would wake `run` for nothing

    @property
    def _full(self) -> bool:
        return len(self._messages) >= self._max_messages or self._size >= self._max_bytes

    async def room(self) -> None:
        """Wait until there is room; one message of any size may be put then. A checkpoint if there is none."""
        while self._full:
            taken = self._taken
            with trio.move_on_after(self._stall_s + self._sending / LEAST_BYTES_PER_S) as waiting:
                await self._room.park()
            if waiting.cancelled_caught and self._taken == taken:
                self._stalled()
                await trio.sleep_forever()  # whoever gave the client up cancels us
        if self._room:
            self._room.unpark()  # if there is still room after ours, it is for the next one, else that one waits on

    def put(self, message: bytes) -> None:
        """Queue a message, by somebody who has waited for room."""
        self._messages.append(message)
        self._size += len(message)
        if self._queued:
            self._queued.unpark_all()

    def say(self, message: bytes) -> bool:
        """Queue a message that nobody waits for; False if there is no room for it. See `Voice.say`."""
        if self._full:
            return False
        self.put(message)
        return True

    async def send(self, message: bytes) -> None:
        """Wait for room and queue a message."""
        if self._full or self._room:
            await self.room()
        self.put(message)

    async def tell(self, message: bytes) -> None:
        """Send a small message that nobody waits for, after all others: at once, as there are none most of the time."""
        while self._messages or self._sending:
            await self._sent.park()
        await self._send(message)

    async def run(self) -> None:
        """Send what is queued, for ever."""
        while True:
            while not self._messages:
                await self._queued.park()
            message = self._messages.popleft()
            self._size -= len(message)
            self._taken += 1
            if self._room:
                self._room.unpark()
            await self._send(message)
            await trio.lowlevel.checkpoint()

    async def _send(self, message: bytes) -> None:
        self._sending += len(message)
        try:
            await self._write(message)
        finally:
            self._sending -= len(message)
            if self._sent:
                self._sent.unpark_all()

    async def wait_sent(self) -> None:
        """Wait until everything was sent. A checkpoint if there is something to wait for."""
        while self._messages or self._sending:
            await self._sent.park()
