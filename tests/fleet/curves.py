"""`python -m tests.fleet.curves`: what a fleet costs by its size, as a table.

In virtual time, so it is exact, but for the time of placement, which is real. Every node is called once in two seconds
and fails once in a thousand; its weight changes once a minute.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import time

from supervisor.fleet.engine import LeaseTimes, Node
from supervisor.fleet.membership import rank
from tests.fleet.simulation import CALM_S, Scale
from tests.fleet.virtual_time import simulate

SIZES = (3, 10, 30, 100, 300, 1000)
LAUNCHES_PER_NODE = 100
SECONDS = 60.0
TRIES = 300
HEAD = (
    "| nodes | commands for the engine, a second | of each node | entries of the feed that each reads, a second |"
    " a launch is placed in |\n| ---: | ---: | ---: | ---: | ---: |"
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fleet.curves", description=__doc__)
    parser.add_argument("--largest", type=int, default=SIZES[-1])
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    logging.disable()  # nodes say what goes wrong with them
    print(HEAD)
    for nodes in (size for size in SIZES if size <= given.largest):
        print(row(nodes, given.seed), flush=True)


def row(nodes: int, seed: int) -> str:
    scale = Scale(
        nodes=nodes,
        launches=LAUNCHES_PER_NODE * nodes,
        seconds=SECONDS,
        calls_per_s=nodes / 2,
        faults_per_s=nodes / 1000,
        times=LeaseTimes(lease_s=20.0),
    )
    report = simulate(scale, seed)
    if report.violations:
        raise SystemExit(f"VIOLATED {report.violations[0]}")
    seconds = SECONDS + CALM_S
    commands, entries = report.events["engine"] / seconds, report.events["entries read"] / seconds / nodes
    return f"| {nodes:,} | {commands:,.0f} | {commands / nodes:.2f} | {entries:,.1f} | {placement_us(nodes):,.0f} µs |"


def placement_us(nodes: int) -> float:
    """Return the median time that it takes to place a launch, in microseconds."""
    every = [Node(name=f"node{number}", incarnation=f"{number}") for number in range(nodes)]
    took = []
    for number in range(TRIES):
        begun = time.perf_counter()
        rank(f"launch{number}", every)
        took.append(time.perf_counter() - begun)
    return statistics.median(took) * 1e6


if __name__ == "__main__":
    main()
