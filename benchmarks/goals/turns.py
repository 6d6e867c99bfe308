"""G14: by how much the loop is late under load. The daemon runs in this process, beside a ticker of its loop.

What single messages may hold the loop is measured by `benchmarks.worst_cases`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import trio

from benchmarks.execute import http_job
from benchmarks.goals.figure import Figure
from benchmarks.running import ECHO, entry, until_ready
from benchmarks.stall import Ticker
from benchmarks.table import Aim, percentile
from supervisor.config import load
from supervisor.daemon import Daemon
from supervisor.front.edge.listening import open_sockets
from supervisor.host.datadir import open_data_dir
from supervisor.host.pauses import SWITCH_INTERVAL_S, short_pauses

LATE: Final = Aim("<=", 20, "ms")
LONGEST: Final = Aim("<=", 100, "ms")
CONNECTIONS: Final = 16


def measure(directory: Path, full: bool) -> Iterator[Figure]:
    """A minute of calls as fast as they are answered; one second in the small form."""
    late_ms = trio.run(_measured, directory, 60.0 if full else 1.0)
    idle, busy = (percentile(late_ms[phase], 0.999) for phase in ("idle", "load"))
    yield Figure(f"p99.9 of how late the loop is under load (idle: {idle:.1f} ms)", LATE, busy)
    yield Figure(f"the latest (idle: {max(late_ms['idle']):.1f} ms)", LONGEST, max(late_ms["load"]))


async def _measured(directory: Path, seconds: float) -> dict[str, list[float]]:
    config, ticker = directory / "mcp.json", Ticker()
    config.write_text(json.dumps({"mcpServers": {"echo": entry(ECHO, idle_timeout_s=0)}}))
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    try:
        with open_data_dir(directory / "data", {}) as data:
            daemon = Daemon(load(config, {"PATH": os.environ["PATH"]}), data, open_sockets("127.0.0.1:0", 5.0))
            with short_pauses():
                await _load(daemon, ticker, seconds)
    finally:
        sys.setswitchinterval(before)
    return ticker.late_ms


async def _load(daemon: Daemon, ticker: Ticker, seconds: float) -> None:
    async with trio.open_nursery() as nursery:
        (url,) = await nursery.start(daemon.run)
        port = int(url.rpartition(":")[2])
        await trio.to_thread.run_sync(until_ready, port)
        nursery.start_soon(ticker.run)
        with ticker.phase("idle"):
            await trio.sleep(seconds)
        with ticker.phase("load"):
            await trio.to_thread.run_sync(_call, port, seconds)
        daemon.closing.set()
        nursery.cancel_scope.cancel()


def _call(port: int, seconds: float) -> None:
    tool = ("execute_mcp_tool", {"tool_path": "echo:echo", "arguments": {"text": "x" * 100}})
    with http_job(port, tool, "legacy", CONNECTIONS) as job:
        job.run(seconds)
