"""G5: servers that write what they must not: each fault on the wire costs one call at most, and nobody else notices."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Final

import trio

from benchmarks.goals.calls import Calls, Ran
from benchmarks.goals.faulty import GROWTH, HEALTHY, LIVELY, UNHARMED, faulty_daemon, ledger, unharmed
from benchmarks.goals.figure import Figure, count
from benchmarks.machine import memory
from benchmarks.table import Aim
from tests.chaos.history import Request
from tests.fakes.fault_server import FAULTS

NEXT: Final = Aim("<=", 3.0, "s")
SIDE_BY_SIDE: Final = 4
CALL_S: Final = 2.5
"""Long enough for a server to be started again in it."""
PATIENT: Final = {**LIVELY, "call_timeout_s": CALL_S, "max_line_bytes": 1_000_000, "unresponsive_s": 1}
PER_S: Final = 20.0


def measure(directory: Path, full: bool) -> Iterator[Figure]:
    """Play each fault ten times; each fourth one once in the small form."""
    names = [f"wild{number}" for number in range(SIDE_BY_SIDE)]
    after: list[tuple[Request, float]] = []
    with faulty_daemon(directory, names, PATIENT) as running:
        calls = Calls(running.port, [HEALTHY], PER_S)
        before = memory(running.process.pid).rss_mib
        trio.run(_play, calls, names, sorted(FAULTS) * 10 if full else sorted(FAULTS)[::4], after)
        grown = memory(running.process.pid).rss_mib - before
        yield from unharmed(running, directory)
    affected = [request for request, _ in after if request.how != "result"]
    yield count(f"calls without an answer, of {len(calls.requests)} during {len(after)} faults", calls.lost())
    yield count("answers to somebody else's request", calls.misdelivered())
    yield count("requests that ran more than once", Ran(ledger(directory)).twice())
    yield count("next calls of the same server that failed", len(affected))
    yield Figure("the longest from a fault to the answer of the next call", NEXT, max(took_s for _, took_s in after))
    yield count("calls of the healthy server that failed", len(calls.failed(HEALTHY)))
    yield Figure("p99 of the healthy server meanwhile", UNHARMED, calls.p99_ms(HEALTHY))
    yield Figure("growth of memory", GROWTH, grown)


async def _play(calls: Calls, names: list[str], faults: list[str], after: list[tuple[Request, float]]) -> None:
    async with calls.running(), trio.open_nursery() as nursery:
        for number, name in enumerate(names):  # each plays its share, one after the other
            nursery.start_soon(_play_some, calls, name, faults[number :: len(names)], after)


async def _play_some(calls: Calls, name: str, faults: list[str], after: list[tuple[Request, float]]) -> None:
    for fault in faults:
        await calls.one(name, "fault", fault=fault)
        ended_s = monotonic()
        after.append((await calls.one(name), monotonic() - ended_s))
