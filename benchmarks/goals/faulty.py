"""A daemon with servers that fail on request and keep a ledger (`tests/fakes/fault_server.py`), as many goals want."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import trio

from benchmarks.client import page
from benchmarks.goals.figure import Figure, count
from benchmarks.machine import until
from benchmarks.running import Place, Running, daemon, entry, status
from benchmarks.table import Aim
from tests.e2e.invariants import complaints_in
from tests.fakes import fault_server

HEALTHY: Final = "healthy"
"""The server that nothing is done to."""
LATEST_BYTES: Final = 65_536
"""Lines of some seconds."""
UNHARMED: Final = Aim("<=", 100, "ms")
GROWTH: Final = Aim("<=", 64, "MiB")
LIVELY: Final[dict[str, Any]] = {"max_restarts": 1_000_000, "backoff_max_s": 1, "breaker": False}
"""What a server gets that is to fail all the time, and to be there at most times all the same."""


def faulty(directory: Path, name: str, **settings: Any) -> dict[str, Any]:
    """Return the entry of a server that does what a call says, and notes it in the ledger of the directory."""
    command = (sys.executable, "-I", "-S", fault_server.__file__, name, str(ledger(directory)))
    return entry(command, idle_timeout_s=0, **settings)


def ledger(directory: Path) -> Path:
    """Return where the servers note what they ran."""
    return directory / "ledger"


def runs(directory: Path, key: str) -> bool:
    """Return whether a request was begun a moment ago, as the end of the ledger says."""
    with ledger(directory).open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - LATEST_BYTES))
        return f'"{key}"'.encode() in file.read()


@contextmanager
def faulty_daemon(directory: Path, names: Sequence[str], each: dict[str, Any], **settings: Any) -> Iterator[Running]:
    """Run a daemon with these servers and the healthy one; entered when all are up."""
    servers = {name: faulty(directory, name, **each) for name in names}
    servers[HEALTHY] = faulty(directory, HEALTHY)
    given = {"starts_per_s": 1000, "cold_starts": 4, **settings}
    with daemon(Place(directory), servers, **given) as running:
        until_up(running)
        yield running


def until_up(running: Running) -> None:
    """Wake all servers, as a daemon does not start those that it knows, and wait until they are ready."""
    for row in status(running.port)["servers"]:
        page(running.port, f"/api/servers/{row['server']}/wake", body={})
    until(lambda: all(row["state"] == "ready" for row in status(running.port)["servers"]), "all are ready", 60.0)


async def row_of(port: int, server: str) -> dict[str, Any]:
    """Return what the status page says of a server."""
    rows = (await trio.to_thread.run_sync(status, port))["servers"]
    found: dict[str, Any] = next(row for row in rows if row["server"] == server)
    return found


def unharmed(running: Running, directory: Path) -> Iterator[Figure]:
    """Yield what must hold of a daemon whatever is done to it: it lives, and its log tells of no bug."""
    yield count("ends of the daemon", int(running.process.poll() is not None))
    yield count("lines of its log about a bug", len(complaints_in((directory / "daemon.log").read_text())))
