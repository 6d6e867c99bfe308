"""`python -m benchmarks.seeing --beside DIR`: what it costs calls that all of it is counted, told and shown.

Daemons with one echo server run beside each other, and load of 16 connections alternates between them: one that counts
and tells nothing (`benchmarks.unseen`), with which all are compared, one that nobody looks at, one whose dashboard is
open, one that counts calls by tool and tells events to a file and to its store while its metrics are read, and two that
send traces of calls. `--beside DIR` is another checkout. What counts is the processor time of the daemon for one
call: browser, reader and load share the machine with it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import msgspec

from benchmarks.execute import THROUGH_US, Job, Outcome, Plan, alternating, http_job
from benchmarks.machine import ROOT, cpu_s, free_port, program
from benchmarks.open_page import pages
from benchmarks.running import ECHO, Place, Running, entry, until_ready
from benchmarks.table import ratios, spread

CONNECTIONS = 16
SCRAPE_S = 1.0
OFF = "switched off"
TOLD: dict[str, Any] = {
    "metrics_tools": True,
    "event_sinks": [{"name": "lines", "type": "file", "path": "events.jsonl"}, {"name": "kept", "type": "store"}],
}


class Measured(msgspec.Struct, frozen=True):
    """A load, and the daemon whose processor time is read around each round of it: `costs`, in microseconds a call."""

    job: Job
    pid: int
    costs: list[float]

    def run(self, seconds: float) -> Outcome:
        before = cpu_s(self.pid)
        outcome = self.job.run(seconds)
        self.costs.append((cpu_s(self.pid) - before) / outcome.requests * 1e6)
        return outcome


@contextmanager
def daemon(directory: Path, checkout: Path, settings: dict[str, Any], module: str = "supervisor") -> Iterator[Running]:
    """Run the daemon of a checkout, or what is started in its place; entered once its server is up."""
    directory.mkdir()
    port = free_port()
    servers = {"echo": entry(ECHO, idle_timeout_s=0)}
    config = Place(directory).write(servers, port, log_level="warning", session_idle_s=3600, **settings)
    command = [*("env", "-C", str(checkout), f"PYTHONPATH={checkout}"), sys.executable, "-m", module, "run"]
    with program([*command, "--config", str(config)], port, directory / "daemon.log") as process:
        until_ready(port)
        yield Running(port, process)


@contextmanager
def reader(port: int) -> Iterator[None]:
    """Read the metrics every second until the end of the block, as Prometheus does, only more often."""
    over = threading.Event()

    def read() -> None:
        while not over.wait(SCRAPE_S):
            urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read()

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def collector() -> Iterator[str]:
    """Take traces, and throw them away; gives the address."""

    class Take(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Take) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1/traces"
        server.shutdown()
        thread.join()


def lines(names: Sequence[str], loads: Sequence[Measured], rounds: Sequence[Sequence[Outcome]]) -> list[str]:
    """Return a line for each load, compared with the first of them."""
    told = []
    for name, load, outcomes in zip(names, loads, rounds, strict=True):
        costs, first = load.costs[1:], loads[0].costs[1:]
        rates, others = [one.rate for one in outcomes], [one.rate for one in rounds[0]]
        told.append(
            f"{name}: {spread(costs).median:.0f} us a call, {spread(rates).median:,.0f}/s; "
            f"ratio of processor time {ratios(costs, first)}, of calls a second {ratios(rates, others)}"
        )
    return told


def main() -> None:
    """Print a line for each daemon."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.seeing", description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--beside", type=Path)
    parser.add_argument("--packages", type=Path, default=ROOT / ".cache" / "browser")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="seeing-") as place, ExitStack() as stack:
        enter = stack.enter_context
        traces: dict[str, Any] = {"tracing": True, "trace_endpoint": enter(collector())}
        kinds: dict[str, tuple[Path, dict[str, Any]]] = {
            OFF: (ROOT, {}),
            "as it is": (ROOT, {}),
            "with an open page": (ROOT, {}),
            "told to a file and the store, metrics read each second": (ROOT, TOLD),
            "traced, one in twenty": (ROOT, {**traces, "trace_ratio": 0.05}),
            "traced": (ROOT, traces),
        }
        if arguments.beside is not None:
            kinds["the other checkout"] = (arguments.beside.resolve(), {})
        loads = []
        for number, (name, (checkout, settings)) in enumerate(kinds.items()):
            module = "benchmarks.unseen" if name == OFF else "supervisor"
            running = enter(daemon(Path(place) / str(number), checkout, settings, module))
            if settings is TOLD:
                enter(reader(running.port))
            if name == "with an open page":
                url = f"http://127.0.0.1:{running.port}"
                next(enter(pages(url, 3600, arguments.packages)))
            job = enter(http_job(running.port, THROUGH_US, "legacy", CONNECTIONS))
            loads.append(Measured(job, running.process.pid, []))
        rounds = alternating(loads, Plan(seconds=arguments.seconds, rounds=arguments.rounds))
    print("\n".join(lines([*kinds], loads, rounds)))


if __name__ == "__main__":
    main()
