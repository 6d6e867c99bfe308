"""Memory and processor time of servers on this machine, read from /proc (Linux) in one pass. Nothing elsewhere.

- The figures of a server are those of all processes below its shim, also of those that made themselves daemons; or
  below itself, where there is no shim.
- Memory is what each process has for itself (resident without what can be shared), and once the largest part that can
  be shared: ten processes of one program have its text once. Pages that are shared since a fork count for each.
- Formats: proc(5). A pass takes some 10 us for each process of the machine, twice that for each of ours, in a thread.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

import msgspec
import trio

from actors.kit import is_want
from actors.transport.stdio.resources.allotment import ProcessFigures

SAMPLE_S: Final = 3.0
"""At most so often the figures are taken."""
_TICKS_PER_S: Final = 100
"""USER_HZ, the unit of `stat`: the same on every architecture that we run on."""
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_PROC: Final = "/proc"


class TreeSums(msgspec.Struct):
    """The sums of a tree of processes; `born` is when its server started, in ticks since the machine did."""

    private_pages: int = 0
    shared_pages: int = 0
    cpu_ticks: int = 0
    processes: int = 0
    born: int = 0


class _Process(msgspec.Struct, frozen=True):
    parent: int
    session: int
    cpu_ticks: int
    born: int
    pages: int


class Figures:
    """The figures of all servers below the process `top`, this one by default, as they were when they were taken last.

    `now` gives seconds since the machine started.
    """

    def __init__(self, now: Callable[[], float], proc: str = _PROC, top: int = 0) -> None:
        self._now = now
        self._proc = proc
        self._top = top or os.getpid()
        self._turn = trio.Lock()
        self._taken_at: float | None = None
        self._trees: Mapping[int, TreeSums] = {}
        self._figures: Mapping[int, ProcessFigures] = {}

    async def get(self) -> Mapping[int, ProcessFigures]:
        """Return the figures by the process id of each server, at most `SAMPLE_S` old. A checkpoint."""
        async with self._turn:
            now = self._now()
            if self._taken_at is None or now >= self._taken_at + SAMPLE_S:
                try:
                    trees = await trio.to_thread.run_sync(read_trees, self._proc, self._top)
                except (OSError, RuntimeError, MemoryError) as error:
                    if not isinstance(error, OSError) and not is_want(error):
                        raise
                    trees = {}
                before_at, before = self._taken_at or 0.0, self._trees
                self._figures = {pid: _figures(tree, before.get(pid), now, before_at) for pid, tree in trees.items()}
                self._taken_at, self._trees = now, trees
            return self._figures


def since_boot() -> float:
    """Return the seconds since the machine started, with those in which it slept; monotonic time where none tells."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


def read_trees(proc: str, top: int) -> dict[int, TreeSums]:
    """Return the sums of each tree right below `top`, by every process in it that leads a session: its server does.

    Blocks. Raises `OSError` without /proc.
    """
    processes = _processes(proc)
    roots: dict[int, int] = {top: 0}
    sums: dict[int, TreeSums] = {}
    for pid, process in processes.items():
        root = _root(pid, top, processes, roots)
        if not root or (pid == root and process.session != pid):  # not of ours, or a shim
            continue
        _add(sums.setdefault(root, TreeSums()), process, _parts(f"{proc}/{pid}/statm", process.pages))
    return {
        pid: msgspec.structs.replace(sums[roots[pid]], born=process.born)
        for pid, process in processes.items()
        if process.session == pid and roots[pid] in sums
    }


def _processes(proc: str) -> dict[int, _Process]:
    processes: dict[int, _Process] = {}
    with os.scandir(proc) as entries:
        for name in (entry.name for entry in entries if entry.name.isdigit()):
            with suppress(OSError, ValueError, IndexError):  # it has ended meanwhile
                fields = _read(f"{proc}/{name}/stat").rpartition(b")")[2].split()  # the name may have anything in it
                processes[int(name)] = _Process(
                    int(fields[1]), int(fields[3]), sum(map(int, fields[11:15])), int(fields[19]), int(fields[21])
                )
    return processes


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 4096)
    finally:
        os.close(fd)


def _root(pid: int, top: int, processes: Mapping[int, _Process], roots: dict[int, int]) -> int:
    """Return the process right below `top` that this one comes from, 0 if there is none; `roots` has who is known."""
    way: list[int] = []
    while pid not in roots and pid in processes and len(way) <= len(processes):  # what is read bit by bit may be a ring
        way.append(pid)
        pid = processes[pid].parent
    root = way[-1] if way and pid == top else roots.get(pid, 0)
    roots.update(dict.fromkeys(way, root))
    return root


def _parts(statm: str, pages: int) -> tuple[int, int]:
    """Return how many resident pages a process has for itself, and how many that can be shared."""
    with suppress(OSError, ValueError, IndexError):
        fields = _read(statm).split()
        resident, shared = int(fields[1]), int(fields[2])
        return max(0, resident - shared), shared
    return pages, 0


def _add(tree: TreeSums, process: _Process, parts: tuple[int, int]) -> None:
    private, shared = parts
    tree.private_pages += private
    tree.shared_pages = max(tree.shared_pages, shared)
    tree.cpu_ticks += process.cpu_ticks
    tree.processes += 1


def _figures(tree: TreeSums, before: TreeSums | None, now: float, before_at: float) -> ProcessFigures:
    since, ticks = tree.born / _TICKS_PER_S, tree.cpu_ticks
    if before is not None and before.born == tree.born:
        since, ticks = before_at, tree.cpu_ticks - before.cpu_ticks
    share = max(0, ticks) / _TICKS_PER_S / max(now - since, 1 / _TICKS_PER_S)
    return ProcessFigures(
        memory_bytes=(tree.private_pages + tree.shared_pages) * _PAGE_BYTES,
        cpu_s=tree.cpu_ticks / _TICKS_PER_S,
        cpu_percent=round(100 * share, 1),
        processes=tree.processes,
    )
