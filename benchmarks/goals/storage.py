"""G16: a disk that is full, a database that is locked or damaged, and `kill -9` while much is written.

A full disk: the daemon may write no file (RLIMIT_FSIZE), as the kernel tells it by EFBIG instead of ENOSPC.
"""

from __future__ import annotations

import resource
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Final

import trio

from benchmarks.goals.calls import Calls
from benchmarks.goals.faulty import HEALTHY, faulty_daemon, unharmed
from benchmarks.goals.figure import Figure, count
from benchmarks.running import Running

PER_S: Final = 50.0
AUDITED: Final = {"audit_calls": True}
"""So that each call writes."""
OTHER: Final = "other"
PATIENCE_S: Final = 30.0
LOOK_S: Final = 0.1
BURST_S: Final = 0.3


def measure(directory: Path, full: bool) -> Iterator[Figure]:
    """Ten seconds of each want, and 100 kills; half a second of each and one kill in the small form."""
    seconds, kills = (10.0, 100) if full else (0.5, 1)
    wants = directory / "wants"
    wants.mkdir()
    with faulty_daemon(wants, [OTHER], {}, **AUDITED) as running:
        calls = Calls(running.port, [HEALTHY, OTHER], PER_S)
        trio.run(_suffer, calls, running, wants / "data", seconds)
        yield from unharmed(running, wants)
    failed = sum(each.how != "result" for each in calls.requests)
    yield count(
        f"calls that failed, of {len(calls.requests)} with a full disk, a locked and a damaged database", failed
    )
    bad = damaged = 0
    bursts = directory / "bursts"
    bursts.mkdir()
    for _ in range(kills):
        bad += _burst(bursts)
        damaged += not _is_whole(_database(bursts / "data"))
    yield count(f"databases that were damaged after {kills} kills in bursts of writes", damaged)
    yield count("calls before these kills that failed", bad)


async def _suffer(calls: Calls, running: Running, data: Path, seconds: float) -> None:
    async with calls.running():
        for want in (_full, _locked, _damaged):
            async with want(running, data):
                await trio.sleep(seconds)
            await trio.sleep(seconds)


@asynccontextmanager
async def _full(running: Running, _: Path) -> AsyncIterator[None]:
    before = resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, (0, before[1]))
    yield
    resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, before)


@asynccontextmanager
async def _locked(_: Running, data: Path) -> AsyncIterator[None]:
    with closing(sqlite3.connect(_database(data), timeout=PATIENCE_S, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@asynccontextmanager
async def _damaged(_: Running, data: Path) -> AsyncIterator[None]:
    await trio.to_thread.run_sync(_damage, data)
    yield


def _damage(data: Path) -> None:
    for file in data.glob(f"{_database(data).name}*"):
        with file.open("r+b") as out:
            out.write(b"\xff" * 65_536)


def _database(data: Path) -> Path:
    """Return the file of the database."""
    (found,) = [file for file in data.iterdir() if file.suffix in (".db", ".sqlite3")]
    return found


def _burst(directory: Path) -> int:
    """Kill a daemon in the middle of what it writes; return how many calls before that failed."""
    with faulty_daemon(directory, [OTHER], {}, **AUDITED) as running:
        calls = Calls(running.port, [HEALTHY, OTHER], 200.0)

        async def call_and_kill() -> None:
            async with calls.running():
                await trio.sleep(BURST_S)
                running.process.kill()
                calls.end()

        trio.run(call_and_kill)
    return sum(each.how not in ("result", "gone", "left", "") for each in calls.requests)


def _is_whole(database: Path) -> bool:
    with closing(sqlite3.connect(database)) as opened:
        return bool(opened.execute("PRAGMA integrity_check").fetchone() == ("ok",))
