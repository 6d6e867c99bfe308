"""The input of a process: our end of its stdin, written without waiting for more than there is room for."""

from __future__ import annotations

import os
import sys

import trio

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
