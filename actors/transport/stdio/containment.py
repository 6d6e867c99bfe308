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
from functools import partial
from pathlib import Path

import trio

from actors.errors import SpawnFailed
from actors.kit import Conditions
from actors.transport.stdio.command import explain_exec
from actors.transport.stdio.descriptors import StartShare
from actors.transport.stdio.orphans import sweep
from actors.transport.stdio.sandbox.bubblewrap import Sandbox, trouble_of
from actors.transport.stdio.sandbox.places import put_into_sandbox

UMASK = 0o077
_POLL_S = 0.005
_REAP_S = 1.0
_SAID_BYTES = 4096
_SHIM = str(Path(__file__).with_name("kill_shim.py"))


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

    async def spawn(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str, sandbox: Sandbox | None = None
    ) -> Contained:
        """Start `argv`, whose program is an absolute path, or leave nothing running. Raises `SpawnFailed`.

        In a `sandbox`, `cwd` may be empty: then it works in a directory of its own.
        """
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
        conditions: Conditions | None = None,
        private: Sequence[Path] = (),
    ) -> None:
        """`descriptors`: the soft limit (RLIMIT_NOFILE) that servers get, 0 for ours; `conditions` see `StartShare`.

        `private`: what no server in a sandbox may see.
        """
        self._python = python
        self._start_s = start_s
        self._descriptors = descriptors
        self._share = StartShare(conditions or Conditions())
        self._private = tuple(map(str, private))

    async def spawn(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str, sandbox: Sandbox | None = None
    ) -> Contained:
        """See `GroupContainment.spawn`. The shim is given `start_s` seconds to report the server's pid."""
        try:
            async with self._share.start():
                if sandbox is None:
                    return await self._spawn(["--", *argv], env, cwd)
                prepare = partial(put_into_sandbox, argv, env, cwd, sandbox, self._private)
                argv, env = await trio.to_thread.run_sync(prepare)
                return await self._spawn(["--sandbox", *argv], env, "/")
        except OSError as error:
            raise explain_exec(argv[0], error) from error

    async def _spawn(self, words: Sequence[str], env: Mapping[str, str], cwd: str) -> Contained:
        """Start the program of the last words for the shim."""
        program = words[1]
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            shim = [self._python, "-I", "-S", _SHIM, str(theirs.fileno()), str(self._descriptors), *words]
            try:
                process = await _open(shim, program, env, cwd, own_session=False, fds=(theirs.fileno(),))
            except BaseException:
                ours.close()
                raise
        contained = _Shimmed(process, ours)
        try:
            with trio.move_on_after(self._start_s):
                await contained.wait_for_start(program)
                return contained
            raise SpawnFailed(f"{program} could not be started within {self._start_s:g} s")
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


def default_containment(
    descriptors: int = 0, conditions: Conditions | None = None, private: Sequence[Path] = ()
) -> Containment:
    """Return the strongest containment this platform has; the arguments are those of `ShimContainment`."""
    if sys.platform != "linux":
        return GroupContainment()
    return ShimContainment(descriptors=descriptors, conditions=conditions, private=private)
