"""G11: servers that sleep: calls that race with their falling asleep, cold calls, and many calls that wake one."""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from benchmarks.client import Client, Tool
from benchmarks.goals.figure import Figure, count
from benchmarks.machine import pause
from benchmarks.running import ECHO, Place, daemon, entry, status, until_dormant, until_ready
from benchmarks.table import Aim
from benchmarks.wake import alone, through

NAP_S: Final = 0.3
"""After so long without a call the servers fall asleep."""
NEAR_S: Final = 0.01
OVERHEAD: Final = Aim("<=", 50, "ms")
ONE: Final = Aim("<=", 1, "starts")
AT_ONCE: Final = 200
SERVERS: Final = 10
WANTED: Final = "wanted"
WANTED_NAP_S: Final = 5.0
"""The server that many wake sleeps later: clients that come one by one on a busy machine are still one crowd to it."""


def measure(directory: Path, full: bool) -> Iterator[Figure]:
    """Let 10,000 calls race with ten servers that fall asleep; 30 in the small form."""
    rounds = 1000 if full else 3
    names = [f"napping{number}" for number in range(SERVERS)]
    servers = {name: entry(ECHO, idle_timeout_s=NAP_S) for name in names}
    servers[WANTED] = entry(ECHO, idle_timeout_s=WANTED_NAP_S)
    with daemon(Place(directory), servers) as running:
        until_ready(running.port)
        with ThreadPoolExecutor(SERVERS) as threads:
            lost = sum(threads.map(lambda name: _race(running.port, name, rounds), names))
        yield count(f"calls without an answer, of {rounds * SERVERS} as a server falls asleep", lost)
        until_dormant(running.port)
        before = _starts(running.port, WANTED)
        with ThreadPoolExecutor(AT_ONCE) as threads:
            answered = sum(threads.map(lambda _: _answers(running.port, WANTED), range(AT_ONCE)))
        yield count(f"calls without an answer, of {AT_ONCE} that wake one server", AT_ONCE - answered)
        yield Figure("starts that they led to", ONE, _starts(running.port, WANTED) - before, exact=True)
        yield Figure("what the daemon adds to a cold call", OVERHEAD, 1000 * _overhead_s(running.port, names[0], full))


def _tool(server: str) -> Tool:
    return "execute_mcp_tool", {"tool_path": f"{server}:echo", "arguments": {"text": server}}


def _answers(port: int, server: str) -> bool:
    with Client(port) as client:
        result = client.answer(_tool(server)).get("result", {})
    return result.get("isError") is not True and result.get("content", [{}])[0].get("text") == server


def _race(port: int, server: str, rounds: int) -> int:
    luck, lost = random.Random(server), 0
    for _ in range(rounds):
        lost += not _answers(port, server)
        pause(NAP_S + luck.uniform(-NEAR_S, NEAR_S))
    return lost


def _starts(port: int, server: str) -> int:
    return next(int(row["incarnation"]) for row in status(port)["servers"] if row["server"] == server)


def _overhead_s(port: int, server: str, full: bool) -> float:
    differences = []
    for _ in range(20 if full else 3):
        itself_s = alone(ECHO, ("echo", {"text": server}))
        until_dormant(port)
        differences.append(through(port, _tool(server)) - itself_s)
    return statistics.median(differences)
