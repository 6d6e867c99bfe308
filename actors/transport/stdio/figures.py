"""Memory and processor time of servers on this machine, read from /proc (Linux) in one pass. Nothing elsewhere.

A server leads a session of its own (see `containment`), so its figures are those of all processes in it. What a server
starts in yet another session is not counted. Memory is resident (RSS): what processes share counts for each of them.
Formats: proc(5). A pass takes some 10 us for each process of the machine, in a thread.
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

SAMPLE_S: Final = 3.0
"""At most so often the figures are taken, and only when somebody looks."""
_TICKS_PER_S: Final = 100
"""USER_HZ, the unit of `stat`: the same on every architecture that we run on."""
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_PROC: Final = "/proc"


class ProcessFigures(msgspec.Struct, frozen=True):
    """Of one server. `cpu_percent` is its part of one processor since the figures were taken before, or since it
    started: two busy processors are 200.
    """

    memory_bytes: int
    cpu_s: float
    cpu_percent: float


class SessionSums(msgspec.Struct):
    """The sums of a session; `born` is when its leader started, in ticks since the machine did, 0 without a leader."""

    memory_pages: int = 0
    cpu_ticks: int = 0
    born: int = 0


class Figures:
    """The figures of all servers, as they were when somebody looked last. `now` gives seconds since the machine
    started.
    """

    def __init__(self, now: Callable[[], float], proc: str = _PROC) -> None:
        self._now = now
        self._proc = proc
        self._turn = trio.Lock()
        self._taken_at: float | None = None
        self._sessions: Mapping[int, SessionSums] = {}
        self._figures: Mapping[int, ProcessFigures] = {}

    async def get(self) -> Mapping[int, ProcessFigures]:
        """Return the figures by the process id of each server, at most `SAMPLE_S` old. A checkpoint."""
        async with self._turn:
            now = self._now()
            if self._taken_at is None or now >= self._taken_at + SAMPLE_S:
                try:
                    sessions = await trio.to_thread.run_sync(read_sessions, self._proc)
                except (OSError, RuntimeError, MemoryError) as error:
                    if not isinstance(error, OSError) and not is_want(error):
                        raise
                    sessions = {}
                before_at, before = self._taken_at or 0.0, self._sessions
                self._figures = {
                    pid: _figures(session, before.get(pid), now, before_at) for pid, session in sessions.items()
                }
                self._taken_at, self._sessions = now, sessions
            return self._figures


def since_boot() -> float:
    """Return the seconds since the machine started, with those in which it slept; monotonic time where none tells."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


def read_sessions(proc: str = _PROC) -> dict[int, SessionSums]:
    """Return the sums of all sessions of the machine by their leaders. Blocks. Raises `OSError` without /proc."""
    sessions: dict[int, SessionSums] = {}
    with os.scandir(proc) as entries:
        for name in (entry.name for entry in entries if entry.name.isdigit()):
            with suppress(OSError, ValueError, IndexError):  # it has ended meanwhile
                _add(sessions, int(name), _read(f"{proc}/{name}/stat"))
    return sessions


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 4096)
    finally:
        os.close(fd)


def _add(sessions: dict[int, SessionSums], pid: int, stat: bytes) -> None:
    fields = stat.rpartition(b")")[2].split()  # the name before may have anything in it
    leader, ticks, born, pages = int(fields[3]), sum(map(int, fields[11:15])), int(fields[19]), int(fields[21])
    session = sessions.setdefault(leader, SessionSums())
    session.memory_pages += pages
    session.cpu_ticks += ticks
    if pid == leader:
        session.born = born


def _figures(session: SessionSums, before: SessionSums | None, now: float, before_at: float) -> ProcessFigures:
    since, ticks = session.born / _TICKS_PER_S, session.cpu_ticks
    if before is not None and before.born == session.born:
        since, ticks = before_at, session.cpu_ticks - before.cpu_ticks
    share = max(0, ticks) / _TICKS_PER_S / max(now - since, 1 / _TICKS_PER_S)
    return ProcessFigures(
        memory_bytes=session.memory_pages * _PAGE_BYTES,
        cpu_s=session.cpu_ticks / _TICKS_PER_S,
        cpu_percent=round(100 * share, 1),
    )
