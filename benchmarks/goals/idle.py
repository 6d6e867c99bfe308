"""G12b: what a daemon costs whose servers nobody uses: processor time, and how often its threads wake up."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from benchmarks.goals.figure import Figure
from benchmarks.machine import cpu_s, pause, wake_ups
from benchmarks.running import ECHO, Place, daemon, entry, until_dormant, until_ready
from benchmarks.signs import wake_all
from benchmarks.table import Aim

COST: Final = Aim("<=", 0.5, "%")
WAKES: Final = Aim("<=", 5.0, "a second")
IDLE_TIMEOUT_S: Final = {"asleep": 0.5, "awake": 0}
SETTLE_S: Final = 15.0
"""Until what was called is counted, what was started was looked at, and threads that are not needed have ended."""


def measure(directory: Path, full: bool) -> Iterator[Figure]:
    """Leave 100 servers alone for an hour, asleep and awake at the same time; three for a second in the small form."""
    number, seconds, settle_s = (100, 3600.0, SETTLE_S) if full else (3, 1.0, 0.5)
    with ExitStack() as stack:
        pids = {how: stack.enter_context(_idle_daemon(directory / how, number)) for how in IDLE_TIMEOUT_S}
        pause(settle_s)
        with ThreadPoolExecutor(len(pids)) as threads:
            costs = {how: threads.submit(_cost, pid, seconds) for how, pid in pids.items()}
        for how, cost in costs.items():
            (busy, woken), what = cost.result(), f"a daemon with {number} servers, {how}, that nobody uses"
            yield Figure(f"processor time of {what}", COST, busy)
            yield Figure(f"wake-ups of {what}", WAKES, woken)


@contextmanager
def _idle_daemon(directory: Path, number: int) -> Iterator[int]:
    """Run a daemon whose servers are all asleep, or all awake, by the name of its directory; yield its process id."""
    directory.mkdir()
    how = directory.name
    servers = {f"s{each}": entry(ECHO, idle_timeout_s=IDLE_TIMEOUT_S[how]) for each in range(number)}
    with daemon(Place(directory), servers, cold_starts=4, starts_per_s=100) as running:
        until_ready(running.port)
        if how == "awake":
            wake_all(running, [*servers])
        else:
            until_dormant(running.port)
        yield running.process.pid


def _cost(pid: int, seconds: float) -> tuple[float, float]:
    """Return the processor time in percent, and the wake-ups a second, of so many seconds from now on."""
    spent = cpu_s(pid)
    woken = wake_ups(pid, seconds)
    return 100 * (cpu_s(pid) - spent) / seconds, woken / seconds
