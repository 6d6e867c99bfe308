"""Our ends of the pipes of a process: written without waiting for more than there is room for, and read at a pace."""

from __future__ import annotations

import math
import os
import select
import sys
from contextlib import suppress
from typing import Final

import trio

from actors.kit.fairness.share import LinePace

CHUNK_BYTES: Final = 65536
"""What a pipe holds on Linux: more is never there to be read at once."""
FLOOD_BYTES: Final = 4096
"""Of one that floods so much is read at once: what it says costs others a moment now and then, and no long one."""
FLOOD_S: Final = 1.0
"""For so long after its last line too many somebody floods: it is told of once, and not of each pause."""
_IDLE_TICK_S = 0.05
_DRAIN_TICK_S = 0.01
_LOST = (OSError, ValueError, trio.ClosedResourceError, trio.BrokenResourceError)
"""Closed by the other side, or by ours, before or while we wait."""


class Input:
    """The writing end of a pipe. One task writes."""

    def __init__(self, stream: trio.lowlevel.FdStream) -> None:
        self._stream = stream

    async def write_some(self, data: bytes | memoryview) -> int:
        """Write what the pipe takes, at least one byte, and return how many; a cancelled call wrote nothing.

        What the pipe takes at once costs no turn of the loop: a checkpoint only if it is full.
        Raises `trio.BrokenResourceError` if nobody reads it, or we closed it.
        """
        try:
            while True:
                try:
                    return os.write(self._stream.fileno(), data)
                except BlockingIOError:
                    await trio.lowlevel.wait_writable(self._stream.fileno())
        except _LOST:
            raise trio.BrokenResourceError from None

    def write_at_once(self, data: bytes) -> bool:
        """Write at most `ATOMIC_BYTES`; False if the pipe does not take them now, or ever: then nothing was written."""
        try:
            os.write(self._stream.fileno(), data)
        except _LOST:
            return False
        return True

    async def unread(self) -> bool:
        """Wait until nobody reads it any more; False if that cannot be seen, or we closed it. A checkpoint.

        Linux reports the end of a pipe's readers (EPOLLERR) to whoever waits to read from its writing end.
        """
        if sys.platform != "linux":
            await trio.lowlevel.checkpoint()
            return False
        try:
            await trio.lowlevel.wait_readable(self._stream.fileno())
        except _LOST:
            return False
        return True

    def close(self) -> None:
        self._stream.close()


class ServerOutput:
    """The reading end of a pipe. Lines that come faster than `pace` has it wait there, which holds up who writes them.

    `rest_s` is the longest rest before a read, and `flood_bytes` how many are read at once then. `hurried` ends the
    rests: who is about to end may say all there is.
    """

    def __init__(
        self,
        stream: trio.lowlevel.FdStream,
        pace: LinePace,
        hurried: trio.Event,
        *,
        rest_s: float = math.inf,
        flood_bytes: int = FLOOD_BYTES,
    ) -> None:
        self._stream = stream
        self._pace = pace
        self._hurried = hurried
        self._rest_s = rest_s
        self._flood_bytes = flood_bytes
        self._flood_until = -math.inf
        self._reads = 0
        self._reading = False

    @property
    def floods(self) -> bool:
        """Whether more came than the pace allows, now or a moment ago."""
        return trio.current_time() < self._flood_until

    async def read(self) -> bytes:
        """Read what is there, empty at the end."""
        size = CHUNK_BYTES
        if (rest_s := self._pace.rest_s(trio.current_time())) > 0:
            size = self._flood_bytes
            with trio.move_on_after(min(rest_s, self._rest_s)):
                await self._hurried.wait()
        self._reading = True
        self._reads += 1
        try:
            # A server mostly answers later than it was asked: a read before the wait would find nothing.
            while (fd := self._stream.fileno()) >= 0:  # trio does not forget a wait for one that is closed
                await trio.lowlevel.wait_readable(fd)
                with suppress(BlockingIOError):
                    data = os.read(self._stream.fileno(), size)
                    self._count(data.count(b"\n"), trio.current_time())
                    return data
            return b""
        except _LOST:
            return b""
        finally:
            self._reading = False

    def _count(self, lines: int, now: float) -> None:
        self._pace.take(lines, now)
        if self._pace.rest_s(now) > 0:
            self._flood_until = now + FLOOD_S

    async def discard(self) -> None:
        """Read to the end for nobody."""
        with suppress(*_LOST):
            while await self._stream.receive_some(CHUNK_BYTES):
                pass

    async def wait_unattended(self) -> None:
        """Wait until nobody reads: two looks find nobody at it, and there was nobody in between."""
        seen = -1
        while self._reading or seen != self._reads:
            seen = self._reads
            await trio.sleep(_IDLE_TICK_S)

    async def wait_drained(self) -> None:
        """Wait until all that is in the pipe was read; somebody may still hold its other end."""
        look = select.poll()
        with suppress(*_LOST):
            look.register(self._stream.fileno(), select.POLLIN)
        while any(event & select.POLLIN for _, event in look.poll(0)):  # noqa: ASYNC110 - a reader has the one wait
            await trio.sleep(_DRAIN_TICK_S)

    def close(self) -> None:
        self._stream.close()
