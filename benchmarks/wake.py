"""How long a call to a dormant server takes, compared with what the server itself needs.

The server itself: spawned and driven over pipes by the least client there can be (initialize, initialized, the call).
Through the daemon: one call over a connection that is open, to a server that is asleep and was listed before. Both
take turns.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import client as mcp
from benchmarks.peers import has
from benchmarks.running import ECHO, Place, daemon, entry, until_dormant, until_ready
from benchmarks.table import Aim, Row, ratios, spread

AIM = Aim("<=", 1.10)
IDLE_S = 0.3
"""How soon the servers fall asleep again; long enough for a call, short enough to wait for."""

Command = tuple[str, ...]


def run(directory: Path, rounds: int, sdk_python: Path | None) -> list[Row]:
    """Measure the echo server, and a published server made with the official SDK if `sdk_python` has it."""
    rows = [_measure(directory, "the minimal echo server", ECHO, ("echo", {"text": "x"}), rounds)]
    if sdk_python is not None and has(sdk_python, "mcp_server_time"):
        command = (str(sdk_python), "-m", "mcp_server_time", "--local-timezone=UTC")
        call = ("get_current_time", {"timezone": "UTC"})
        rows.append(_measure(directory, "mcp-server-time (official SDK)", command, call, rounds))
    return rows


def _measure(directory: Path, what: str, command: Command, call: mcp.Tool, rounds: int) -> Row:
    place = Place(directory / f"wake-{call[0]}")
    place.directory.mkdir()
    tool = ("execute_mcp_tool", {"tool_path": f"it:{call[0]}", "arguments": call[1]})
    ours: list[float] = []
    theirs: list[float] = []
    with daemon(place, {"it": entry(command, idle_timeout_s=IDLE_S)}) as running:
        until_ready(running.port)
        for number in range(rounds + 1):  # the first is not counted: files get into the cache of the kernel
            itself_s = alone(command, call)
            until_dormant(running.port)
            through_s = through(running.port, tool)
            if number:
                ours.append(through_s)
                theirs.append(itself_s)
    ratio = ratios(ours, theirs)
    return Row(
        what=f"cold wake of {what}, to its first answer",
        measured=f"{spread(ours).median * 1000:.0f} ms",
        compared=f"the server itself: {spread(theirs).median * 1000:.0f} ms",
        ratio=str(ratio),
        aim=AIM,
        value=ratio.median,
    )


def through(port: int, tool: mcp.Tool) -> float:
    """Return how long a call through the daemon takes, in seconds."""
    with mcp.Client(port) as client:
        begin = time.perf_counter()
        client.call(tool)
        return time.perf_counter() - begin


def alone(command: Command, call: mcp.Tool) -> float:
    """Return how long the server itself takes from its start to its first answer, in seconds."""
    begin = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        _say(process, mcp.initialize())
        _answer(process)
        _say(process, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        _say(process, mcp.call(call, 1, "legacy"))
        answer = _answer(process)
        took = time.perf_counter() - begin
        if "result" not in answer:
            raise RuntimeError(f"{command}: {answer}")
    return took


def _say(process: subprocess.Popen[bytes], message: Any) -> None:
    assert process.stdin is not None
    process.stdin.write(msgspec.json.encode(message) + b"\n")
    process.stdin.flush()


def _answer(process: subprocess.Popen[bytes]) -> Any:
    assert process.stdout is not None
    while line := process.stdout.readline():
        message = msgspec.json.decode(line)
        if "id" in message:
            return message
    print("the server ended without an answer", file=sys.stderr)
    raise RuntimeError("no answer")
