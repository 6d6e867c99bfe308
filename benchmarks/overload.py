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
from benchmarks.machine import ROOT, memory
from benchmarks.running import ECHO, Place, Running, daemon, entry, until_ready

ARRIVALS = str(ROOT / "benchmarks" / "arrivals.py")
SLOW = (*ECHO, "--takes-s", "0.005")
GOODPUT, REFUSED_MS, GROWTH_MIB, SLOWER = 0.8, 50.0, 64.0, 2.0
"""The goals."""
MANY, FEW = 100, 16
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


def row(what: str, found: str, goal: str, *, good: bool) -> bool:
    """Print one line of the table."""
    print(f"| {what} | {found} | {goal} | {'yes' if good else '**no**'} |", flush=True)
    return good


def overload(at: Running, what: str, server: str, seconds: float) -> bool:
    """Find the most calls a second, and offer five times as many."""
    most = measured(at.port, Load(server=server, per_s=20_000, connections=FEW), seconds)["good"]["count"] / seconds
    before = memory(at.process.pid).rss_mib
    found = measured(at.port, Load(server=server, per_s=5 * most, connections=MANY), seconds)
    grown = memory(at.process.pid).rss_mib - before
    share = found["good"]["count"] / seconds / most
    print(f"<!-- {what}: at most {most:,.0f}/s; {msgspec.json.encode(found).decode()} -->", flush=True)
    refused = found["refused"]
    return all(
        (
            row(
                f"{what}: done of the maximum",
                f"{share:.0%} of {most:,.0f}/s",
                f">= {GOODPUT:.0%}",
                good=share >= GOODPUT,
            ),
            row(
                f"{what}: 99 of 100 refusals within",
                f"{refused['sent_p99_ms']:.0f} ms ({refused['count']:,})",
                f"<= {REFUSED_MS:.0f} ms",
                good=refused["sent_p99_ms"] <= REFUSED_MS,
            ),
            row(f"{what}: memory", f"+{grown:.0f} MiB", f"<= {GROWTH_MIB:.0f} MiB", good=grown <= GROWTH_MIB),
            row(f"{what}: failed otherwise", f"{found['other']['count']}", "0", good=not found["other"]["count"]),
        )
    )


def flood(at: Running, seconds: float) -> bool:
    """Let one client flood the daemon while another one makes a few calls."""
    calm = Load(server="calm", per_s=CALM_PER_S, connections=4)
    alone = measured(at.port, calm, seconds)
    with loading(at.port, Load(server="echo", per_s=FLOOD_PER_S, connections=MANY), seconds + 2) as process:
        beside = measured(at.port, calm, seconds)
        flooding = outcome(process)
    ratio = beside["good"]["p99_ms"] / alone["good"]["p99_ms"]
    print(f"<!-- alone {alone}; beside {beside}; flood {flooding} -->", flush=True)
    lost = beside["refused"]["count"] + beside["other"]["count"]
    return all(
        (
            row(
                "a flood: 99 of 100 calls of another client",
                f"{beside['good']['p99_ms']:.1f} ms, alone {alone['good']['p99_ms']:.1f} ms",
                f"<= {SLOWER:.0f} times",
                good=ratio <= SLOWER,
            ),
            row("a flood: calls of another client that failed", f"{lost}", "0", good=not lost),
        )
    )


def main() -> int:
    """Measure all of it; the exit code says whether every goal was reached."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overload", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    seconds = parser.parse_args().seconds
    awake = {"idle_timeout_s": 0}
    servers = {"echo": entry(ECHO, **awake), "calm": entry(ECHO, **awake), "slow": entry(SLOW, **awake)}
    print("| what | measured | goal | reached |\n| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory(prefix="overload-") as directory, daemon(Place(Path(directory)), servers) as at:
        until_ready(at.port)
        good = [
            overload(at, "a busy daemon", "echo", seconds),
            overload(at, "a slow server", "slow", seconds),
            flood(at, seconds),
        ]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
