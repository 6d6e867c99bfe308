"""How the processes of one server are kept together, so that none of them outlives it or us.

A `Containment` starts a program and gives a `Contained`: its pipes, its pid, and ways to end all of it. Two of them:

- `ShimContainment` (Linux): each server runs below `kill_shim.py`, which removes the whole tree, daemonised
  grandchildren included, when the server ends, when it is asked to, and when this process dies in any way.
- `GroupContainment` (any POSIX system): own session, signals to its process group. What leaves the group escapes.

What is left of a server whose kill shim was itself killed comes to us, and we end it (`sweep`): only on Linux, and only
if this process asked to inherit orphans (`become_subreaper`); elsewhere such processes go to init.

Nothing here uses `preexec_fn`: trio starts processes in threads that retire, and what the kernel ties to the parent
(PR_SET_PDEATHSIG) is tied to that thread.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import trio

from actors.errors import SpawnFailed
from actors.transport.stdio.command import explain_exec
from actors.transport.stdio.resources.allotment import Allotment
from actors.transport.stdio.resources.groups import was_out_of_memory
from actors.transport.stdio.resources.room import Room
from actors.transport.stdio.sandbox import Sandbox, put_into_sandbox, trouble_of

_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37
OUT_OF_MEMORY: Final = "it used more memory than its limit, so the system killed it (max_memory_mib)"
_POLL_S: Final = 0.005
_REAP_S: Final = 1.0
GIVE_UP_S: Final = 2 * _REAP_S
_APPEAR_S: Final = 0.04
"""For what a killed shim has forked to get a session of its own, by which it is told from a living shim."""
_SAID_BYTES: Final = 4096
UMASK = 0o077
_SHIM = str(Path(__file__).with_name("kill_shim.py"))
ALL = Allotment()
"""As much as there is."""


def become_subreaper() -> bool:
    """Make this process the one that inherits orphans (Linux); return whether that worked.

    For the daemon's start, as it is about the whole process: if a kill shim is itself killed, what it held comes to
    us and is swept. A program that does this must not start processes in sessions of their own by other ways.
    """
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def sweep(group: int) -> bool:
    """Kill what lives in a dead shim's process group, 0 if that is not known, kill and reap what it left to us; was
    there anything?

    Servers and what they start live in other sessions than ours, living shims (whose children never come to us) in
    ours: so a child of ours in another session is an orphan. Without being a subreaper we cannot tell, and do nothing
    beyond the group. One look takes some ms on a busy machine, and is taken only after the death of a shim.
    """
    ourselves, session, inherits = os.getpid(), os.getsid(0), _is_subreaper()
    swept = False
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_bytes().rpartition(b")")[2].split(None, 4)
        except OSError:
            continue
        state, (parent, its_group, its_session) = fields[0], map(int, fields[1:4])
        pid = int(entry.parent.name)
        ours = inherits and parent == ourselves and its_session != session
        if ours or (group and its_group == group and state not in b"ZX"):  # a zombie of the group is init's to reap
            swept = True
            _end(pid, reap=ours)
    return swept


def _end(pid: int, *, reap: bool) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
    if reap:
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def _is_subreaper() -> bool:
    flag = ctypes.c_int(0)
    ctypes.CDLL(None).prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(flag), 0, 0, 0)
    return bool(flag.value)


def _signal_group(pid: int, number: int) -> None:
    """Signal a process group that may be gone, or have become another user's."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


class Contained:
    """The processes of one incarnation, as far as they stay in its process group: asked to end, killed, waited for."""

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


class GroupContainment:
    """Own session and process group: works everywhere, holds only what stays in the group."""

    def __init__(self, room: Room | None = None) -> None:
        self.room = room or Room()

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str,
        sandbox: Sandbox | None = None,
        allotment: Allotment = ALL,
    ) -> Contained:
        """Start `argv`, whose program is an absolute path, or leave nothing running. Raises `SpawnFailed`.

        In a `sandbox`, `cwd` may be empty: then it works in a directory of its own. Limits of `allotment` are watched
        here, or not enforced.
        """
        del allotment
        if sandbox is not None:
            raise SpawnFailed("it asks for a sandbox, which there is on Linux only", permanent=True)
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
        private: Sequence[Path] = (),
    ) -> None:
        """`descriptors`: the soft limit (RLIMIT_NOFILE) that servers get, 0 for ours; `room` is what starts need.

        `private`: what no server in a sandbox may see.
        """
        self._python = python
        self._start_s = start_s
        self._descriptors = descriptors
        self.room = room or Room()
        self._private = tuple(map(str, private))

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str,
        sandbox: Sandbox | None = None,
        allotment: Allotment = ALL,
    ) -> Contained:
        """See `GroupContainment.spawn`. The shim is given `start_s` seconds to report the server's pid.

        Its limits are those of `allotment`, in a control group where it may have one.
        """
        try:
            async with self.room.start(allotment.name):
                way = "--"
                if sandbox is not None:
                    prepare = partial(put_into_sandbox, argv, env, cwd, sandbox, self._private)
                    argv, env = await trio.to_thread.run_sync(prepare)
                    way, cwd = "--sandbox", "/"
                group = await trio.to_thread.run_sync(self.room.groups.make, allotment) if allotment.grouped else None
                try:
                    words = [*self._files(allotment), str(group or ""), way, *argv]
                    contained = await self._spawn(argv[0], words, env, cwd)
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

    async def _spawn(self, program: str, words: Sequence[str], env: Mapping[str, str], cwd: str) -> Contained:
        """Start a program; `words` are for the shim, and end with it and its arguments."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            shim = [self._python, "-I", "-S", _SHIM, str(theirs.fileno()), *words]
            try:
                process = await _open(shim, program, env, cwd, own_session=False, fds=(theirs.fileno(),))
            except BaseException:
                ours.close()
                raise
        contained = Shimmed(process, ours)
        try:
            with trio.move_on_after(self._start_s):
                await contained.wait_for_start(program)
                return contained
            raise SpawnFailed(f"{program} could not be started within {self._start_s:g} s")
        except BaseException:
            _close_pipes(process)
            with trio.move_on_after(GIVE_UP_S, shield=True):
                await contained.give_up()
            raise


def _close_pipes(process: trio.Process) -> None:
    for stream in (process.stdin, process.stdout, process.stderr):
        if isinstance(stream, trio.lowlevel.FdStream):
            stream.close()


Containment = ShimContainment | GroupContainment
"""One may be shared by all servers."""


def default_containment(descriptors: int = 0, room: Room | None = None, private: Sequence[Path] = ()) -> Containment:
    """Return the strongest containment this platform has; the arguments are those of `ShimContainment`."""
    if sys.platform != "linux":
        return GroupContainment(room)
    return ShimContainment(descriptors=descriptors, room=room, private=private)
