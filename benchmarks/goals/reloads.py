"""G15: a configuration that is edited again and again under load, as `benchmarks.edits` does it and judges."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import trio

from benchmarks.edits import Walk
from benchmarks.goals.figure import Figure, count
from benchmarks.reload import walking
from benchmarks.table import Aim, percentile
from tests.e2e.invariants import complaints_in

REPORTED: Final = Aim("<=", 1.0, "s")
FOLLOWED: Final = Aim("<=", 2.0, "s")


def measure(directory: Path, full: bool) -> Iterator[Figure]:
    """Edit 1,000 times while 40 clients call, 200 times a second or so; five times with four in the small form."""
    edits, clients = (1000, 40) if full else (5, 4)
    with walking(directory, seed=1) as (walk, _):
        trio.run(_edit, walk, edits, clients)
    yield count(
        f"calls that failed, pids that changed and bad files that had an effect, in {edits} edits under "
        f"{walk.counts['calls judged']:,} calls",
        len(walk.wrong),
    )
    yield count("processes that were left", len(walk.processes()))
    yield count("lines of the log about a bug", len(complaints_in((directory / "daemon.log").read_text())))
    yield Figure(
        "p99 from an edit to the lists of clients, calls under way at a changed server first",
        FOLLOWED,
        percentile(walk.took_s, 0.99),
    )
    if walk.refused_s:
        yield Figure("p99 from a bad file to its report", REPORTED, percentile(walk.refused_s, 0.99))


async def _edit(walk: Walk, edits: int, clients: int) -> None:
    async with walk, trio.open_nursery() as load:
        await walk.settle()
        for client in range(clients):
            load.start_soon(walk.call_for_ever, client)
        for _ in range(edits):
            await walk.step()
        load.cancel_scope.cancel()
