"""The stdio transport: one server as a child process, JSON-RPC lines over its pipes.

- The exit is the fact, not the end of a pipe: a grandchild may hold stdout open, and a server may close it and live on.
- One task sends, one task receives; both touch the pipe directly. In the background, for each process: one task drains
  stderr (a full pipe blocks the server), one waits for the exit.
- Every end is bounded: close stdin, `stop_eof_s`, SIGTERM and SIGCONT to the group, `stop_term_s`, SIGKILL to the whole
  tree, `reap_s`. (MCP 2025-11-25 basic/lifecycle "Shutdown"; MCP 2026-07-28 basic/transports/stdio.)
- What the processes of a server are held together by is `containment.py`'s business.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import trio

from actors.errors import ServerExited, SpawnFailed
from actors.kit.fairness.share import LinePace
from actors.kit.nursery import background
from actors.protocol.wire.framing import LineSplitter
from actors.protocol.wire.peer import Outgoing
from actors.transport.base import Counters, Exit, Incoming, Work
from actors.transport.lines import messages_of, read_messages, write_lines, write_lines_at_once
from actors.transport.mask import Mask
from actors.transport.side_output import Asides
from actors.transport.stdio.command import build_environment, explain_exec, no_thread, prepare
from actors.transport.stdio.contained import Contained
from actors.transport.stdio.containment import Containment, default_containment
from actors.transport.stdio.launch import Launch, ProcessLimits
from actors.transport.stdio.npm_log import install_failure
from actors.transport.stdio.pipes import CHUNK_BYTES, Input, ServerOutput
from actors.transport.stdio.resources.room import Running
from actors.transport.stdio.work import look

_TAIL_LINES = 20
_STDERR_END_S = 0.5
_STDERR_REST_S = 0.002
"""Nobody needs to be held up by what it says of itself: that is read on, and left out."""


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
