"""The pipes of the program that started us: lines of its messages, and lines for it (MCP, "stdio").

Rules of this file:
- Their modes are left as they are: a pipe is shared with whoever made it, and a terminal with the shell. So nothing is
  read or written before the kernel says that this waits for nothing.
- A file that cannot be waited for (a regular one, /dev/null) never waits.
- Whoever does not read has a deadline.
"""

from __future__ import annotations

import fcntl
import os
import select
import stat
import sys
import termios
from collections.abc import AsyncIterator
from typing import Final

import trio

from actors.protocol.wire.framing import Line, LineSplitter, Pieces, one_line

_READ_BYTES: Final = 64 * 1024
_CHUNK_BYTES: Final = select.PIPE_BUF
"""What a pipe or a socket takes for certain where it takes anything (POSIX, `write`): 4,096 bytes on Linux."""
_PATIENCE_S: Final = 30.0
"""For a client to read something of what waits for it."""


SETTLE_S: Final = 2.0
"""For a client to take what was said before an answer; one that takes longer is not delayed by that."""
_LOOK_S: Final = 0.001
_UNREAD: Final = {stat.S_IFIFO: termios.FIONREAD, stat.S_IFSOCK: termios.TIOCOUTQ}
"""How Linux is asked for the bytes that the other side has not taken (pipe(7), unix(7))."""


class Unread(Exception):
    """The client reads nothing, or is gone; the text says which."""


async def lines(fd: int, max_line_bytes: int) -> AsyncIterator[Line]:
    """Yield the lines of a file descriptor until its end. Raises `ProtocolViolation` for one that does not end."""
    splitter = LineSplitter(max_line_bytes, long_bytes=2 * max_line_bytes)
    while data := await _read(fd):
        for line in splitter.feed(data):
            assert not isinstance(line, Pieces)
            yield line
        if splitter.endless:
            raise splitter.violation()


async def _read(fd: int) -> bytes:
    while True:
        try:
            await trio.lowlevel.wait_readable(fd)
        except PermissionError:  # epoll(7) takes only what can be waited for
            await trio.lowlevel.checkpoint()
        try:
            return os.read(fd, _READ_BYTES)
        except BlockingIOError:
            continue
        except OSError:  # the terminal is gone
            return b""


class Output:
    """Lines for the client, each written whole, one after the other."""

    def __init__(self, fd: int, patience_s: float = _PATIENCE_S) -> None:
        self._fd = fd
        self._patience_s = patience_s
        self._writing = trio.Lock()
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)
        self._unread = _UNREAD.get(stat.S_IFMT(os.fstat(fd).st_mode))

    async def write(self, message: bytes) -> None:
        """Write one message. What the pipe takes at once is waited for by nobody. Raises `Unread`."""
        async with self._writing:
            rest = memoryview(one_line(message) + b"\n")
            while rest:
                rest = rest[await self._write_some(rest[:_CHUNK_BYTES]) :]

    async def _write_some(self, data: memoryview) -> int:
        if not self._poll.poll(0):
            with trio.move_on_after(self._patience_s) as patience:
                await trio.lowlevel.wait_writable(self._fd)
            if patience.cancelled_caught:
                raise Unread(f"the client has read nothing for {self._patience_s:g} s")
        try:
            return os.write(self._fd, data)
        except BlockingIOError:
            await trio.lowlevel.checkpoint()
            return 0
        except OSError:
            raise Unread("the client has closed its end") from None

    async def settle(self) -> None:
        """Wait until the client has taken what was written, for a while.

        The official TypeScript clients act on notes a turn later than on an answer: of progress, or a log message, that
        comes in one piece with the answer to its request they tell nothing.
        """
        with trio.move_on_after(SETTLE_S):
            while self._unread and self._count_unread(self._unread):  # noqa: ASYNC110 - nothing tells of it
                await trio.sleep(_LOOK_S)

    def _count_unread(self, how: int) -> int:
        try:
            return int.from_bytes(fcntl.ioctl(self._fd, how, bytes(4)), sys.byteorder)
        except OSError:
            return 0
