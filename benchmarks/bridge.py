"""What the bridge between the eras costs a call, and what a flood of progress to one client costs the others.

Each call is compared with the same call made directly to the same server, in that server's own era. All run at once;
load alternates.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import get_args

import msgspec

from actors.protocol.agreement.versions import Era
from benchmarks import client as mcp
from benchmarks.execute import TEXT, Job, Load, Outcome, Plan, alternating, compared, http_job
from benchmarks.machine import ROOT, cpu_s, free_port, program
from benchmarks.questions import AskedClient
from benchmarks.running import ECHO, Place, Running, daemon, entry, until_ready
from benchmarks.table import Aim, Row, percentile

CALL: mcp.Tool = ("echo", {"text": TEXT})
FLOOD_PER_S = 1000
FLOOD_AIM = Aim(">=", 0.9)
START_S = 1.0
"""By so much longer than a round is there a flood: the load generator has to start."""
ERAS: tuple[Era, ...] = get_args(Era)
WAYS = {
    ("legacy", "legacy"): "a request",
    ("legacy", "modern"): "`input_required` made a request",
    ("modern", "legacy"): "a request made `input_required`, the call parked",
    ("modern", "modern"): "`input_required`",
}


@contextmanager
def servers(directory: Path) -> Iterator[dict[Era, int]]:
    """Run a server of each era; their ports."""
    with ExitStack() as stack:
        ports: dict[Era, int] = {}
        for era in ERAS:
            ports[era] = free_port()
            command = [sys.executable, "-m", "benchmarks.bridge_server", str(ports[era]), era]
            stack.enter_context(program(command, ports[era], directory / f"{era}_server.log", end_s=5.0))
        yield ports


def entries(ports: dict[Era, int]) -> dict[str, object]:
    """Return the configuration of these servers; their names are their eras.

    They ask hundreds of questions a second, which no person is asked.
    """
    common = {"idle_timeout_s": 0, "max_questions_per_min": 1_000_000_000}
    return {era: {"url": f"http://127.0.0.1:{port}/mcp", **common} for era, port in ports.items()}


def door(era: Era) -> str:
    """Return the path of the server of this era."""
    return f"/mcp/servers/{era}"


def run(directory: Path, plan: Plan, numbers: tuple[int, ...] = (1, 16)) -> list[Row]:
    """Measure calls with and without a question for each pair of eras, and the calls of others beside a flood.

    `numbers`: how many calls there are at once.
    """
    rows: list[Row] = []
    with servers(directory) as ports:
        beside = {"beside": entry(ECHO, idle_timeout_s=0)}
        with daemon(Place(directory), {**entries(ports), **beside}, session_idle_s=600) as ours:
            until_ready(ours.port)
            pairs = [(client, server) for client in ERAS for server in ERAS]
            for client, server in pairs:
                rows += [_calls(ours, ports[server], client, server, connections, plan) for connections in numbers]
            rows += [_asked(ours, ports[server], client, server, plan) for client, server in pairs]
            for era in ERAS:
                rows += [row for connections in numbers for row in _flooded(ours, ports[era], era, connections, plan)]
    return rows


def _calls(ours: Running, port: int, client: Era, server: Era, connections: int, plan: Plan) -> Row:
    with (
        http_job(ours.port, CALL, client, connections, door(server)) as job,
        http_job(port, CALL, server, connections) as direct,
    ):
        through = Costed(job, ours.process.pid, [])
        outcomes = alternating([through, direct], plan)
    what = f"a call, {client} client, {server} server, {connections} at once"
    return through.told(compared(what, "direct", outcomes))


def _asked(ours: Running, port: int, client: Era, server: Era, plan: Plan) -> Row:
    with AskedClient(ours.port, client, door(server)) as job, AskedClient(port, server, "/mcp") as direct:
        through = Costed(job, ours.process.pid, [])
        outcomes = alternating([through, direct], plan)
    what = f"a call with one question, {client} client, {server} server: {WAYS[client, server]}"
    return through.told(compared(what, "direct", outcomes))


class Costed(msgspec.Struct, frozen=True):
    """A load, and what each of its calls costs a process: ms of processor time, a number for each round."""

    job: Load
    pid: int
    cost_ms: list[float]

    def run(self, seconds: float) -> Outcome:
        """Run one round."""
        before = cpu_s(self.pid)
        outcome = self.job.run(seconds)
        self.cost_ms.append((cpu_s(self.pid) - before) * 1000 / max(1, outcome.requests))
        return outcome

    def told(self, row: Row) -> Row:
        """Return a row that also says what was found."""
        middle = percentile(self.cost_ms, 0.5)
        return msgspec.structs.replace(row, measured=f"{row.measured}, {middle:.2f} ms of the daemon's processor time")


class Flooded(msgspec.Struct, frozen=True):
    """A load that runs while a client is told of progress, at this port. A job as `execute.Job` is one."""

    job: Job
    port: int
    request: bytes
    rates: list[float]

    def run(self, seconds: float) -> Outcome:
        """Run one round; adds to `rates` how many messages a second arrived."""
        command = [sys.executable, "-I", str(ROOT / "benchmarks" / "flooded.py"), str(self.port)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps({"request": base64.b64encode(self.request).decode()}) + "\n")
            process.stdin.flush()
            if process.stdout.readline() != "begun\n":
                raise RuntimeError("no progress came")
            outcome = self.job.run(seconds)
            told = msgspec.json.decode(process.stdout.readline())
        self.rates.append(told["told"] / told["seconds"])
        return outcome


def _flooded(ours: Running, port: int, era: Era, connections: int, plan: Plan) -> list[Row]:
    """Calls of a client to another server: beside a flood through the daemon, alone, and beside one past the daemon."""
    flood: mcp.Tool = ("flood", {"rate": FLOOD_PER_S, "seconds": plan.seconds + START_S})
    with (
        http_job(ours.port, CALL, era, connections, "/mcp/servers/beside") as job,
        mcp.Client(ours.port, era, door(era)) as client,
        mcp.Client(port, era) as direct,
    ):
        flooded = Flooded(job, ours.port, client.request(flood, 1, "flood"), [])
        past = Flooded(job, port, direct.request(flood, 1, "flood"), [])
        with_flood, alone, with_past = alternating([flooded, job, past], plan)
    told = sum(flooded.rates) / len(flooded.rates)
    what = f"a {era} client's calls, {connections} at once; another one is told of progress {told:,.0f} times a second"
    return [
        compared(what, "nobody else there", [with_flood, alone], FLOOD_AIM),
        compared(what, "told of it by the server itself", [with_flood, with_past]),
    ]
