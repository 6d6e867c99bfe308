"""A fleet of two daemons and an engine on one machine: what a call to the other node costs, what two nodes bear, how
soon clients of one know of a change at the other, how soon a server answers again when its node was killed, and what
the engine has to do.
"""

from __future__ import annotations

import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks import client as mcp
from benchmarks.execute import THROUGH_US, Job, Outcome, Plan, alternating, http_job
from benchmarks.machine import ROOT, pause, until
from benchmarks.running import ECHO, Place, Running, daemon, entry, until_ready
from benchmarks.subscriptions import opened
from benchmarks.table import Aim, Row, percentile, ratios, spread
from tests.fleet.valkey import ValkeyServer, valkey

LEASE_S: Final = 10.0
IDLE_S: Final = 30.0
MORE_MS: Final = Aim("<=", 1.5, "ms")
"""What a call to the other node may take longer, of 16 connections."""
SOON: Final = Aim("<=", 1000, "ms")
SEARCH: Final[mcp.Tool] = ("discover_mcp_tools", {"query": "say something again"})
TOLD: Final = "notifications/tools/list_changed"
GROWING: Final = (sys.executable, "-I", "-S", str(ROOT / "tests" / "e2e" / "stand_in.py"), "growing")


class Nodes(msgspec.Struct, frozen=True):
    """Two nodes. What both have was started at the first one."""

    first: Running
    second: Running
    engine: ValkeyServer


@contextmanager
def nodes(directory: Path, first: Sequence[str], second: Sequence[str]) -> Iterator[Nodes]:
    """Run them, with the servers that each of them has."""
    with ExitStack() as stack:
        directory.mkdir()
        engine = stack.enter_context(valkey(directory))
        fleet = {"engine": engine.url, "keys": ["a key of the benchmark, which is long"], "lease_s": LEASE_S}
        settings: dict[str, Any] = {"max_connections": 20_000, "max_sessions": 20_000, "websocket_ping_s": 3600}
        running = []
        for node, names in (("first", first), ("second", second)):
            place = Place(directory / node)
            place.directory.mkdir()
            servers = {name: entry(ECHO if name != "growing" else GROWING, idle_timeout_s=0) for name in names}
            started = daemon(place, servers, fleet={**fleet, "node": node}, session_idle_s=600, **settings)
            running.append(stack.enter_context(started))
            until_ready(running[-1].port)
            for name in names:
                until(lambda: _answers(running[-1].port, name), f"{name} answers")  # noqa: B023 - it is called now
        yield Nodes(running[0], running[1], engine)


def run(directory: Path, plan: Plan, sockets: int) -> list[Row]:
    """Measure all of it, changes with so many WebSockets. Raises `FileNotFoundError` where there is no engine."""
    with nodes(directory / "fleet-calls", ["echo"], ["echo"]) as fleet:
        rows = [_distance(fleet, count, plan) for count in (1, 16)]
        rows.append(_commands(fleet, plan))
        rows.append(_failover(fleet))
    with nodes(directory / "fleet-change", ["growing"], ["growing"]) as fleet:
        rows.append(_change(fleet, sockets))
    with nodes(directory / "fleet-both", ["echo"], ["twin"]) as fleet:
        twin: mcp.Tool = ("execute_mcp_tool", {**THROUGH_US[1], "tool_path": "twin:echo"})
        rows.append(_both(fleet, "calls", (THROUGH_US, twin), plan))
        rows.append(_both(fleet, "searches", (SEARCH, SEARCH), plan))
    return rows


def _distance(fleet: Nodes, connections: int, plan: Plan) -> Row:
    with (
        http_job(fleet.second.port, THROUGH_US, "modern", connections) as far,
        http_job(fleet.first.port, THROUGH_US, "modern", connections) as near,
    ):
        there, here = alternating([far, near], plan)
    more = spread([a.p50_ms - b.p50_ms for a, b in zip(there, here, strict=True)])
    plural = "1 connection" if connections == 1 else f"{connections} connections"
    return Row(
        what=f"a call to a server of the other node, {plural}",
        measured=f"p50 {_p50(there):.2f} ms, {more} ms more",
        compared=f"at the node of the server: p50 {_p50(here):.2f} ms",
        ratio=str(ratios([one.p50_ms for one in there], [one.p50_ms for one in here])),
        aim=MORE_MS if connections == 16 else None,
        value=more.median if connections == 16 else None,
    )


def _p50(outcomes: Sequence[Outcome]) -> float:
    return percentile([one.p50_ms for one in outcomes], 0.5)


def _commands(fleet: Nodes, plan: Plan) -> Row:
    """Count what the engine is asked, in the quiet and under calls to the other node."""
    before = _asked(fleet.engine)
    pause(IDLE_S)
    idle = (_asked(fleet.engine) - before) / IDLE_S
    with http_job(fleet.second.port, THROUGH_US, "modern", 16) as job:
        before, begin = _asked(fleet.engine), time.perf_counter()
        calls = job.run(plan.seconds).requests
        busy = (_asked(fleet.engine) - before) / (time.perf_counter() - begin)
    return Row(
        what="commands that two nodes have for the engine",
        measured=f"{idle:.1f}/s in the quiet, {busy:.1f}/s under {calls / plan.seconds:,.0f} calls/s to the other node",
    )


def _asked(engine: ValkeyServer) -> int:
    """Return how many commands the engine had so far."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(engine.url.removeprefix("unix://"))
        asking.sendall(b"INFO stats\r\n")
        told = b""
        while b"total_commands_processed:" not in told or not told.endswith(b"\r\n"):
            told += asking.recv(65536)
    return int(told.partition(b"total_commands_processed:")[2].split()[0])


def _failover(fleet: Nodes) -> Row:
    """Kill the node that has the server, and call it at the other one until it answers."""
    fleet.first.process.send_signal(signal.SIGKILL)
    begin = time.perf_counter()
    until(lambda: _answers(fleet.second.port, "echo"), "the server answers again", 120.0, step_s=0.05)
    took = time.perf_counter() - begin
    return Row(
        what=f"a node is killed: its server answers at the other one, lease {LEASE_S:g} s",
        measured=f"{took:.1f} s",
        aim=Aim("<=", LEASE_S + 5.0, "s"),
        value=took,
    )


def _answers(port: int, server: str) -> bool:
    try:
        with mcp.Client(port, "modern") as client:
            client.call(("execute_mcp_tool", {"tool_path": f"{server}:echo", "arguments": {"text": "x"}}))
    except RuntimeError:
        return False
    return True


def _change(fleet: Nodes, sockets: int) -> Row:
    """Have clients of both nodes wait for a change of a server's tools, half of them at each."""
    late: dict[str, list[float]] = {"here": [], "there": []}
    with (
        opened(_listening(fleet.first.port, sockets // 2)) as here,
        opened(_listening(fleet.second.port, sockets // 2)) as there,
    ):
        for _ in range(3):
            pause(2.0)
            here.ask("begin")
            there.ask("begin")
            changed_at = str(time.monotonic())
            with mcp.Client(fleet.first.port, "modern") as client:
                client.call(("execute_mcp_tool", {"tool_path": "growing:grow", "arguments": {}}))
            with ThreadPoolExecutor(2) as both:
                answers = [both.submit(each.ask, changed_at) for each in (here, there)]
                for name, answer, count in zip(late, answers, (here.count, there.count), strict=True):
                    late_ms = answer.result()["late_ms"]
                    if len(late_ms) < count:
                        raise RuntimeError(f"{len(late_ms)} of {count} clients {name} were told")
                    late[name].append(percentile(late_ms, 0.99))
        total = here.count + there.count
    middle = {name: spread(rounds).median for name, rounds in late.items()}
    return Row(
        what=f"a change of tools, told to {total:,} WebSockets, half of them at the other node",
        measured=f"p99 {middle['there']:,.0f} ms there, {middle['here']:,.0f} ms at the node of the server",
        aim=SOON,
        value=middle["there"],
    )


def _listening(port: int, count: int) -> dict[str, Any]:
    initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    setup = [mcp.frame(mcp.initialize()), "!" + mcp.frame(initialized)]
    upgrade = mcp.upgrade(port, "/mcp/all")
    order = {"port": port, "count": count, "told": TOLD, "upgrade": upgrade, "setup": setup, "last": ""}
    return {**order, "pause_s": 0.01}


def _both(fleet: Nodes, what: str, tools: tuple[mcp.Tool, mcp.Tool], plan: Plan) -> Row:
    """Have one of two nodes at work, and both at once, each with what is its own."""
    places = zip((fleet.first.port, fleet.second.port), tools, strict=True)
    with ExitStack() as stack:
        jobs = [stack.enter_context(http_job(port, tool, "modern", 16)) for port, tool in places]
        rounds = [(jobs[0].run(plan.seconds).rate, _together(jobs, plan.seconds)) for _ in range(plan.rounds)]
    one, two = zip(*rounds, strict=True)
    of = "each of a server of its own, " if what == "calls" else ""
    return Row(
        what=f"{what} at two nodes at once, {of}on one machine",
        measured=f"{spread(two).median:,.0f}/s",
        compared=f"one of them: {spread(one).median:,.0f}/s",
        ratio=str(ratios(two, one)),
    )


def _together(jobs: Sequence[Job], seconds: float) -> float:
    with ThreadPoolExecutor(len(jobs)) as pool:
        outcomes: Iterator[Outcome] = pool.map(lambda job: job.run(seconds), jobs)
        return sum(outcome.rate for outcome in outcomes)
