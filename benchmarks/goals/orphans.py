"""G2: nothing of a server outlives it, however it or the daemon ends, though it does all to stay.

The server ignores the end of its input and SIGTERM, and has a child and a detached one. It ends by an order (to sleep,
by its removal from the configuration, by SIGTERM of the daemon) or by `kill -9` of itself, of its shim, of the daemon.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any, Final

from benchmarks.client import Client, page
from benchmarks.goals.figure import Figure, count
from benchmarks.goals.processes import left_after, marked, zombies
from benchmarks.machine import pause, until
from benchmarks.running import Place, Running, daemon, entry
from benchmarks.table import Aim

SERVER: Final = Path(__file__).with_name("stubborn_server.py")
PROCESSES: Final = 3
"""The server, its child, and the detached one."""
ORDERLY: Final = Aim("<=", 5.0, "s")
KILLED: Final = Aim("<=", 2.0, "s")
PATIENCE_S: Final = 30.0
ORDERS = ("sleep", "removal", "SIGTERM of the daemon")
KILLS = ("kill -9 of the server", "kill -9 of its shim", "kill -9 of the daemon")
ALWAYS = (ORDERS[0], *KILLS[:2])
LAST = (*ORDERS[1:], KILLS[2])
"""After one of these there is no such server any more."""
HASTY: Final[dict[str, Any]] = {"stop_eof_s": 0.2, "stop_term_s": 0.2, "backoff_initial_s": 0.1}
"""How long the small form lets the server ignore what it is asked."""


def measure(directory: Path, full: bool) -> Iterator[Figure]:
    """Let 50 daemons have four ends of the server each; three in the small form."""
    took: dict[str, list[float]] = {way: [] for way in (*ORDERS, *KILLS)}
    left = undead = 0
    for number, last in zip(range(50 if full else 3), cycle(LAST), strict=False):
        place = Place(directory / str(number))
        place.directory.mkdir()
        mark = f"goal-orphans-{os.getpid()}-{number}"
        with daemon(place, {"it": entry((sys.executable, str(SERVER), mark), **({} if full else HASTY))}) as running:
            for way in (*ALWAYS, last):
                took_s, still, dead = _end(way, running, place, mark)
                took[way].append(took_s)
                left, undead = left + len(still), undead + len(dead)
                for pid in still:
                    os.kill(pid, signal.SIGKILL)
    yield count(f"processes that were left after {sum(map(len, took.values()))} ends", left)
    yield count("children of the daemon that nobody had waited for, a second later", undead)
    yield Figure("the longest end by an order", ORDERLY, max(max(took[way]) for way in ORDERS))
    yield Figure("the longest end by a kill", KILLED, max(max(took[way]) for way in KILLS))


def _end(way: str, running: Running, place: Place, mark: str) -> tuple[float, set[int], set[int]]:
    with Client(running.port) as client:
        answer = client.call(("execute_mcp_tool", {"tool_path": "it:pid", "arguments": {}}))
    server = int(answer["content"][0]["text"])
    until(lambda: len(marked(mark)) >= PROCESSES, "all of its processes run")
    before, begun = marked(mark), time.monotonic()
    _begin(way, running, place, server)
    left = left_after(before, mark, PATIENCE_S)
    took_s = time.monotonic() - begun
    if dead := zombies(running.process.pid):
        pause(1.0)
    return took_s, left, dead & zombies(running.process.pid)


def _begin(way: str, running: Running, place: Place, server: int) -> None:
    match way:
        case "sleep":
            page(running.port, "/api/servers/it/sleep", body={})
        case "removal":
            place.write({}, running.port, log_level="warning")
            running.process.send_signal(signal.SIGHUP)
        case "SIGTERM of the daemon":
            running.process.terminate()
        case "kill -9 of the server":
            os.kill(server, signal.SIGKILL)
        case "kill -9 of its shim":
            parent = int(Path(f"/proc/{server}/stat").read_text().rpartition(")")[2].split()[1])
            os.kill(parent, signal.SIGKILL)
        case _:
            running.process.kill()
