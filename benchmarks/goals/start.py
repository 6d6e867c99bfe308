"""G23: how soon a daemon listens that has many servers, some broken, and whether the others can be used at once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.client import Client
from benchmarks.goals.figure import Figure, count
from benchmarks.running import ECHO, Place, daemon, entry
from benchmarks.table import Aim

SOON = Aim("<=", 1.0, "s")
BROKEN = (("no-such-program-anywhere",), ("false",), ("sleep", "3600"))
"""Not there, ends at once, never says a word."""


def measure(directory: Path, full: bool) -> Iterator[Figure]:
    """Start one with 100 servers, 30 of them broken; 20 and 6 in the small form."""
    all_of_them, broken = (100, 30) if full else (20, 6)
    servers: dict[str, Any] = {f"good{n:03}": entry(ECHO) for n in range(all_of_them - broken)}
    servers |= {f"broken{n:03}": entry(BROKEN[n % len(BROKEN)], start_timeout_s=5) for n in range(broken)}
    begun = time.perf_counter()
    with daemon(Place(directory), servers) as running:
        yield Figure(
            f"from the command to listening, {all_of_them} servers, {broken} broken", SOON, time.perf_counter() - begun
        )
        answers = [_answers(running.port, f"good{n:03}") for n in range(0, all_of_them - broken, 7)]
        yield count("calls to good servers without an answer", answers.count(False))


def _answers(port: int, server: str) -> bool:
    with Client(port) as client:
        answer = client.answer(("execute_mcp_tool", {"tool_path": f"{server}:echo", "arguments": {"text": "x"}}))
    return "result" in answer and not answer["result"].get("isError")
