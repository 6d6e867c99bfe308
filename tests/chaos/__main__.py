"""`python -m tests.chaos --minutes 5 --seed 1`: a daemon under random faults, and what must hold all the same.

Ends with 1 if something did not hold. The same seed does the same things at the same moments; how the machine shares
its time is not the same.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import trio

from tests.chaos.report import report
from tests.chaos.run import Plan, Run
from tests.chaos.schedule import KINDS, schedule
from tests.chaos.verdicts import Bounds, judge


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--calls", type=float, default=60.0, help="calls a second, of all clients together")
    parser.add_argument("--faults", type=float, default=1.0, help="faults a second")
    parser.add_argument("--patience", type=float, default=1.0, help="how much slower the machine may be")
    parser.add_argument("--only", nargs="*", default=[], help="kinds of faults; all of them without it")
    parser.add_argument("--keep", type=Path, help="keep the log and the configuration in this directory")
    parser.add_argument("--at", nargs="*", default=[], help="servers that are called; all of them without it")
    given = parser.parse_args()
    kinds = [kind for kind in KINDS if not given.only or kind.name in given.only]
    faults = schedule(given.seed, given.minutes * 60, given.faults, kinds)
    with tempfile.TemporaryDirectory(prefix="chaos-") as made:
        directory = given.keep or Path(made)
        directory.mkdir(exist_ok=True)
        plan = Plan(given.minutes * 60, given.seed, tuple(faults), given.calls, tuple(given.at))
        run = Run(directory, plan, lambda line: print(line, flush=True))
        history = trio.run(run.go)
    verdicts = judge(history, Bounds().times(given.patience))
    print(report(history, verdicts, f"python -m tests.chaos {' '.join(sys.argv[1:])}"))
    return 1 if any(verdicts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
