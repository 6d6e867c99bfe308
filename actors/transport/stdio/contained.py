"""The processes of one incarnation, as far as its containment holds them: asked to end, killed, waited for."""

from __future__ import annotations

import os
import signal
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

import trio

from actors.errors import SpawnFailed
from actors.transport.stdio.command import explain_exec
from actors.transport.stdio.orphans import sweep
from actors.transport.stdio.resources.groups import was_out_of_memory
from actors.transport.stdio.sandbox.bubblewrap import trouble_of

OUT_OF_MEMORY: Final = "it used more memory than its limit, so the system killed it (max_memory_mib)"
_POLL_S: Final = 0.005
_REAP_S: Final = 1.0
GIVE_UP_S: Final = 2 * _REAP_S
_APPEAR_S: Final = 0.04
"""For what a killed shim has forked to get a session of its own, by which it is told from a living shim."""
_SAID_BYTES: Final = 4096


def _signal_group(pid: int, number: int) -> None:
    """Signal a process group that may be gone, or have become another user's."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


class Contained:
    """The processes of one incarnation, as far as they stay in the process group of the server."""

    def __init__(self, process: trio.Process, pid: int) -> None:
        self.process = process
        """What we started: owns the three pipes. Its pid may be a helper's."""
        self.pid = pid
        """The server's own process id, which is also its process group and session."""
        self.group: Path | None = None
        """Its control group, if it has one."""

    @property
    def cause(self) -> str:
        """Why all of it ended, where its end alone does not say so; empty otherwise. Blocks for a moment."""
        return OUT_OF_MEMORY if self.group is not None and was_out_of_memory(self.group) else ""

    def terminate(self) -> None:
        """Ask the server's group to end: SIGTERM, then SIGCONT in case it is stopped."""
        if self.process.returncode is None:
            _signal_group(self.pid, signal.SIGTERM)
            _signal_group(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """Kill everything, without waiting."""
        if self.process.returncode is None:
            _signal_group(self.pid, signal.SIGKILL)

    def destroy(self) -> None:
        """Kill everything with all means, also if a helper does not answer; frees what `kill` needed."""
        self.kill()

    async def wait_ended(self) -> None:
        """Wait until the server itself has ended, in the task that calls `wait` then: others of it may be left."""
        await self.process.wait()

    async def wait(self) -> tuple[int | None, int | None]:
        """Wait until all of it is gone, in one task; return (exit code, None), (None, signal) or (None, None)."""
        code = await self.process.wait()
        _signal_group(self.pid, signal.SIGKILL)  # what the leader left behind keeps the group's id in use
        return (code, None) if code >= 0 else (None, -code)


class Shimmed(Contained):
    """Our side of a shim's control socket."""

    def __init__(self, process: trio.Process, control: socket.socket) -> None:
        super().__init__(process, 0)
        self._control = control
        self._received = b""
        self._has_reported = False

    async def wait_for_start(self, program: str) -> None:
        """Wait for the shim's first line. Raises `SpawnFailed`."""
        while b"\n" not in self._received and await self._receive():
            pass
        line, end, self._received = self._received.partition(b"\n")
        self._has_reported = bool(end)
        word, _, number = line.partition(b" ")
        if word == b"failed":
            raise explain_exec(program, OSError(int(number), os.strerror(int(number))))
        if word == b"refused":
            trouble = trouble_of(self._stderr_text())
            reason = f"its sandbox could not be made: {trouble.reason}"
            raise SpawnFailed(reason, permanent=not trouble.scarce, scarce=trouble.scarce, hint=trouble.hint)
        if word != b"pid":
            # Ours, before the server ran at all: mostly the system was out of something.
            raise SpawnFailed(f"the process that should start {program} died first", scarce=True)
        self.pid = int(number)

    def _stderr_text(self) -> str:
        """Return the beginning of what is in the pipe of stderr."""
        stream = self.process.stderr
        if not isinstance(stream, trio.lowlevel.FdStream):
            return ""
        try:
            return os.read(stream.fileno(), _SAID_BYTES).decode(errors="replace")
        except OSError:
            return ""

    def terminate(self) -> None:
        self._ask(b"T")

    def kill(self) -> None:
        self._ask(b"K")

    def destroy(self) -> None:
        """The server dies with the shim; its group is still ours to name while the shim is not reaped."""
        self._close_control()
        if self.process.returncode is None:
            self.process.kill()
            if self.pid:
                _signal_group(self.pid, signal.SIGKILL)

    async def give_up(self) -> None:
        """End a start, within `GIVE_UP_S` about.

        A shim that is killed between its fork and its first line leaves us what it has begun.
        """
        self.destroy()
        with trio.move_on_after(_REAP_S):
            await self.process.wait()
        if not self._has_reported:
            await self._sweep(_APPEAR_S)

    async def wait_ended(self) -> None:
        while b"\n" not in self._received and await self._receive():
            pass

    async def wait(self) -> tuple[int | None, int | None]:
        while await self._receive():
            pass
        await self.process.wait()
        self._close_control()
        word, _, number = self._received.partition(b" ")
        if word == b"exit":
            return int(number), None
        if word == b"signal":
            return None, int(number)
        await self._sweep()
        return None, signal.SIGKILL

    def _close_control(self) -> None:
        if self._control.fileno() >= 0:
            trio.lowlevel.notify_closing(self._control)
            self._control.close()

    def _ask(self, request: bytes) -> None:
        """Best effort: a shim that is gone, or was asked a hundred times without looking, is not asked again."""
        with suppress(OSError):
            self._control.send(request)

    async def _receive(self) -> bool:
        """Wait for more of the shim's lines; False at the end, which a reset is too."""
        try:
            await trio.lowlevel.wait_readable(self._control)
            data = self._control.recv(256)
        except BlockingIOError:
            return True
        except (OSError, ValueError, trio.ClosedResourceError):  # closed by `destroy`, before or while we waited
            return False
        self._received += data
        return bool(data)

    async def _sweep(self, least_s: float = 0.0) -> None:
        """The shim was killed. The server dies by the kernel's hand; see to its group and to what was left to us."""
        until = trio.current_time() + least_s
        with trio.move_on_after(_REAP_S):
            while sweep(self.pid) or trio.current_time() < until:  # noqa: ASYNC110 - no event tells of others' processes
                await trio.sleep(_POLL_S)
