"""Calls through the daemon to a stdio server, compared with a bare application on the same stack, and with FastMCP.

The daemon and what it is compared with run at the same time, but load alternates: ours, theirs, ours, theirs.
"""

from __future__ import annotations

import base64
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from actors.protocol.agreement.versions import Era
from benchmarks import client as mcp
from benchmarks.machine import ROOT
from benchmarks.proxies import Proxy
from benchmarks.running import ECHO, Place, Running, bare, daemon, entry, fastmcp, until_ready
from benchmarks.table import Aim, Row, Spread, percentile, ratios, spread

TEXT = "The quick brown fox jumps over the lazy dog. " * 3
THROUGH_US: mcp.Tool = ("execute_mcp_tool", {"tool_path": "echo:echo", "arguments": {"text": TEXT}})
DIRECT: mcp.Tool = ("echo", {"text": TEXT})
BARE_AIMS = {("HTTP", 1): Aim(">=", 1.5), ("HTTP", 16): Aim(">=", 2.0), ("WebSocket", 16): Aim(">=", 0.7)}
"""Beside the bare application on hypercorn, by transport and number of connections."""
AHEAD_AIM = Aim(">=", 1.0)
"""Beside every other proxy."""

Wire = Literal["HTTP, legacy", "HTTP, modern", "WebSocket, legacy"]


class Plan(msgspec.Struct, frozen=True):
    """How long each round lasts, in seconds, and how many there are."""

    seconds: float
    rounds: int


class Outcome(msgspec.Struct, frozen=True):
    """Of one round of the load generator; see `load.py`."""

    requests: int
    seconds: float
    cpu_s: float
    p50_ms: float
    p99_ms: float
    bytes: int

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.requests / self.seconds


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What the load generator is to do; see `load.py`."""

    port: int
    requests: list[str]
    setup: list[list[str]]
    upgrade: str = ""

    def run(self, seconds: float) -> Outcome:
        """Run one round. Raises `RuntimeError` with what the generator says if an answer is not one."""
        job = msgspec.json.encode({**msgspec.structs.asdict(self), "seconds": seconds})
        command = [sys.executable, "-I", str(ROOT / "benchmarks" / "load.py")]
        done = subprocess.run(command, input=job, capture_output=True, check=False, timeout=seconds + 60)
        if done.returncode:
            raise RuntimeError(done.stderr.decode()[-3000:])
        return msgspec.json.decode(done.stdout, type=Outcome)


class Load(Protocol):
    """What can be done for a round."""

    def run(self, seconds: float) -> Outcome:
        """Run one round of so many seconds."""


@contextmanager
def http_job(port: int, tool: mcp.Tool, era: Era, connections: int, path: str = "/mcp") -> Iterator[Job]:
    """Make a job of calls over HTTP, all in one session, as one client with parallel calls makes them."""
    with mcp.Client(port, era, path) as session:
        requests = [base64.b64encode(session.request(tool, 100 + n)).decode() for n in range(connections)]
        yield Job(port=port, requests=requests, setup=[[]] * connections)


def websocket_job(port: int, tool: mcp.Tool, connections: int) -> Job:
    """Return a job of calls over WebSockets, a session for each."""
    greeting = [
        mcp.frame(mcp.initialize()),
        "!" + mcp.frame({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ]
    requests = [mcp.frame(mcp.call(tool, 100 + n, "legacy")) for n in range(connections)]
    return Job(port=port, requests=requests, setup=[greeting] * connections, upgrade=mcp.upgrade(port))


def bare_job(port: int, like: Job, connections: int) -> Job:
    """Return the same requests for the bare application; a WebSocket without the session's greeting."""
    upgrade = mcp.upgrade(port) if like.upgrade else ""
    return Job(port=port, requests=like.requests[:connections], setup=[[]] * connections, upgrade=upgrade)


def alternating(jobs: Sequence[Load], plan: Plan) -> list[list[Outcome]]:
    """Run rounds of all jobs in turn, after a short one of each that is not counted; a list for each job."""
    for job in jobs:
        job.run(min(0.5, plan.seconds))
    rounds = [[job.run(plan.seconds) for job in jobs] for _ in range(plan.rounds)]
    return [list(column) for column in zip(*rounds, strict=True)]


@contextmanager
def echo_daemon(directory: Path) -> Iterator[Running]:
    """Run the daemon with one echo server that is up."""
    with daemon(Place(directory), {"echo": entry(ECHO, idle_timeout_s=0)}, session_idle_s=600) as running:
        until_ready(running.port)
        yield running


def run(directory: Path, plan: Plan, fastmcp_python: Path | None, proxies: Iterable[Proxy] = ()) -> list[Row]:
    """Measure calls over each wire at 1 and at 16 connections, and beside other proxies."""
    rows: list[Row] = []
    with echo_daemon(directory) as ours:
        for wire in ("HTTP, legacy", "HTTP, modern"):
            for stack in ("hypercorn", "httptools"):
                rows += [_against_bare(ours, wire, connections, plan, directory, stack) for connections in (1, 16)]
        rows += [_against_bare(ours, "WebSocket, legacy", connections, plan, directory) for connections in (1, 16)]
        if fastmcp_python is not None:
            for sessions in ("isolated", "shared"):
                with fastmcp(fastmcp_python, directory, sessions) as theirs:
                    than = "FastMCP's proxy" if sessions == "isolated" else "FastMCP's proxy, one shared session"
                    rows += [_against_proxy(ours, theirs, than, count, plan) for count in (1, 16)]
        for proxy in proxies:
            with proxy.running(directory) as theirs:
                rows += [_against_proxy(ours, theirs, proxy.name, count, plan) for count in (1, 16)]
    return rows


@contextmanager
def _our_job(ours: Running, wire: str, connections: int) -> Iterator[Job]:
    if wire.startswith("WebSocket"):
        yield websocket_job(ours.port, THROUGH_US, connections)
    else:
        with http_job(ours.port, THROUGH_US, "modern" if "modern" in wire else "legacy", connections) as job:
            yield job


def _against_bare(
    ours: Running, wire: str, connections: int, plan: Plan, directory: Path, stack: str = "hypercorn"
) -> Row:
    with _our_job(ours, wire, connections) as job:
        size = _body_bytes(job.run(0.2).bytes, wire)
        with bare(size, directory, stack) as theirs:
            outcomes = alternating([job, bare_job(theirs.port, job, connections)], plan)
    aim = BARE_AIMS.get((wire.partition(",")[0], connections)) if stack == "hypercorn" else None
    return compared(f"`execute_mcp_tool`, {wire}, {_plural(connections)}", f"bare {stack}/trio", outcomes, aim)


def _body_bytes(answer: int, wire: str) -> int:
    """Return how long a body makes the bare application's answers about as long as ours."""
    return answer - 4 if wire.startswith("WebSocket") else answer - 130


def _against_proxy(ours: Running, theirs: Running, than: str, connections: int, plan: Plan) -> Row:
    with (
        http_job(ours.port, THROUGH_US, "legacy", connections) as job,
        http_job(theirs.port, DIRECT, "legacy", connections) as other,
    ):
        outcomes = alternating([job, other], plan)
    return compared(f"the same call, HTTP, legacy, {_plural(connections)}", than, outcomes, AHEAD_AIM)


def _plural(connections: int) -> str:
    return "1 connection" if connections == 1 else f"{connections} connections"


def compared(what: str, than: str, outcomes: list[list[Outcome]], aim: Aim | None = None) -> Row:
    """Return the row of two jobs that alternated, ours first."""
    ours, theirs = outcomes
    ratio: Spread = ratios([one.rate for one in ours], [one.rate for one in theirs])
    return Row(
        what=what,
        measured=_summary(ours),
        compared=f"{than}: {_summary(theirs)}",
        ratio=str(ratio),
        aim=aim,
        value=ratio.median,
    )


def _summary(rounds: list[Outcome]) -> str:
    rate = spread([one.rate for one in rounds]).median
    middle = percentile([one.p50_ms for one in rounds], 0.5)
    late = percentile([one.p99_ms for one in rounds], 0.5)
    return f"{rate:,.0f}/s, p50 {middle:.2f} ms, p99 {late:.2f} ms"
