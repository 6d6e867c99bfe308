"""G12a: what is left behind by a million calls, of which one in a thousand goes wrong.

Calls over HTTP in both eras and over a WebSocket, and searches, as fast as they are answered. Beside them, for each
thousand: a server is killed, a connection torn, a call times out, or a tool says that it failed.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

import httpx2
from msgspec import Struct

from benchmarks.client import ACCEPT, Client, Tool, call, posted
from benchmarks.execute import Job, http_job, websocket_job
from benchmarks.goals.faulty import HEALTHY, LIVELY, faulty_daemon
from benchmarks.goals.figure import Figure
from benchmarks.machine import pause
from benchmarks.running import Running, status
from benchmarks.table import Aim
from tests.e2e.invariants import figures_of, metrics_of

GROWTH: Final = Aim("<=", 2.0, "%")
DESCRIPTORS: Final = Aim("<=", 5)
TASKS: Final = Aim("<=", 2)
EACH: Final = 1000
"""One call of so many goes wrong."""
CALM_S: Final = 40.0
"""So long may it take until what was used is given back: connections of clients that do not come again, and threads,
which wait for more work for ten seconds."""
LOOK_S: Final = 1.0
SEARCHES: Final = 50
"""In each round of the others."""
FRAIL: Final = "frail"
RESET: Final = struct.pack("ii", 1, 0)


class Held(Struct, frozen=True):
    """What a daemon holds while nothing is asked of it."""

    rss_mib: float
    descriptors: int
    threads: int
    tasks: int


def measure(directory: Path, full: bool) -> Iterator[Figure]:
    """Compare after 100,000 calls and after a million; after 200 and 1,200 in the small form."""
    first, last, seconds = (100_000, 1_000_000, 5.0) if full else (200, 1200, 0.3)
    calls = directory / "calls"
    calls.mkdir()
    with (
        faulty_daemon(calls, [FRAIL], {**LIVELY, "call_timeout_s": 1}, session_idle_s=7200) as running,
        _jobs(running.port) as jobs,
    ):
        load = _Load(running, jobs, seconds, CALM_S if full else CALM_S / 2)
        load.until(first)
        before = load.held(None)
        load.until(last)
        after = load.held(before)
        made, wrong = load.made, load.wrong
    yield Figure(
        f"growth of memory from call {first:,} to {made:,}, {wrong} of which went wrong",
        GROWTH,
        100 * (after.rss_mib / before.rss_mib - 1),
    )
    yield Figure("more descriptors", DESCRIPTORS, after.descriptors - before.descriptors, exact=True)
    yield Figure("more threads", TASKS, after.threads - before.threads, exact=True)
    yield Figure("more tasks", TASKS, after.tasks - before.tasks, exact=True)


@contextmanager
def _jobs(port: int) -> Iterator[list[Job]]:
    """Make the loads, whose sessions last for the block."""
    echo: Tool = ("execute_mcp_tool", {"tool_path": f"{HEALTHY}:echo", "arguments": {"text": "x" * 100}})
    with ExitStack() as stack:
        yield [
            stack.enter_context(http_job(port, echo, "legacy", 4)),
            stack.enter_context(http_job(port, echo, "modern", 4)),
            websocket_job(port, echo, 4),
        ]


class _Load:
    """Makes calls, and `made` so many so far; `wrong` of them went wrong."""

    def __init__(self, running: Running, jobs: list[Job], seconds: float, calm_s: float) -> None:
        self.made = 0
        self.wrong = 0
        self._running = running
        self._jobs = jobs
        self._seconds = seconds
        self._calm_s = calm_s
        self._luck = random.Random(1)

    def until(self, made: int) -> None:
        """Make calls until there are so many."""
        with ThreadPoolExecutor(len(self._jobs)) as threads:
            while self.made < made:
                rounds = [threads.submit(job.run, self._seconds) for job in self._jobs]
                while self.wrong < self.made // EACH:
                    self._luck.choice((self._kill, self._tear, self._wait_in_vain, self._fail))()
                    self.wrong += 1
                self._search()
                self.made += sum(each.result().requests for each in rounds)

    def _search(self) -> None:
        with Client(self._running.port) as client:
            for number in range(SEARCHES):
                client.call(("discover_mcp_tools", {"query": f"echo {number}"}))
        self.made += SEARCHES

    def held(self, before: Held | None) -> Held:
        """Return what the daemon holds once it holds no more than before, or nothing is given back any more."""
        end, last = time.monotonic() + self._calm_s, self._held()
        while time.monotonic() < end:
            pause(LOOK_S)
            now = self._held()
            if before is None and (now.descriptors, now.threads, now.tasks) == (
                last.descriptors,
                last.threads,
                last.tasks,
            ):
                break
            if before is not None and _near(now, before):
                break
            last = now
        return self._held()

    def _held(self) -> Held:
        figures = figures_of(self._running.process.pid)
        text = httpx2.get(f"http://127.0.0.1:{self._running.port}/metrics", trust_env=False, timeout=60).text
        return Held(figures.rss_mib, figures.descriptors, figures.threads, int(metrics_of(text)["mcpvisor_tasks"]))

    # What goes wrong --------------------------------------------------------------------------------------------------

    def _kill(self) -> None:
        for row in status(self._running.port)["servers"]:
            if row["server"] == FRAIL and row["pid"]:
                with suppress(ProcessLookupError):
                    os.kill(row["pid"], signal.SIGKILL)

    def _tear(self) -> None:
        message = call(_frail("mute"), 1, "legacy")
        with socket.create_connection(("127.0.0.1", self._running.port)) as connection:
            connection.sendall(posted(self._running.port, "/mcp", message, ACCEPT))
            pause(LOOK_S / 10)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)

    def _wait_in_vain(self) -> None:
        self._ask("mute")

    def _fail(self) -> None:
        self._ask("tells-secret")

    def _ask(self, fault: str) -> None:
        with Client(self._running.port, "modern") as client:
            answer = client.answer(_frail(fault))
        assert "error" in answer or answer["result"].get("isError"), answer


def _frail(fault: str) -> Tool:
    given = {"text": "it", "fault": fault}
    return "execute_mcp_tool", {"tool_path": f"{FRAIL}:fault", "arguments": given}


def _near(now: Held, before: Held) -> bool:
    apart = (now.descriptors - before.descriptors, now.threads - before.threads, now.tasks - before.tasks)
    return apart[0] <= DESCRIPTORS.bound and max(apart[1:]) <= TASKS.bound
