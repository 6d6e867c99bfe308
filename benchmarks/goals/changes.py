"""G19: servers whose lists change faster than anybody could read them: how often they are read, and the last state."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from benchmarks.client import Client, call
from benchmarks.goals.figure import Figure, count
from benchmarks.machine import pause
from benchmarks.running import Place, daemon, entry, until_ready
from benchmarks.table import Aim

SERVER: Final = str(Path(__file__).with_name("storming_server.py"))
READS: Final = Aim("<=", 1.0, "a second")
SHOWN: Final = Aim("<=", 2.0, "s")
PER_S: Final = 500.0
PATIENCE_S: Final = 30.0
LOOK_S: Final = 0.02


def measure(directory: Path, full: bool) -> Iterator[Figure]:
    """A storm of ten seconds, and 1,000 short ones; one of three and eight short ones in the small form."""
    seconds, servers, runs = (10.0, 20, 50) if full else (3.0, 4, 2)
    names = [f"storming{number}" for number in range(servers)]
    with daemon(Place(directory), {name: entry((sys.executable, SERVER), idle_timeout_s=0) for name in names}) as at:
        until_ready(at.port)
        before = int(_ask(at.port, names[0], "lists"))
        begun = time.monotonic()
        shown_s = [_storm(at.port, names[0], seconds)]
        took_s = time.monotonic() - begun
        reads = int(_ask(at.port, names[0], "lists")) - before
        with ThreadPoolExecutor(servers) as threads:
            each = threads.map(lambda name: [_storm(at.port, name, 0.02) for _ in range(runs)], names)
        shorts_s = [took for some in each for took in some]
    # The first one begins the first second.
    yield Figure(
        f"readings of the list during {PER_S:g} changes a second for {seconds:g} s", READS, (reads - 1) / took_s
    )
    yield count(f"last changes that were never seen, of {len(shorts_s) + 1} storms", shorts_s.count(None))
    seen_s = [took for took in (*shown_s, *shorts_s) if took is not None]
    yield Figure("the longest from the last change until clients see it", SHOWN, max(seen_s, default=PATIENCE_S))


def _ask(port: int, server: str, tool: str, **arguments: float) -> str:
    with Client(port) as client:
        result = client.call(("execute_mcp_tool", {"tool_path": f"{server}:{tool}", "arguments": arguments}))
    said: str = result["content"][0]["text"]
    return said


def _storm(port: int, server: str, seconds: float) -> float | None:
    """Have a storm, and return how long after its end its last tool was seen, if it was."""
    last = _ask(port, server, "storm", seconds=seconds, per_s=PER_S)
    ended = time.monotonic()
    with Client(port, path=f"/mcp/servers/{server}") as client:
        while time.monotonic() < ended + PATIENCE_S:
            _, body = client.post({**call(("", {}), 1, "legacy"), "method": "tools/list", "params": {}}, client.headers)
            if f'"{last}"'.encode() in body:
                return time.monotonic() - ended
            pause(LOOK_S)
    return None
