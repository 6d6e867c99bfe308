"""`python -m benchmarks.goals [G1 G2 ...] [--full] [--write]` measures goals of reliability and prints the figures.

Ends with 1 where one is missed. `--write` keeps the figures for the documentation.
"""

from __future__ import annotations

import os
import platform
import signal
import sys
import tempfile
from argparse import ArgumentParser
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import overload
from benchmarks.goals import (
    changes,
    clocks,
    http_faults,
    idle,
    kills,
    leaks,
    loops,
    malformed,
    naps,
    neighbours,
    orphans,
    reloads,
    sockets,
    start,
    stops,
    storage,
    turns,
    wire_faults,
)
from benchmarks.goals.figure import Goal
from benchmarks.goals.kept import Kept, keep

GOALS = {
    "G1": Goal("A kill costs the calls under way at the killed server alone, and they are told at once", kills.measure),
    "G2": Goal("Nothing of a server outlives it, however it or the daemon ends", orphans.measure),
    "G3": Goal("An end is bounded, whatever clients and servers do", stops.measure),
    "G5": Goal("Whatever a server writes costs one call at most", wire_faults.measure),
    "G6": Goal("Whatever a remote server answers costs one call at most, and leads nowhere else", http_faults.measure),
    "G7": Goal("Whatever a client sends, the daemon lives, and does not say that it failed", malformed.measure),
    "G9": Goal("A server does not notice what its neighbours do", neighbours.measure),
    "G10": Goal("A server that can never start costs next to nothing", loops.measure),
    "G11": Goal("Sleep is not noticed: no call is lost, and one start serves all", naps.measure),
    "G12a": Goal("A million calls leave nothing behind", leaks.measure),
    "G12b": Goal("A daemon that nobody uses does next to nothing", idle.measure),
    "G13": Goal("WebSockets that nobody uses cost little, and all of them hear of a change soon", sockets.measure),
    "G14": Goal("The loop is on time under load", turns.measure),
    "G15": Goal("An edit of the configuration is noticed by nobody whom it does not concern", reloads.measure),
    "G16": Goal("Whatever becomes of the disk, calls go on, and what is kept can be read", storage.measure),
    "G17": Goal("A clock that is set and a daemon that is stopped make nothing too late", clocks.measure),
    "G19": Goal("Lists that change all the time are read once a second, and the last state is seen", changes.measure),
    "G23": Goal("A daemon listens at once, however many of its servers are broken", start.measure),
    "G24": Goal("What is too much is refused at once, and the rest is done", overload.measure),
}


def machine() -> str:
    """Return in words what was measured on."""
    return f"{os.cpu_count()} processors, {platform.system()} {platform.release()}, Python {platform.python_version()}"


def measure(name: str, *, full: bool) -> Kept:
    """Measure one goal, and print each figure as it comes."""
    goal, figures = GOALS[name], []
    print(f"{name}: {goal.what}", flush=True)
    with tempfile.TemporaryDirectory(prefix=f"goal-{name}-") as directory:
        for figure in goal.measure(Path(directory), full):
            print(f"  {'met   ' if figure.met else 'MISSED'} {figure}", flush=True)
            figures.append(figure)
    today = f"{datetime.now(UTC):%-d %B %Y}"
    return Kept(name, goal.what, today, machine(), "full" if full else "small", tuple(figures))


def main() -> int:
    """Run what was asked for; return the exit code."""
    parser = ArgumentParser(prog="python -m benchmarks.goals", description=__doc__)
    parser.add_argument("goals", nargs="*", metavar="GOAL", help=f"of {', '.join(GOALS)}; all without any")
    parser.add_argument("--full", action="store_true", help="at the goal's own scale, which can take an hour")
    parser.add_argument("--write", action="store_true", help="keep the figures for docs/background/reliability.md")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.goals if name not in GOALS]:
        parser.error(f"there is no goal {unknown[0]}; there are {', '.join(GOALS)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended
    runs = [measure(name, full=arguments.full) for name in arguments.goals or GOALS]
    if arguments.write:
        keep(runs)
    return 0 if all(figure.met for run in runs for figure in run.figures) else 1


if __name__ == "__main__":
    sys.exit(main())
