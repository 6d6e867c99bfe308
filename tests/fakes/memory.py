"""A transport without a process: the server is an async function in the same program.

Held to the same contract as the process transport by one suite of tests. The pipes are bounded like real ones, so a
side that does not read blocks the other. The function gets the raw bytes, and what it writes is framed and filtered as
a process's output is. A bug in the function (an exception) is not an expected end: it leaves `connect`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import trio

from actors.errors import ServerExited
from actors.kit.nursery import background
from actors.protocol.wire.framing import LineSplitter
from actors.protocol.wire.peer import Outgoing
from actors.transport.base import Counters, Exit, Incoming, Work
from actors.transport.lines import messages_of, read_messages, write_lines, write_lines_at_once
from actors.transport.side_output import Asides

_PIPE_BYTES = 65536
_KILLED = 9


class _Pipe:
    """Bytes on their way, at most `_PIPE_BYTES` of them plus one write."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._closed = False
        self._changed = trio.lowlevel.ParkingLot()

    async def write(self, data: bytes) -> None:
        """Add bytes when there is room. Raises `trio.BrokenResourceError` once closed. A checkpoint."""
        await trio.lowlevel.checkpoint()
        while len(self._data) >= _PIPE_BYTES and not self._closed:
            await self._changed.park()
        if self._closed:
            raise trio.BrokenResourceError
        self._data += data
        self._changed.unpark_all()

    async def write_some(self, data: bytes | memoryview) -> int:
        """Add as many bytes as there is room for, wait for some; return how many. Raises as `write`.

        A checkpoint only if there is no room, as with a real pipe: whoever has little time writes all the same.
        """
        while len(self._data) >= _PIPE_BYTES and not self._closed:
            await self._changed.park()
        if self._closed:
            raise trio.BrokenResourceError
        part = bytes(data[: _PIPE_BYTES - len(self._data)])
        self._data += part
        self._changed.unpark_all()
        return len(part)

    def write_at_once(self, data: bytes) -> bool:
        """Add all of some bytes, or none; False if there is no room, or once closed."""
        if self._closed or len(self._data) + len(data) > _PIPE_BYTES:
            return False
        self._data += data
        self._changed.unpark_all()
        return True

    async def closed(self) -> None:
        await trio.lowlevel.checkpoint()
        while not self._closed:
            await self._changed.park()

    async def read(self) -> bytes:
        """Take all bytes, wait for some; empty once closed and read to the end. A checkpoint."""
        await trio.lowlevel.checkpoint()
        while not self._data and not self._closed:
            await self._changed.park()
        data = bytes(self._data)
        self._data.clear()
        self._changed.unpark_all()
        return data

    def close(self) -> None:
        self._closed = True
        self._changed.unpark_all()


class MemoryPeer:
    """The server's side: its stdin, stdout and stderr."""

    def __init__(self) -> None:
        self._stdin = _Pipe()
        self._stdout = _Pipe()
        self.asides = Asides()
        self.work = Work()
        """What a process would have done so far: set it to look busy."""

    async def read(self) -> bytes:
        return await self._stdin.read()

    async def write(self, data: bytes) -> None:
        await self._stdout.write(data)

    def log(self, text: str) -> None:
        """Write to stderr, which never blocks."""
        self.asides.stderr(text.encode(errors="surrogateescape"))

    def close_input(self) -> None:
        """Read no more: the client's next send fails."""
        self._stdin.close()

    def close_output(self) -> None:
        """Write no more: the client sees the end of the output, not the exit."""
        self._stdout.close()


Serve = Callable[[MemoryPeer], Awaitable[int]]
"""A server: runs until it returns its exit code. May be cancelled at any time, which is a kill."""


class MemoryTransport:
    """Runs `serve` for each incarnation."""

    kind = "stdio"

    def __init__(
        self,
        serve: Serve,
        *,
        max_line_bytes: int = 16 * 1024 * 1024,
        stop_s: float = 4.0,
        write_timeout_s: float = 10.0,
    ) -> None:
        self._serve = serve
        self._write_timeout_s = write_timeout_s
        self._max_line_bytes = max_line_bytes
        self._stop_s = stop_s

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[MemoryConnection]:
        peer = MemoryPeer()
        connection = MemoryConnection(peer, self._max_line_bytes, self._stop_s, self._write_timeout_s)
        async with background() as nursery:
            nursery.start_soon(connection._run, self._serve)
            try:
                yield connection
            finally:
                connection.kill()


class MemoryConnection:
    """One incarnation; see `Connection` for the contract of each method."""

    pid = None

    def __init__(self, peer: MemoryPeer, max_line_bytes: int, stop_s: float, write_timeout_s: float) -> None:
        self.counters = Counters()
        self.asides = peer.asides
        self._peer = peer
        self._splitter = LineSplitter(max_line_bytes)
        self._stop_s = stop_s
        self._write_timeout_s = write_timeout_s
        self._scope = trio.CancelScope()
        self._exit: Exit | None = None
        self._exited = trio.Event()
        self._asked = False

    async def send(self, messages: Sequence[Outgoing], left: Callable[[int], None]) -> bool:
        try:
            return await write_lines(messages, self._peer._stdin.write_some, left, self._write_timeout_s)
        except trio.BrokenResourceError:
            raise ServerExited("the server no longer reads its input") from None

    def send_at_once(self, messages: Sequence[Outgoing], left: Callable[[int], None]) -> bool:
        """Write lines if there is room for all of them."""
        return write_lines_at_once(messages, self._peer._stdin.write_at_once, left)

    async def wait_input_closed(self) -> None:
        """Wait until the server reads no more, or until its end once it was asked to end."""
        await self._peer._stdin.closed()
        if self._asked:
            await self._exited.wait()

    async def receive(self) -> Incoming:
        if self._splitter.endless:
            raise self._splitter.violation()
        while data := await self._peer._stdout.read():
            lines = await read_messages(data, self._splitter, self.counters, self.asides)
            if lines:
                return Incoming(lines)
        return Incoming(tuple(await messages_of(self._splitter.close(), self.counters, self.asides)))

    async def wait(self) -> Exit:
        await self._exited.wait()
        assert self._exit is not None
        return self._exit

    async def stop(self, *, term_s: float | None = None) -> None:
        """Close the server's input, wait up to `stop_s` or `term_s`, then cancel it."""
        self._asked = True
        self._peer.close_input()
        with trio.move_on_after(self._stop_s if term_s is None else term_s):
            await self._exited.wait()
        self._scope.cancel()
        await self._exited.wait()

    def kill(self) -> None:
        if self._exit is None:
            self._asked = True
            self._scope.cancel()

    async def work(self) -> Work | None:
        await trio.lowlevel.checkpoint()
        return self._peer.work

    async def install_log(self) -> str:
        await trio.lowlevel.checkpoint()
        return ""

    async def _run(self, serve: Serve) -> None:
        code: int | None = None
        try:
            with self._scope:
                code = await serve(self._peer)
        finally:
            self._peer.close_input()
            self._peer.close_output()
            self._exit = Exit(
                code=code,
                signal=_KILLED if code is None else None,
                last_stderr=self.asides.last_stderr(20),
                asked=self._asked,
            )
            self._exited.set()
