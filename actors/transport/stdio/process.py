"""The stdio transport: one server as a child process, JSON-RPC lines over its pipes.

- The exit is the fact, not the end of a pipe: a grandchild may hold stdout open, and a server may close it and live on.
- One task sends, one task receives; both touch the pipe directly. In the background, for each process: one task drains
  stderr (a full pipe blocks the server), one waits for the exit.
- Every end is bounded: close stdin, `stop_eof_s`, SIGTERM and SIGCONT to the group, `stop_term_s`, SIGKILL to the whole
  tree, `reap_s`. (MCP 2025-11-25 basic/lifecycle "Shutdown"; MCP 2026-07-28 basic/transports/stdio.)
- What the processes of a server are held together by is `containment.py`'s business.
"""

from __future__ import annotations

import math
import os
import select
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

import trio

from actors.errors import ServerExited, SpawnFailed
from actors.kit.fairness.share import LinePace
from actors.kit.nursery import background
from actors.protocol.wire.framing import LineSplitter
from actors.protocol.wire.peer import Outgoing
from actors.transport.base import Counters, Exit, Incoming, Work
from actors.transport.lines import messages_of, read_messages, write_lines, write_lines_at_once
from actors.transport.redaction import Mask
from actors.transport.side_output import Asides
from actors.transport.stdio.command import Launch, ProcessLimits, build_environment, explain_exec, no_thread, prepare
from actors.transport.stdio.containment import Contained, Containment, default_containment
from actors.transport.stdio.installer import install_failure
from actors.transport.stdio.resources.room import Running
from actors.transport.stdio.work import look

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
_TAIL_LINES = 20
_STDERR_END_S = 0.5
_STDERR_REST_S = 0.002
"""Nobody needs to be held up by what it says of itself: that is read on, and left out."""


class Input:
    """The writing end of a pipe, which waits for no more than there is room for. One task writes."""

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


class ProcessTransport:
    """Starts a server as a child process. One `connect` is one incarnation."""

    kind = "stdio"

    def __init__(
        self,
        launch: Launch,
        limits: ProcessLimits | None = None,
        *,
        containment: Containment | None = None,
        name: str = "",
    ) -> None:
        """`name`: what the launch is called, for what is known of it."""
        self.launch = launch
        self.limits = limits or ProcessLimits()
        self._allotment = self.limits.allotment(name)
        self._containment = containment or default_containment()
        self._mask = Mask(launch.env, launch.args)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[ProcessConnection]:
        """Start the server, and kill what is left of it at the end of the block: shielded, within `reap_s`.

        Entering raises `SpawnFailed`: the program was executed when it does not.
        """
        contained = await self._spawn()
        connection = ProcessConnection(contained, self.limits, self._mask, self.launch)
        running = Running(allotment=self._allotment, group=contained.group, end=connection.end)
        try:
            with self._containment.room.keep(contained.pid, running):
                async with background() as nursery:
                    nursery.start_soon(connection._run)
                    try:
                        yield connection
                    finally:
                        with trio.move_on_after(2 * self.limits.reap_s, shield=True):
                            await connection._close()
                        connection._background.cancel()
        finally:
            connection._release()
            if contained.group is not None:
                self._containment.room.groups.remove(contained.group)

    async def _spawn(self) -> Contained:
        """Start the program. No secret is in the message of a `SpawnFailed`, though a path or a name may hold one."""
        try:
            argv, env, cwd = await trio.to_thread.run_sync(self._resolve)
            return await self._containment.spawn(
                argv, env=env, cwd=cwd, sandbox=self.launch.sandbox, allotment=self._allotment
            )
        except SpawnFailed as error:
            message, detail = self._mask(error.message), self._mask(error.detail)
            raise SpawnFailed(
                message, permanent=error.permanent, scarce=error.scarce, detail=detail, hint=error.hint
            ) from None
        except OSError as error:
            raise explain_exec(self._mask(self.launch.command), error) from error
        except RuntimeError as error:
            raise no_thread(error) from error

    def _resolve(self) -> tuple[list[str], dict[str, str], str]:
        return prepare(self.launch, os.environ)


class ProcessConnection:
    """One incarnation; see `Connection` for the contract of each method."""

    def __init__(self, contained: Contained, limits: ProcessLimits, mask: Mask, launch: Launch) -> None:
        self.counters = Counters()
        self._contained = contained
        self._limits = limits
        self._stdin = Input(_fd_stream(contained.process.stdin))
        self._ending = trio.Event()
        per_s = limits.max_lines_per_s
        self._stdout = ServerOutput(_fd_stream(contained.process.stdout), LinePace(per_s, per_s), self._ending)
        self._stderr = ServerOutput(
            _fd_stream(contained.process.stderr),
            LinePace(per_s, per_s),
            self._ending,
            rest_s=_STDERR_REST_S,
            flood_bytes=CHUNK_BYTES,
        )
        self._splitter = LineSplitter(limits.max_line_bytes)
        self.asides = Asides(mask)
        self._launch = launch
        self._mask = mask
        self._background = trio.CancelScope(shield=True)
        self._exit: Exit | None = None
        self._exited = trio.Event()
        self._stderr_over = trio.Event()
        self._stopping = False
        self._asked = False
        self._taken_over = False
        self._excess = ""

    @property
    def pid(self) -> int | None:
        """The server's process id (not its shim's), which is also its process group."""
        return self._contained.pid

    async def send(self, messages: Sequence[Outgoing], left: Callable[[int], None]) -> bool:
        try:
            return await write_lines(messages, self._stdin.write_some, left, self._limits.write_timeout_s)
        except trio.BrokenResourceError:
            raise ServerExited("the server no longer reads its input") from None

    def send_at_once(self, messages: Sequence[Outgoing], left: Callable[[int], None]) -> bool:
        return write_lines_at_once(messages, self._stdin.write_at_once, left)

    async def wait_input_closed(self) -> None:
        """Wait until the last process that could read the input has closed it, or until the exit."""
        if not await self._stdin.unread():
            await self._exited.wait()

    async def receive(self) -> Incoming:
        """Return all lines of one read, at least one, or none at the end of the output."""
        while not self._taken_over:
            if self._splitter.endless:
                raise self._splitter.violation()
            data = await self._stdout.read()
            if not data:
                return Incoming(tuple(await messages_of(self._splitter.close(), self.counters, self.asides)))
            lines = await read_messages(data, self._splitter, self.counters, self.asides)
            if lines:
                return Incoming(lines)
        await self._exited.wait()
        return Incoming()

    async def wait(self) -> Exit:
        await self._exited.wait()
        assert self._exit is not None
        return self._exit

    async def stop(self, *, term_s: float | None = None) -> None:
        self._asked = True
        if self._stopping:
            await self._exited.wait()
            return
        self._stopping = True
        self._ending.set()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._drain_stdout)
            await self._stop_in_steps(term_s)
            nursery.cancel_scope.cancel()

    def kill(self) -> None:
        self._asked = True
        if self._exit is None:
            self._contained.kill()

    def end(self, why: str) -> None:
        """Kill everything, as it took too much: that is its own fault, and `why` is how it ended."""
        if self._exit is None:
            self._excess = why
            self._contained.kill()

    async def install_log(self) -> str:
        launch = self._launch
        return self._mask(await install_failure(launch.command, launch.args, build_environment(launch.env, os.environ)))

    async def work(self) -> Work | None:
        return await look(self._contained.process.pid, self._contained.pid)

    async def _stop_in_steps(self, term_s: float | None) -> None:
        limits = self._limits
        self._stdin.close()
        for grace_s, next_step in (
            (limits.stop_eof_s if term_s is None else 0.0, self._contained.terminate),
            (limits.stop_term_s if term_s is None else term_s, self._contained.kill),
            (limits.reap_s, self._contained.destroy),
        ):
            with trio.move_on_after(grace_s):
                await self._exited.wait()
                return
            next_step()

    async def _drain_stdout(self) -> None:
        """Keep a stopping server from blocking on a full pipe, once nobody reads: its last words may be answers."""
        await self._stdout.wait_unattended()
        self._taken_over = True
        await self._stdout.discard()

    async def _run(self) -> None:
        """The background of one process, shielded: it must outlive a cancelled block to see the exit."""
        with self._background:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._drain_stderr)
                nursery.start_soon(self._watch, nursery)

    async def _drain_stderr(self) -> None:
        while data := await self._stderr.read():
            self.asides.stderr(data, told=not self._stderr.floods)
        self._stderr_over.set()

    async def _watch(self, nursery: trio.Nursery) -> None:
        """Wait for the exit and publish it.

        Once the server has ended nobody answers any more, and what it has answered is in the pipe. What it started may
        hold the other end of that, and take seconds to die: calls in flight do not wait for that.
        """
        await self._contained.wait_ended()
        self._ending.set()
        nursery.start_soon(self._end_output)
        code, number = await self._contained.wait()
        with trio.move_on_after(_STDERR_END_S):
            await self._stderr_over.wait()
        self._exit = Exit(
            code=code,
            signal=number,
            last_stderr=self.asides.last_stderr(_TAIL_LINES),
            asked=self._asked,
            cause=self._excess or self._contained.cause,
            denial=self._launch.denial,
        )
        self._exited.set()

    async def _end_output(self) -> None:
        await self._stdout.wait_drained()
        self._stdout.close()

    async def _close(self) -> None:
        """Kill what is left and see it die, within twice `reap_s`."""
        for step in self._contained.kill, self._contained.destroy:
            if not self._exited.is_set():
                step()
                with trio.move_on_after(self._limits.reap_s):
                    await self._exited.wait()

    def _release(self) -> None:
        """Free the descriptors; nothing of it waits."""
        self._contained.destroy()
        for stream in (self._stdin, self._stdout, self._stderr):
            stream.close()


def _fd_stream(stream: object) -> trio.lowlevel.FdStream:
    assert isinstance(stream, trio.lowlevel.FdStream), "a process is opened with three pipes"
    return stream
