"""G3: how long an end takes: of a daemon whose clients never read, with a server that ignores all it is asked.

Half of the clients ask by WebSocket, half by HTTP, for answers that are more than their connections hold.
"""

from __future__ import annotations

import base64
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from benchmarks.client import ACCEPT, Client, call, frame, initialize, posted, upgrade
from benchmarks.goals.figure import Figure, count
from benchmarks.goals.orphans import HASTY, SERVER
from benchmarks.goals.processes import left_after, marked
from benchmarks.machine import ROOT, listens, until
from benchmarks.running import Place, daemon, entry
from benchmarks.table import Aim

IN_ORDER: Final = Aim("<=", 15.0, "s")
AT_ONCE: Final = Aim("<=", 3.0, "s")
DEAF: Final = 10
BIG: Final = ("big-big", {"size": 8_000_000})
WINDOW_BYTES: Final = 4096
PATIENCE_S: Final = 60.0
GONE_S: Final = 2.0
"""After a `kill -9` nothing lives for longer than that."""


def measure(directory: Path, full: bool) -> Iterator[Figure]:
    """Ask ten daemons of each kind to end; one in the small form."""
    times = 10 if full else 1
    hasty = {} if full else HASTY
    ends = {signals: [_end(directory / f"{signals}-{n}", signals, hasty) for n in range(times)] for signals in (1, 2)}
    yield Figure(
        "the longest end after SIGTERM, with 10 clients that never read", IN_ORDER, max(s for s, *_ in ends[1])
    )
    yield Figure("the longest end after a second SIGTERM", AT_ONCE, max(s for s, *_ in ends[2]))
    yield count("processes that were left", sum(left for some in ends.values() for _, left, _ in some))
    yield count("exit codes but 0 after the first signal", sum(code != 0 for _, _, code in ends[1]))


def _end(directory: Path, signals: int, settings: dict[str, Any]) -> tuple[float, int, int]:
    directory.mkdir()
    mark = f"goal-stops-{os.getpid()}-{directory.name}"
    big = (sys.executable, "-I", "-S", str(ROOT / "tests" / "e2e" / "stand_in.py"), "growing")
    servers = {"big": entry(big), "stubborn": entry((sys.executable, str(SERVER), mark), **settings)}
    with daemon(Place(directory), servers) as running, ExitStack() as stack:
        with Client(running.port) as client:
            client.call(("execute_mcp_tool", {"tool_path": "stubborn:pid", "arguments": {}}))
            client.call(("execute_mcp_tool", {"tool_path": "big:echo", "arguments": {"text": "up"}}))
        for number in range(DEAF):
            deaf = stack.enter_context(_narrow(running.port))
            _ask(deaf, running.port, websocket=number % 2 == 0)
        running.process.send_signal(signal.SIGTERM)
        if signals > 1:  # two that come at once may be one for the kernel
            until(lambda: not listens(running.port), "it closes its port")
            running.process.send_signal(signal.SIGTERM)
        begun = time.monotonic()
        code = running.process.wait(PATIENCE_S)
        took_s = time.monotonic() - begun
        return took_s, len(left_after(marked(mark), mark, GONE_S)), code


def _narrow(port: int) -> socket.socket:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, WINDOW_BYTES)
    connection.settimeout(PATIENCE_S)
    connection.connect(("127.0.0.1", port))
    return connection


def _ask(connection: socket.socket, port: int, *, websocket: bool) -> None:
    """Ask for a big answer and wait until it has begun to come."""
    if websocket:
        connection.sendall(upgrade(port).encode())
        connection.recv(1024)
        for message in (initialize(), call(BIG, 1, "legacy")):
            connection.sendall(base64.b64decode(frame(message)))
    else:
        connection.sendall(posted(port, "/mcp", call(BIG, 1, "legacy"), ACCEPT))
    connection.recv(16, socket.MSG_PEEK)
