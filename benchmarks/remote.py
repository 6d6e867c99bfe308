"""Calls through the daemon to a server behind HTTP, and how soon many of them are known.

The same call is made directly, through FastMCP's proxy and through mcp-remote. All run at once; load alternates.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import client as mcp
from benchmarks.execute import TEXT, Outcome, Plan, alternating, compared, http_job
from benchmarks.machine import ROOT, free_port, program, until
from benchmarks.running import Place, Running, daemon, fastmcp_of, status, until_dormant, until_ready
from benchmarks.table import Aim, Row, percentile, ratios, spread

THROUGH_US: mcp.Tool = ("execute_mcp_tool", {"tool_path": "echo:echo", "arguments": {"text": TEXT}})
DIRECT: mcp.Tool = ("echo", {"text": TEXT})
FAR_S = 0.05
"""What a round trip takes to a server that is far away."""
SERVERS = 100
LISTENING_AIM = Aim("<=", 1.0, "s")
KNOWN_AIM = Aim("<=", 10.0, "s")


class OverStdio:
    """A client of a bridge: one call after the other over its pipes. A job as `execute.Job` is one."""

    def __init__(self, process: subprocess.Popen[bytes], tool: mcp.Tool) -> None:
        self._process = process
        self._tool = tool
        self._ask(mcp.initialize())
        self._say({"jsonrpc": "2.0", "method": "notifications/initialized"})

    @property
    def pid(self) -> int:
        return self._process.pid

    def _say(self, message: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _ask(self, message: Any) -> int:
        self._say(message)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if b'"result"' not in line:
            raise RuntimeError(f"{message} was answered with {line[:1000]!r}")
        return len(line)

    def run(self, seconds: float) -> Outcome:
        """Run one round."""
        begin, took, size = time.perf_counter(), [], 0
        while (now := time.perf_counter()) - begin < seconds:
            size = self._ask(mcp.call(self._tool, 1, "legacy"))
            took.append((time.perf_counter() - now) * 1000)
        middle, late = percentile(took, 0.5), percentile(took, 0.99)
        return Outcome(len(took), time.perf_counter() - begin, 0.0, middle, late, size)


@contextmanager
def piped(command: Sequence[str], log: Path, tool: mcp.Tool = DIRECT) -> Iterator[OverStdio]:
    """Start a bridge for the block; its client has a session when the block begins."""
    with log.open("wb") as errors:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=ROOT)
    try:
        yield OverStdio(process, tool)
    finally:
        process.kill()
        process.communicate()


@contextmanager
def _echo(directory: Path, delay_s: float = 0.0) -> Iterator[int]:
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.remote_echo", str(port), "--delay", str(delay_s)]
    with program(command, port, directory / "remote_echo.log", end_s=5.0):
        yield port


def run(directory: Path, plan: Plan, fastmcp_python: Path | None, mcp_remote: tuple[str, ...]) -> list[Row]:
    """Measure calls, a first call on a cold connection, and a boot before many servers. `mcp_remote`: its command."""
    rows: list[Row] = []
    with _echo(directory) as port:
        url = f"http://127.0.0.1:{port}/mcp"
        with daemon(Place(directory), {"echo": {"url": url, "idle_timeout_s": 0}}, session_idle_s=600) as ours:
            until_ready(ours.port)
            for connections in (1, 16):
                rows.append(_against(ours, port, "direct", connections, plan))
                if fastmcp_python is not None:
                    for sessions in ("isolated", "shared"):
                        with fastmcp_of((url,), fastmcp_python, directory, sessions) as theirs:
                            than = "FastMCP's proxy" + ("" if sessions == "isolated" else ", one shared session")
                            rows.append(_against(ours, theirs.port, than, connections, plan))
            if mcp_remote:
                with (
                    piped((*mcp_remote, url, "--allow-http"), directory / "mcp-remote.log") as bridge,
                    http_job(ours.port, THROUGH_US, "legacy", 1) as job,
                ):
                    rows.append(compared(_what(1), "mcp-remote, over stdio", alternating([job, bridge], plan)))
    return [*rows, _cold(directory, plan), *_boot(directory, plan.rounds)]


def _what(connections: int) -> str:
    return f"`execute_mcp_tool`, a server over HTTP, {connections} at once"


def _against(ours: Running, port: int, than: str, connections: int, plan: Plan) -> Row:
    with (
        http_job(ours.port, THROUGH_US, "legacy", connections) as job,
        http_job(port, DIRECT, "legacy", connections) as other,
    ):
        return compared(_what(connections), than, alternating([job, other], plan))


def _cold(directory: Path, plan: Plan) -> Row:
    """Call a server that is known, far away, and to which there is no connection; directly it is a new session."""
    ours_ms, direct_ms = [], []
    with _echo(directory, FAR_S) as port:
        entries = {"echo": {"url": f"http://127.0.0.1:{port}/mcp", "idle_timeout_s": 0.3}}
        place = Place(directory / "cold")
        place.directory.mkdir()
        with daemon(place, entries) as ours, mcp.Client(ours.port) as session:
            until_ready(ours.port)
            for _ in range(plan.rounds):
                until_dormant(ours.port)
                ours_ms.append(_took_ms(partial(session.call, THROUGH_US)))
                direct_ms.append(_took_ms(partial(_new_session, port)))
    return Row(
        what=f"first call without a connection, a round trip of {FAR_S * 1000:g} ms",
        measured=f"{spread(ours_ms)} ms",
        compared=f"a new session, direct: {spread(direct_ms)} ms",
        ratio=str(ratios(ours_ms, direct_ms)),
    )


def _new_session(port: int) -> None:
    with mcp.Client(port) as session:
        session.call(DIRECT)


def _took_ms(do: Any) -> float:
    begin = time.perf_counter()
    do()
    return (time.perf_counter() - begin) * 1000


def _boot(directory: Path, rounds: int) -> list[Row]:
    """Boot before many servers of which nothing is known."""
    listening, known = [], []
    with _echo(directory, FAR_S) as port:
        entries = {f"far-{number}": {"url": f"http://127.0.0.1:{port}/{number}/mcp"} for number in range(SERVERS)}
        for number in range(rounds):
            place = Place(directory / f"boot-{number}")
            place.directory.mkdir()
            begin = time.perf_counter()
            with daemon(place, entries) as ours:
                listening.append(time.perf_counter() - begin)
                until(partial(_all_known, ours.port), "all servers are known")
                known.append(time.perf_counter() - begin)
    what = f"{SERVERS} servers over HTTP, none known, a round trip of {FAR_S * 1000:g} ms"
    first, last = spread(listening), spread(known)
    return [
        Row(what=f"listening before {what}", measured=f"{first} s", aim=LISTENING_AIM, value=first.median),
        Row(what=f"all known of {what}", measured=f"{last} s", aim=KNOWN_AIM, value=last.median),
    ]


def _all_known(port: int) -> bool:
    return all(row.get("tools") is not None for row in status(port)["servers"])
