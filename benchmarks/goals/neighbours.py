"""G9: what a server notices of neighbours that end again and again, flood either output, stand still, or spin.

The same load on the same daemon, before the neighbours run and while they do, in turns. A call that fails ends it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from benchmarks.client import page
from benchmarks.execute import Outcome, http_job
from benchmarks.goals.figure import Figure
from benchmarks.goals.orphans import HASTY
from benchmarks.machine import until
from benchmarks.running import ECHO, Place, daemon, entry, status
from benchmarks.table import Aim, ratios

NOTICED: Final = Aim("<=", 1.5, "times")
SERVER: Final = str(Path(__file__).with_name("neighbour_server.py"))
MOODS: Final = ("looping", "flooding", "shouting", "spinning", "quiet")
CONNECTIONS: Final = 2


def measure(directory: Path, full: bool) -> Iterator[Figure]:
    """Five rounds of five seconds each; two of a half in the small form."""
    rounds, seconds = (5, 5.0) if full else (2, 0.5)
    ends = {} if full else HASTY
    servers = {mood: entry((sys.executable, SERVER, mood), idle_timeout_s=0, **ends) for mood in MOODS}
    alone: list[Outcome] = []
    beside: list[Outcome] = []
    with daemon(Place(directory), {"healthy": entry(ECHO, idle_timeout_s=0), **servers}) as running:
        until(lambda: _row(running.port, "healthy")["state"] == "ready", "the healthy one is up")
        tool = ("execute_mcp_tool", {"tool_path": "healthy:echo", "arguments": {"text": "x"}})
        with http_job(running.port, tool, "legacy", CONNECTIONS) as job:
            for _ in range(rounds):
                _rule(running.port, "disable")
                alone.append(job.run(seconds))
                _rule(running.port, "enable")
                _freeze(running.port)
                beside.append(job.run(seconds))
    p99 = ratios([each.p99_ms for each in beside], [each.p99_ms for each in alone])
    calls = sum(each.requests for each in beside)
    yield Figure(f"p99 beside the neighbours to p99 without, median, of {calls:,} calls", NOTICED, p99.median)


def _rule(port: int, order: str) -> None:
    for mood in MOODS:
        page(port, f"/api/servers/{mood}/{order}", body={})


def _freeze(port: int) -> None:
    """Wake the neighbours, and stop the quiet one."""
    for mood in MOODS[1:]:
        page(port, f"/api/servers/{mood}/wake", body={})
    os.kill(_pid(port, "quiet"), signal.SIGSTOP)


def _pid(port: int, server: str) -> int:
    until(lambda: bool(_row(port, server)["pid"]), f"{server} runs")
    pid: int = _row(port, server)["pid"]
    return pid


def _row(port: int, server: str) -> dict[str, Any]:
    return next(row for row in status(port)["servers"] if row["server"] == server)
