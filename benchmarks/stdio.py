"""What stands between a client that starts a program and the daemon: its memory, its start, what it adds to a call.

`mcpvisor stdio` and mcp-remote bring the same calls to the same daemon, in turns; over HTTP they show what is added.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.execute import TEXT, Plan, alternating, compared, http_job
from benchmarks.machine import memory
from benchmarks.remote import THROUGH_US, piped
from benchmarks.running import ECHO, Place, daemon, entry, until_ready
from benchmarks.table import Row, ratios, spread

CALL = f"`execute_mcp_tool` through `mcpvisor stdio`, {len(TEXT)} characters, 1 at once"
OURS, THEIRS = "mcpvisor-stdio", "mcp-remote"


def run(directory: Path, plan: Plan, mcp_remote: Sequence[str]) -> list[Row]:
    """Measure calls, the memory after them, and starts. `mcp_remote`: its command, empty where it is not installed."""
    with daemon(Place(directory), {"echo": entry(ECHO, idle_timeout_s=0)}) as ours, ExitStack() as stack:
        until_ready(ours.port)
        url = f"http://127.0.0.1:{ours.port}/mcp"
        commands = {OURS: [sys.executable, "-m", "supervisor", "stdio", "--url", url]}
        if mcp_remote:
            commands[THEIRS] = [*mcp_remote, url, "--allow-http"]
        bridges = {
            name: stack.enter_context(piped(command, directory / f"{name}.log", THROUGH_US))
            for name, command in commands.items()
        }
        with http_job(ours.port, THROUGH_US, "legacy", 1) as http:
            rows = [compared(CALL, "the same over HTTP", alternating([bridges[OURS], http], plan))]
        if THEIRS in bridges:
            rows.append(compared(CALL, THEIRS, alternating([bridges[OURS], bridges[THEIRS]], plan)))
        sizes = {name: [memory(bridge.pid).rss_mib] for name, bridge in bridges.items()}
        starts: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(plan.rounds):
            for name, command in commands.items():
                starts[name].append(_start_ms(command, directory / f"{name}.log"))
    return [
        *rows,
        _beside("memory of the bridge after that", sizes, "MiB"),
        _beside("start of the bridge to the answer to `initialize`", starts, "ms"),
    ]


def _start_ms(command: Sequence[str], log: Path) -> float:
    begin = time.perf_counter()
    with piped(command, log, THROUGH_US):
        return (time.perf_counter() - begin) * 1000


def _beside(what: str, values: dict[str, list[float]], unit: str) -> Row:
    ours, theirs = values[OURS], values.get(THEIRS)
    measured = f"{spread(ours).median:.0f} {unit}"
    if theirs is None:
        return Row(what=what, measured=measured)
    return Row(
        what=what,
        measured=measured,
        compared=f"{THEIRS}: {spread(theirs).median:.0f} {unit}",
        ratio=str(ratios(ours, theirs)),
    )
