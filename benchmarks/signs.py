"""`python -m benchmarks.signs --servers 100`: what it costs to ask quiet servers for a sign of life, and what it gives.

- How often the daemon wakes up in a second with so many servers awake and idle, with the watch and without.
- How long a call takes that comes after a pause, whose server is asked first, and one that follows at once.
- How long a call takes whose server was stopped by a signal before.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.client import Client
from benchmarks.machine import pause, until, wake_ups
from benchmarks.running import ECHO, Place, Running, daemon, entry, status, until_ready

PAUSE_S = 5.5
"""After that a server counts as quiet."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.signs", description=__doc__.splitlines()[0])
    parser.add_argument("--servers", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long wake-ups are counted")
    parser.add_argument("--rounds", type=int, default=10, help="how many pauses, and signals")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        for watch_s in (0.0, 60.0):
            wakes = count_wakes(Path(directory), options.servers, options.seconds, watch_s)
            print(f"{options.servers} idle servers, watch_interval_s {watch_s:g}: {wakes:.2f} wake-ups a second")
        pauses, following, stops = measure_calls(Path(directory), options.rounds)
    ratio = statistics.median(pauses) / statistics.median(following)
    print(f"a call after a pause: {milliseconds(pauses)}, at once: {milliseconds(following)}, ratio {ratio:.2f}")
    print(f"a call after SIGSTOP, answered by the next process: {milliseconds(stops)}")
    return 0


def milliseconds(seconds: list[float]) -> str:
    return f"{statistics.median(seconds) * 1000:.1f} ms ({min(seconds) * 1000:.1f} to {max(seconds) * 1000:.1f})"


def count_wakes(directory: Path, servers: int, seconds: float, watch_s: float) -> float:
    """Return how often a second the threads of an idle daemon go on after a wait."""
    place = Place(directory / f"wakes-{watch_s:g}")
    place.directory.mkdir()
    echo = entry(ECHO, idle_timeout_s=0, watch_interval_s=watch_s)
    with daemon(place, {f"s{number}": echo for number in range(servers)}) as running:
        until_ready(running.port)
        wake_all(running, [f"s{number}" for number in range(servers)])
        pause(2 * PAUSE_S)
        return wake_ups(running.process.pid, seconds) / seconds


def wake_all(running: Running, names: list[str]) -> None:
    with Client(running.port) as client:
        for name in names:
            client.call(("execute_mcp_tool", {"tool_path": f"{name}:echo", "arguments": {"text": "x"}}))
    until(lambda: all(row["state"] == "ready" for row in status(running.port)["servers"]), "all are ready", 60.0)


def measure_calls(directory: Path, rounds: int) -> tuple[list[float], list[float], list[float]]:
    """Return how long calls took, in seconds: after a pause, right after that, and to a process that was stopped."""
    place = Place(directory / "calls")
    place.directory.mkdir()
    pauses: list[float] = []
    following: list[float] = []
    stops: list[float] = []
    with daemon(place, {"it": entry(ECHO, idle_timeout_s=0, backoff_initial_s=0.01)}) as running:
        until_ready(running.port)
        with Client(running.port) as client:
            time_call(client)
            for _ in range(rounds + 1):
                pause(PAUSE_S)
                pauses.append(time_call(client))
                following.append(time_call(client))
            for _ in range(min(rounds, 4)):  # more failures would give the server up
                pause(PAUSE_S)
                (row,) = status(running.port)["servers"]
                os.kill(row["pid"], signal.SIGSTOP)
                stops.append(time_call(client))
    return pauses[1:], following[1:], stops  # before the first one it is not known to answer


def time_call(client: Client) -> float:
    begin = time.perf_counter()
    client.call(("execute_mcp_tool", {"tool_path": "it:echo", "arguments": {"text": "x"}}))
    return time.perf_counter() - begin


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
