"""G10: what a server costs that can never start: how often it is tried, and the processor time of the daemon."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.client import Client
from benchmarks.goals.figure import Figure, count
from benchmarks.machine import cpu_s, pause
from benchmarks.running import Place, daemon, entry
from benchmarks.table import Aim

AT_FIRST_S: Final = 30.0
AT_FIRST: Final = Aim("<=", 5, "starts")
HOUR_S: Final = 3600.0
AN_HOUR: Final = Aim("<=", 12, "starts")
COST: Final = Aim("<=", 1.0, "%")
SCRIPT: Final = 'echo >> "$0"; exit 1'
"""Notes each start, and ends at once."""


def measure(directory: Path, full: bool) -> Iterator[Figure]:
    """Let one fail for half a minute, and then for an hour with a call each second; for 3 s and 3 calls in all."""
    seconds, after_s = (AT_FIRST_S, HOUR_S) if full else (3.0, 3.0)
    starts = directory / "starts"
    with daemon(Place(directory), {"loop": entry(("sh", "-c", SCRIPT, str(starts)), restart="permanent")}) as running:
        begun = cpu_s(running.process.pid)
        pause(seconds)
        spent = cpu_s(running.process.pid) - begun
        at_first = len(starts.read_text())
        yield Figure(f"in the first {seconds:g} s", AT_FIRST, at_first)
        yield count("calls that did not end with an error", _call(running.port, after_s))
        if full:  # the first seconds are those of the daemon's own start, and those after them no hour
            yield Figure("in the hour after it was given up", AN_HOUR, len(starts.read_text()) - at_first)
            yield Figure("processor time of the daemon in the first half minute", COST, 100 * spent / seconds)


def _call(port: int, seconds: float) -> int:
    """Call it each second for so long, and return how many calls were not answered with an error."""
    end, others = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        with Client(port) as client:
            answer = client.answer(("execute_mcp_tool", {"tool_path": "loop:echo", "arguments": {}}))
        others += "error" not in answer and not answer["result"].get("isError")
        pause(1.0)
    return others
