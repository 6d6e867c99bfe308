"""G13: WebSockets that nobody uses: what they cost the daemon, and how soon all of them hear that tools changed."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from benchmarks.client import Client, frame, initialize, upgrade
from benchmarks.goals.changes import SERVER
from benchmarks.goals.figure import Figure, count
from benchmarks.machine import memory, pause
from benchmarks.running import Place, daemon, entry, until_ready
from benchmarks.subscriptions import SPARE, opened
from benchmarks.table import Aim

TAKES: Final = Aim("<=", 400, "MiB")
TOLD: Final = Aim("<=", 2.0, "s")
PATH: Final = "/mcp/all"
CHANGED: Final = "notifications/tools/list_changed"
APART_S: Final = 2.0
"""Longer than the daemon lets a server wait whose lists change often."""


def measure(directory: Path, full: bool) -> Iterator[Figure]:
    """10,000 of them, or as many as the descriptors of this machine allow; 100 in the small form."""
    possible = (resource.getrlimit(resource.RLIMIT_NOFILE)[1] - SPARE) // 2 - SPARE
    wanted, rounds = (min(10_000, possible), 5) if full else (100, 1)
    settings: dict[str, Any] = {"max_connections": 20_000, "max_sessions": 20_000, "websocket_ping_s": 3600}
    servers = {"it": entry((sys.executable, SERVER), idle_timeout_s=0)}
    with daemon(Place(directory), servers, **settings) as running:
        until_ready(running.port)
        before = memory(running.process.pid).rss_mib
        initialized = "!" + frame({"jsonrpc": "2.0", "method": "notifications/initialized"})
        opening = {"upgrade": upgrade(running.port, PATH), "setup": [frame(initialize()), initialized], "last": ""}
        with (
            opened({"port": running.port, "count": wanted, "told": CHANGED, **opening}) as sockets,
            Client(running.port) as client,
        ):
            takes = memory(running.process.pid).rss_mib - before
            missed, late_s = 0, 0.0
            for _ in range(rounds):
                pause(APART_S)
                sockets.ask("begin")
                changed_at = time.monotonic()
                client.call(
                    ("execute_mcp_tool", {"tool_path": "it:storm", "arguments": {"seconds": 0.01, "per_s": 100}})
                )
                told_ms = sockets.ask(str(changed_at))["late_ms"]
                missed += sockets.count - len(told_ms)
                late_s = max(late_s, told_ms[-1] / 1000)
    yield count(f"of {wanted:,} sockets refused", wanted - sockets.count)
    yield count("sockets that never heard of a change", missed)
    yield Figure(f"memory of {sockets.count:,} idle WebSockets", TAKES, takes)
    yield Figure("the longest from a change until the last of them has heard of it", TOLD, late_s)
