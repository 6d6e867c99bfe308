"""How the processes of one server are kept together, so that none of them outlives it or us.

A `Containment` starts a program and gives a `Contained`: its pipes, its pid, and ways to end all of it. Two of them:

- `ShimContainment` (Linux): each server runs below `kill_shim.py`, which removes the whole tree, daemonised
  grandchildren included, when the server ends, when it is asked to, and when this process dies in any way.
- `GroupContainment` (any POSIX system): own session, signals to its process group. What leaves the group escapes.

Nothing here uses `preexec_fn`: trio starts processes in threads that retire, and what the kernel ties to the parent
(PR_SET_PDEATHSIG) is tied to that thread.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import trio

from actors.errors import SpawnFailed
from actors.transport.stdio.command import explain_exec
from actors.transport.stdio.contained import GIVE_UP_S, Contained, Shimmed
from actors.transport.stdio.resources.allotment import Allotment
from actors.transport.stdio.resources.room import Room
from actors.transport.stdio.sandbox.bubblewrap import Sandbox
from actors.transport.stdio.sandbox.places import put_into_sandbox

UMASK = 0o077
_SHIM = str(Path(__file__).with_name("kill_shim.py"))
ALL = Allotment()
"""As much as there is."""


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
