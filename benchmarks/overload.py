"""`python -m benchmarks.overload`: more calls than can be done, and one client that takes what others need.

- *A busy daemon*: five times as many calls arrive as it can do at most. It should do four fifths of that maximum all
  the same, refuse the rest within 50 ms, and not grow.
- *A slow server*: the same of a server that does one call after the other, in 5 ms each.
- *A flood*: one client makes 1,000 calls a second of a server, another one ten of another server. The 99th percentile
  of the second one should be at most twice what it is alone.

Each figure is printed beside its goal; the exit code says whether all are reached. Load and daemon share the machine.
"""

from __future__ import annotations

import argparse
import base64
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.client import Client
from benchmarks.goals.figure import Figure, count
from benchmarks.machine import ROOT, memory
from benchmarks.running import ECHO, Place, Running, daemon, entry, until_ready
from benchmarks.table import Aim

ARRIVALS = str(ROOT / "benchmarks" / "arrivals.py")
SLOW = (*ECHO, "--takes-s", "0.005")
GOODPUT, REFUSED = Aim(">=", 80, "%"), Aim("<=", 50, "ms")
GROWTH, SLOWER = Aim("<=", 64, "MiB"), Aim("<=", 2, "times")
MANY, FLOOD, FEW = 400, 100, 16
"""Connections. A server works on 64 calls and lets 128 wait; each connection has one call at a time."""
FLOOD_PER_S, CALM_PER_S = 1000.0, 10.0


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """Calls of one tool by one client: how many a second arrive, and over how many connections."""

    server: str
    per_s: float
    connections: int = FEW


@contextmanager
def loading(port: int, load: Load, seconds: float) -> Iterator[subprocess.Popen[bytes]]:
    """Begin a load; its outcome is on stdout."""
    tool = ("echo", {"text": "x" * 100})
    with Client(port, path=f"/mcp/servers/{load.server}") as client:
        requests = [client.request(tool, number + 1) for number in range(load.connections)]
    job: dict[str, Any] = {"port": port, "seconds": seconds, "per_s": load.per_s}
    job["requests"] = [base64.b64encode(request).decode() for request in requests]
    with subprocess.Popen([sys.executable, ARRIVALS], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(msgspec.json.encode(job))
        process.stdin.close()
        process.stdin = None
        try:
            yield process
        finally:
            process.kill()


def outcome(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Wait for the outcome of a load."""
    said, _ = process.communicate(timeout=300)
    found: dict[str, Any] = msgspec.json.decode(said)
    return found


def measured(port: int, load: Load, seconds: float) -> dict[str, Any]:
    """Return the outcome of one load alone."""
    with loading(port, load, seconds) as process:
        return outcome(process)


def overload(at: Running, what: str, server: str, seconds: float) -> Iterator[Figure]:
    """Find the most calls a second, and offer five times as many."""
    most = measured(at.port, Load(server=server, per_s=20_000, connections=FEW), seconds)["good"]["count"] / seconds
    before = memory(at.process.pid).rss_mib
    found = measured(at.port, Load(server=server, per_s=5 * most, connections=MANY), seconds)
    grown = memory(at.process.pid).rss_mib - before
    refused, share = found["refused"], 100 * found["good"]["count"] / seconds / most
    yield Figure(f"{what}: done of the maximum of {most:,.0f} a second", GOODPUT, share)
    yield Figure(f"{what}: p99 of {refused['count']:,} refusals", REFUSED, refused["sent_p99_ms"])
    yield Figure(f"{what}: growth of memory", GROWTH, grown)
    yield count(f"{what}: calls that failed otherwise", found["other"]["count"])


def flood(at: Running, seconds: float) -> Iterator[Figure]:
    """Let one client flood the daemon while another one makes a few calls."""
    calm = Load(server="calm", per_s=CALM_PER_S, connections=4)
    alone = measured(at.port, calm, seconds)
    with loading(at.port, Load(server="echo", per_s=FLOOD_PER_S, connections=FLOOD), seconds + 2) as process:
        beside = measured(at.port, calm, seconds)
        outcome(process)
    p99_ms, alone_ms = beside["good"]["p99_ms"], alone["good"]["p99_ms"]
    yield Figure(
        f"a flood: p99 of another client's calls, {p99_ms:.1f} ms, to {alone_ms:.1f} ms alone",
        SLOWER,
        p99_ms / alone_ms,
    )
    lost = beside["refused"]["count"] + beside["other"]["count"]
    yield count("a flood: calls of another client that failed", lost)


def figures(directory: Path, seconds: float) -> Iterator[Figure]:
    """Yield all of it: so many seconds for each load."""
    awake = {"idle_timeout_s": 0}
    servers = {"echo": entry(ECHO, **awake), "calm": entry(ECHO, **awake), "slow": entry(SLOW, **awake)}
    with daemon(Place(directory), servers) as at:
        until_ready(at.port)
        yield from overload(at, "a busy daemon", "echo", seconds)
        yield from overload(at, "a slow server", "slow", seconds)
        yield from flood(at, seconds)


def measure(directory: Path, full: bool) -> Iterator[Figure]:
    """Measure it as the goal G24: ten seconds of each load, or half of one in the small form."""
    yield from figures(directory, 10.0 if full else 0.5)


def main() -> int:
    """Measure all of it; the exit code says whether every goal was reached."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overload", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    seconds, good = parser.parse_args().seconds, True
    with tempfile.TemporaryDirectory(prefix="overload-") as directory:
        for figure in figures(Path(directory), seconds):
            print(f"- {figure}", flush=True)
            good &= figure.met
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
