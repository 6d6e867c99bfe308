"""What the processes below one of ours have done so far, read from /proc (Linux). Blocks for a millisecond or so.

Formats: proc(5) for `stat` and `io`; `task/TID/children` needs a kernel with CONFIG_PROC_CHILDREN, which nearly all
have. Processor time includes that of children that have ended; where `io` may not be read, it counts as nothing.

A server is *frozen* if whoever reads its input is: stopped by a signal or, as `cgroup.events` says, by the freezer of
its cgroup (Linux, admin-guide/cgroup-v2). That is the process that we started, or if that is a launcher (npx, uv run),
the only child that it left its input to. A debugger may have stopped any other process, and does not ask us.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import trio
from msgspec.structs import replace

from actors.kit import is_want
from actors.transport.base import Work

MAX_PROCESSES = 512
"""Beyond that many nothing more is looked at: they are busy enough."""
_TICKS_PER_S = 100
"""USER_HZ, the unit of `stat`: the same on every architecture that we run on."""
_PROC = Path("/proc")
_CGROUPS = Path("/sys/fs/cgroup")
_ACTIVE = frozenset({b"R", b"D"})
_STOPPED = frozenset({b"T"})
_STOPPED_OR_TRACED = _STOPPED | {b"t"}
MAX_FILES = 256
"""Of these of a process that may be the server of a launcher; its input is among the first."""
MAX_LAUNCHERS = 8
"""Launchers that start launchers: npx starts a shell, which starts what was installed."""

_TURN = trio.CapacityLimiter(1)
"""Two that read /proc at a time would only take Python's lock from one another."""


async def look(root: int, server: int) -> Work | None:
    """Return the work of a server and all below it, if anybody can tell; `root` may be its shim. A checkpoint."""
    try:
        work = await trio.to_thread.run_sync(work_of, root, server, limiter=_TURN)
    except RuntimeError as error:
        if not is_want(error):
            raise
        return None
    return work and replace(work, processes=work.processes - ({root} - {server}))


def work_of(root: int, server: int) -> Work | None:
    """Return the work of all processes below `root`, itself included; None where /proc does not tell."""
    below = _tree(root)
    if below is None:
        return None
    return Work(
        cpu_s=sum(map(_cpu_ticks, below)) / _TICKS_PER_S,
        moved_bytes=sum(map(_moved_bytes, below)),
        processes=frozenset(below),
        active=any(_state(pid) in _ACTIVE for pid in below),
        frozen=_is_frozen(server),
    )


def _is_frozen(server: int) -> bool:
    """Return whether what reads the input of a server is stopped."""
    reader, given, stopped = server, _input(server), _STOPPED_OR_TRACED
    for _ in range(MAX_LAUNCHERS):
        if _state(reader) in stopped or b"frozen 1" in _cgroup_events(reader):
            return True
        children: list[int] = []
        with suppress(OSError):
            children = _children(reader)
        if len(children) != 1 or not given.startswith("pipe:") or given not in _open_files(children[0]):
            return False
        reader, stopped = children[0], _STOPPED
    return False


def _input(pid: int) -> str:
    """Return what the standard input of a process is; empty if nobody can tell."""
    try:
        return str((_PROC / str(pid) / "fd" / "0").readlink())
    except OSError:
        return ""


def _open_files(pid: int) -> Iterator[str]:
    """Yield what a process has open. Some move their standard input, and put nothing in its place (SDK for Python)."""
    with suppress(OSError):
        for descriptor in itertools.islice((_PROC / str(pid) / "fd").iterdir(), MAX_FILES):
            with suppress(OSError):  # it is closed meanwhile
                yield str(descriptor.readlink())


def _cgroup_events(pid: int) -> bytes:
    path = next((line[3:] for line in _text(pid, "cgroup").splitlines() if line.startswith(b"0::")), b"")
    try:
        return (
            (_CGROUPS / path.decode(errors="surrogateescape").strip("/") / "cgroup.events").read_bytes()
            if path
            else b""
        )
    except OSError:
        return b""


def _tree(root: int) -> list[int] | None:
    """Return a process and all below it; None if the kernel does not tell."""
    try:
        tree = [root, *_children(root)]
    except OSError:
        return None
    for pid in itertools.islice(tree, 1, MAX_PROCESSES):  # it grows meanwhile
        with suppress(OSError):  # it has ended
            tree += _children(pid)
    return tree[:MAX_PROCESSES]


def _children(pid: int) -> list[int]:
    """Return the children of a process. Raises `OSError` if it is gone, or the kernel does not tell."""
    lists = [thread / "children" for thread in (_PROC / str(pid) / "task").iterdir()]
    return [int(child) for place in lists for child in place.read_bytes().split()]


def _state(pid: int) -> bytes:
    """Return the letter of what a process does; empty if it has ended."""
    return _text(pid, "stat").rpartition(b")")[2].strip()[:1]


def _cpu_ticks(pid: int) -> int:
    fields = _text(pid, "stat").rpartition(b")")[2].split()
    return sum(map(int, fields[11:15]))  # utime, stime, cutime, cstime


def _moved_bytes(pid: int) -> int:
    lines = _text(pid, "io").splitlines()
    return sum(int(line.split()[1]) for line in lines[:2])  # rchar, wchar


def _text(pid: int, name: str) -> bytes:
    try:
        return (_PROC / str(pid) / name).read_bytes()
    except OSError:
        return b""
