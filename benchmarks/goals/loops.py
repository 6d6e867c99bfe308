"""G10: what a server costs that can never start: how often it is tried, and the processor time of the daemon.

The first half minute is real. The hour after it is the restart policy's own, asked at the moments that it says itself.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from actors.life.policy import RestartLog, RestartPolicy
from benchmarks.goals.figure import Figure
from benchmarks.machine import cpu_s, pause
from benchmarks.running import Place, daemon, entry
from benchmarks.table import Aim

AT_FIRST_S: Final = 30.0
AT_FIRST: Final = Aim("<=", 5, "starts")
AN_HOUR: Final = Aim("<=", 12, "starts")
COST: Final = Aim("<=", 1.0, "%")
SCRIPT: Final = 'echo >> "$0"; exit 1'
"""Notes each start, and ends at once."""


def measure(directory: Path, full: bool) -> Iterator[Figure]:
    """Let one fail for half a minute; for five seconds in the small form."""
    seconds = AT_FIRST_S if full else 5.0
    starts = directory / "starts"
    with daemon(Place(directory), {"loop": entry(("sh", "-c", SCRIPT, str(starts)), restart="permanent")}) as running:
        begun = cpu_s(running.process.pid)
        pause(seconds)
        spent = cpu_s(running.process.pid) - begun
        yield Figure(f"in the first {seconds:g} s", AT_FIRST, len(starts.read_text()))
    yield Figure("in an hour after it was given up", AN_HOUR, _of_an_hour(random.Random(1).random))
    if full:  # the first seconds are those of the daemon's own start
        yield Figure("processor time of the daemon meanwhile", COST, 100 * spent / seconds)


def _of_an_hour(jitter: Callable[[], float]) -> int:
    """Return how often it is tried in an hour after it was given up, if somebody calls it each second."""
    log, now = RestartLog(RestartPolicy(), jitter), 0.0
    while (delay_s := log.admit(now)) is not None:
        now += delay_s
    starts = 0
    for second in range(3600):
        if log.probe(now + second) == 0:
            starts += 1
            log.admit(now + second)
    return starts
