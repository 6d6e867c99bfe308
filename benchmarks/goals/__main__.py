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

from benchmarks.goals import loops, naps, neighbours, orphans, start, stops
from benchmarks.goals.figure import Goal
from benchmarks.goals.kept import Kept, keep

GOALS = {
    "G2": Goal("Nothing of a server outlives it, however it or the daemon ends", orphans.measure),
    "G3": Goal("An end is bounded, whatever clients and servers do", stops.measure),
    "G9": Goal("A server does not notice what its neighbours do", neighbours.measure),
    "G10": Goal("A server that can never start costs next to nothing", loops.measure),
    "G11": Goal("Sleep is not noticed: no call is lost, and one start serves all", naps.measure),
    "G23": Goal("A daemon listens at once, however many of its servers are broken", start.measure),
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
