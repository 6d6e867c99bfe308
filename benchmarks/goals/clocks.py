"""G17: the clock of the wall is set by a day and back, and the daemon is stopped for a time: nothing is too late.

The daemon's Python gives a time of the wall that is ahead by what a file says (`tests/chaos/world.py`).
"""

from __future__ import annotations

import os
import signal
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import trio

from benchmarks.goals.calls import Calls, Ran
from benchmarks.goals.faulty import HEALTHY, faulty_daemon, ledger, unharmed
from benchmarks.goals.figure import Figure, count
from benchmarks.running import Running
from tests.chaos.world import CLOCK

DAY_S: Final = 86_400.0
PER_S: Final = 40.0
OTHER: Final = "other"


def measure(directory: Path, full: bool) -> Iterator[Figure]:
    """Four steps of 20 seconds each and a stop of a minute; of half a second, and of one, in the small form."""
    step_s, stop_s = (20.0, 60.0) if full else (0.5, 1.0)
    offset = directory / "offset"
    offset.write_bytes(bytes(8))
    (directory / "sitecustomize.py").write_text(CLOCK)
    env = {"PYTHONPATH": str(directory), "STEPPED_CLOCK": str(offset)}
    with faulty_daemon(directory, [OTHER], {"call_timeout_s": 10}, env=env) as running:
        calls = Calls(running.port, [HEALTHY, OTHER], PER_S)
        trio.run(_disturb, calls, running, offset, step_s, stop_s)
        yield from unharmed(running, directory)
    wrong = sum(each.how != "result" for each in calls.requests)
    yield count(f"calls that failed, of {len(calls.requests)} around steps of a day and a stop of {stop_s:g} s", wrong)
    starts = Ran(ledger(directory)).starts
    yield count("starts of servers again", sum(starts.values()) - len(starts))


async def _disturb(calls: Calls, running: Running, offset: Path, step_s: float, stop_s: float) -> None:
    async with calls.running():
        for seconds in (DAY_S, 0.0, -DAY_S, 0.0):
            with offset.open("r+b") as file:  # the daemon has this file mapped, so it has to stay the same one
                file.write(struct.pack("d", seconds))
            await trio.sleep(step_s)
        os.kill(running.process.pid, signal.SIGSTOP)
        await trio.sleep(stop_s)
        os.kill(running.process.pid, signal.SIGCONT)
        await trio.sleep(step_s)
