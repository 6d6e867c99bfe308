"""G1: servers that are killed again and again while they are called: what becomes of all calls, and how soon.

One more call is under way at each server that is killed, whose tool never answers: so each kill has somebody who waits.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Final

import trio
from msgspec import Struct, field

from benchmarks.goals.calls import Calls, Ran
from benchmarks.goals.faulty import HEALTHY, LIVELY, faulty_daemon, ledger, row_of, runs, unharmed
from benchmarks.goals.figure import Figure, count
from benchmarks.table import Aim, percentile

ERROR: Final = Aim("<=", 250, "ms")
LONGEST: Final = Aim("<=", 1000, "ms")
AGAIN: Final = Aim("<=", 2.0, "s")
PER_S: Final = 200.0
LOOK_S: Final = 0.02
PATIENCE_S: Final = 60.0
TOLD: Final = "crashed"


class Seen(Struct, kw_only=True):
    """Of the kills: ms until whoever waited was told, seconds until a server was ready after its first one."""

    told_ms: list[float] = field(default_factory=list)
    again_s: list[float] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)


def measure(directory: Path, full: bool) -> Iterator[Figure]:
    """Kill 20 servers 1,000 times under 200 calls a second; four of them six times under 40 in the small form."""
    servers, kills, per_s = (20, 1000, PER_S) if full else (4, 6, 40.0)
    names = [f"mortal{number:02}" for number in range(servers)]
    seen = Seen()
    with faulty_daemon(directory, names, LIVELY) as running:
        calls = Calls(running.port, (*names, HEALTHY), per_s)
        trio.run(_kill, calls, running.port, directory, names, kills, seen)
        yield from unharmed(running, directory)
    yield count(f"calls without an answer, of {len(calls.requests)} during {len(seen.told_ms)} kills", calls.lost())
    yield count("requests that ran more than once", Ran(ledger(directory)).twice())
    yield count("answers to somebody else's request", calls.misdelivered())
    yield count("calls of a server that was not killed that failed", len(calls.failed(HEALTHY)))
    yield count("calls under way at a killed server that were told something else", len(seen.untold))
    yield Figure("p99 from the kill to their error", ERROR, percentile(seen.told_ms, 0.99))
    yield Figure("the longest", LONGEST, max(seen.told_ms))
    yield Figure("the longest from the first kill of a server until it is ready", AGAIN, max(seen.again_s))


async def _kill(calls: Calls, port: int, directory: Path, names: list[str], kills: int, seen: Seen) -> None:
    async with calls.running(), trio.open_nursery() as nursery:
        together = min(len(names), 5)
        for number in range(together):  # each has servers of its own
            some = names[number::together]
            nursery.start_soon(_kill_some, calls, port, directory, some, -(-kills // together), seen)


async def _kill_some(calls: Calls, port: int, directory: Path, names: list[str], kills: int, seen: Seen) -> None:
    luck, fresh = random.Random(names[0]), set(names)
    for _ in range(kills):
        name = luck.choice(names)
        pid = await _until_ready(port, name)
        async with trio.open_nursery() as nursery:
            waiting = calls.begin(nursery, name, "fault", fault="mute")
            with trio.fail_after(PATIENCE_S):
                while not runs(directory, waiting.key):  # noqa: ASYNC110 - nothing tells another process
                    await trio.sleep(LOOK_S)
            killed_s = monotonic()
            os.kill(pid, signal.SIGKILL)
        seen.told_ms.append(1000 * ((waiting.ended_s or monotonic()) - killed_s))
        if waiting.type != TOLD or waiting.outcome != "unknown":
            seen.untold.append(f"{waiting.how} {waiting.type} {waiting.outcome}: {waiting.text}")
        if name in fresh:
            fresh.discard(name)
            await _until_ready(port, name, but=pid)
            seen.again_s.append(monotonic() - killed_s)


async def _until_ready(port: int, name: str, but: int = 0) -> int:
    """Wait until a server is ready, in another process than that; return its process."""
    with trio.fail_after(PATIENCE_S):
        while True:
            row = await row_of(port, name)
            if row["state"] == "ready" and row["pid"] not in (but, None):
                pid: int = row["pid"]
                return pid
            await trio.sleep(LOOK_S)
