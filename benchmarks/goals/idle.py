"""Of G12: what a daemon costs whose servers nobody uses: processor time, and how often its threads wake up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.goals.figure import Figure
from benchmarks.machine import cpu_s, pause, wake_ups
from benchmarks.running import ECHO, Place, daemon, entry, until_dormant, until_ready
from benchmarks.signs import wake_all
from benchmarks.table import Aim

COST: Final = Aim("<=", 0.5, "%")
WAKES: Final = Aim("<=", 5.0, "a second")
SETTLE_S: Final = 15.0
"""Until what was called is counted, what was started was looked at, and threads that are not needed have ended."""


def left_alone(directory: Path, full: bool) -> Iterator[Figure]:
    """Leave 100 servers alone for two minutes, asleep and awake; three awake ones for a second in the small form."""
    number, seconds, settle_s = (100, 120.0, SETTLE_S) if full else (3, 1.0, 0.5)
    for how in ("asleep", "awake") if full else ("awake",):
        place = Place(directory / how)
        place.directory.mkdir()
        servers = {f"s{each}": entry(ECHO, idle_timeout_s=0 if how == "awake" else 0.5) for each in range(number)}
        with daemon(place, servers, cold_starts=4, starts_per_s=100) as running:
            until_ready(running.port)
            if how == "awake":
                wake_all(running, [*servers])
            else:
                until_dormant(running.port)
            pause(settle_s)
            pid = running.process.pid
            spent = cpu_s(pid)
            woken = wake_ups(pid, seconds)
            what = f"a daemon with {number} servers, {how}, that nobody uses"
            yield Figure(f"processor time of {what}", COST, 100 * (cpu_s(pid) - spent) / seconds)
            yield Figure(f"wake-ups of {what}", WAKES, woken / seconds)
