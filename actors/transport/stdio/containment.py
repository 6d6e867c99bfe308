"""How the processes of one server are kept together, so that none of them outlives it or us.

A `Containment` starts a program and gives a `Contained`: its pipes, its pid, and ways to end all of it. Two of them:

- `ShimContainment` (Linux): each server runs below `kill_shim.py`, which removes the whole tree, daemonised
  grandchildren included, when the server ends, when it is asked to, and when this process dies in any way.
- `GroupContainment` (any POSIX system): own session, signals to its process group. What leaves the group escapes.

Nothing here uses `preexec_fn`: trio starts processes in threads that retire, and what the kernel ties to the parent
(PR_SET_PDEATHSIG) is tied to that thread.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import trio

from actors.errors import SpawnFailed
from actors.transport.stdio.command import explain_exec
from actors.transport.stdio.orphans import sweep
from actors.transport.stdio.resources.allotment import Allotment
from actors.transport.stdio.resources.groups import was_out_of_memory
from actors.transport.stdio.resources.room import Room

UMASK = 0o077
_POLL_S = 0.005
_REAP_S = 1.0
_SHIM = str(Path(__file__).with_name("kill_shim.py"))
ALL = Allotment()
"""As much as there is."""
OUT_OF_MEMORY = "it used more memory than its limit, so the system killed it (max_memory_mib)"


async def _open(
    argv: Sequence[str], program: str, env: Mapping[str, str], cwd: str, *, own_session: bool, fds: Sequence[int] = ()
) -> trio.Process:
    """Start a process in a group of its own. It is not cancelled after the start: trio waits for its thread."""
    try:
        return await trio.lowlevel.open_process(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            cwd=cwd,
            umask=UMASK,
            start_new_session=own_session,
            process_group=None if own_session else 0,
            pass_fds=fds,
        )
    except OSError as error:
        raise explain_exec(program, error) from error


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

    async def wait(self) -> tuple[int | None, int | None]:
        """Wait until all of it is gone, in one task; return (exit code, None), (None, signal) or (None, None)."""
        code = await self.process.wait()
        _signal_group(self.pid, signal.SIGKILL)  # what the leader left behind keeps the group's id in use
        return (code, None) if code >= 0 else (None, -code)


class GroupContainment:
    """Own session and process group: works everywhere, holds only what stays in the group."""

    def __init__(self, room: Room | None = None) -> None:
        self.room = room or Room()

    async def spawn(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str, allotment: Allotment = ALL
    ) -> Contained:
        """Start `argv`, whose program is an absolute path, or leave nothing running. Raises `SpawnFailed`.

        Limits of `allotment` are watched here, or not enforced.
        """
        del allotment
        process = await _open(argv, argv[0], env, cwd, own_session=True)
        return Contained(process, process.pid)


class ShimContainment:
    """One `kill_shim.py` for each server: about 8 ms at the start and 4 MB of memory each."""

    def __init__(
        self,
        *,
        python: str = sys.executable,
        start_s: float = 10.0,
        descriptors: int = 0,
        room: Room | None = None,
    ) -> None:
        """`descriptors`: the soft limit (RLIMIT_NOFILE) that servers get, 0 for ours; `room` is what starts need."""
        self._python = python
        self._start_s = start_s
        self._descriptors = descriptors
        self.room = room or Room()

    async def spawn(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str, allotment: Allotment = ALL
    ) -> Contained:
        """See `GroupContainment.spawn`. The shim is given `start_s` seconds to report the server's pid.

        Its limits are those of `allotment`, in a control group where it may have one.
        """
        try:
            async with self.room.start(allotment.name):
                group = await trio.to_thread.run_sync(self.room.groups.make, allotment) if allotment.grouped else None
                try:
                    contained = await self._spawn(argv, env, cwd, [*self._files(allotment), str(group or "")])
                except BaseException:
                    if group is not None:
                        self.room.groups.remove(group)
                    raise
                contained.group = group
                return contained
        except OSError as error:
            raise explain_exec(argv[0], error) from error

    def _files(self, allotment: Allotment) -> list[str]:
        """Return the soft and the hard limit of open files, 0 for those that are inherited."""
        most = allotment.files or 0
        return [str(min(filter(None, (self._descriptors, most)), default=0)), str(most)]

    async def _spawn(self, argv: Sequence[str], env: Mapping[str, str], cwd: str, limits: Sequence[str]) -> Contained:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            shim = [self._python, "-I", "-S", _SHIM, str(theirs.fileno()), *limits, "--", *argv]
            try:
                process = await _open(shim, argv[0], env, cwd, own_session=False, fds=(theirs.fileno(),))
            except BaseException:
                ours.close()
                raise
        contained = _Shimmed(process, ours)
        try:
            with trio.move_on_after(self._start_s):
                await contained.wait_for_start(argv[0])
                return contained
            raise SpawnFailed(f"{argv[0]} could not be started within {self._start_s:g} s")
        except BaseException:
            contained.destroy()
            _close_pipes(process)
            with trio.move_on_after(_REAP_S, shield=True):
                await process.wait()
            raise


def _close_pipes(process: trio.Process) -> None:
    for stream in (process.stdin, process.stdout, process.stderr):
        if isinstance(stream, trio.lowlevel.FdStream):
            stream.close()


class _Shimmed(Contained):
    """Our side of a shim's control socket."""

    def __init__(self, process: trio.Process, control: socket.socket) -> None:
        super().__init__(process, 0)
        self._control = control
        self._received = b""

    async def wait_for_start(self, program: str) -> None:
        """Wait for the shim's first line. Raises `SpawnFailed`."""
        while b"\n" not in self._received and await self._receive():
            pass
        line, _, self._received = self._received.partition(b"\n")
        word, _, number = line.partition(b" ")
        if word == b"failed":
            raise explain_exec(program, OSError(int(number), os.strerror(int(number))))
        if word != b"pid":
            # Ours, before the server ran at all: mostly the system was out of something.
            raise SpawnFailed(f"the process that should start {program} died first", scarce=True)
        self.pid = int(number)

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

    async def _sweep(self) -> None:
        """The shim was killed. The server dies by the kernel's hand; see to its group and to what was left to us."""
        with trio.move_on_after(_REAP_S):
            while sweep(self.pid):  # noqa: ASYNC110 - others' processes: no event tells of them
                await trio.sleep(_POLL_S)


Containment = ShimContainment | GroupContainment
"""One may be shared by all servers."""


def default_containment(descriptors: int = 0, room: Room | None = None) -> Containment:
    """Return the strongest containment this platform has; the arguments are those of `ShimContainment`."""
    if sys.platform != "linux":
        return GroupContainment(room)
    return ShimContainment(descriptors=descriptors, room=room)
