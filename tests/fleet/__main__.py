"""`python -m tests.fleet --nodes 1000 --launches 100000 --seed 1`: a fleet in virtual time, and what must hold in it.

Ends with 1 if something did not hold. The same seed does the same.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time

from supervisor.fleet.engine import LeaseTimes
from tests.fleet.simulation import Report, Scale, events_of
from tests.fleet.virtual_time import simulate


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fleet", description=__doc__)
    parser.add_argument("--nodes", type=int, default=12)
    parser.add_argument("--launches", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=240.0, help="of the time that is simulated")
    parser.add_argument("--calls", type=float, default=20.0, help="calls a second, of all clients together")
    parser.add_argument("--faults", type=float, default=0.3, help="faults a second, of all nodes together")
    parser.add_argument("--lease", type=float, default=15.0, help="seconds of a lease")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    logging.disable()  # nodes say what goes wrong with them
    scale = Scale(
        nodes=given.nodes,
        launches=given.launches,
        seconds=given.seconds,
        calls_per_s=given.calls,
        faults_per_s=given.faults,
        times=LeaseTimes(lease_s=given.lease),
    )
    begun = time.monotonic()
    report = simulate(scale, given.seed)
    print(_told(report), f"{events_of(report):,} events in {time.monotonic() - begun:.0f} s", sep="\n")
    return 1 if report.violations or report.unanswered or report.unreachable else 0


def _told(report: Report) -> str:
    lines = [f"{report.calls:,} calls: " + ", ".join(f"{count:,} {how}" for how, count in sorted(report.how.items()))]
    lines += ["faults: " + ", ".join(f"{count} times {kind}" for kind, count in sorted(report.faults.items()))]
    lines += ["events: " + ", ".join(f"{count:,} {kind}" for kind, count in sorted(report.events.items()))]
    lines += [f"{report.unanswered} without an answer, {report.unreachable} launches that do not answer at last"]
    return "\n".join(lines + [f"VIOLATED {what}" for what in report.violations[:20]])


if __name__ == "__main__":
    sys.exit(main())
