"""The programs that are measured: our daemon, the bare application, FastMCP's proxy, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.client import page
from benchmarks.machine import ROOT, free_port, program, until

ECHO_SERVER = ROOT / "benchmarks" / "echo_server.py"
ECHO = (sys.executable, str(ECHO_SERVER))
"""Command and argument of the echo server."""


class Running(msgspec.Struct, frozen=True):
    """A program that listens."""

    port: int
    process: subprocess.Popen[bytes]


class Place(msgspec.Struct, frozen=True):
    """Where a daemon keeps its files: a directory of ours, so that the next daemon knows the same catalogue."""

    directory: Path

    def write(self, servers: Mapping[str, Any], port: int, **settings: Any) -> Path:
        """Write the configuration and return its path."""
        own = {"listen": f"127.0.0.1:{port}", "data_dir": str(self.directory / "data"), **settings}
        path = self.directory / "servers.json"
        path.write_bytes(msgspec.json.encode({"mcpServers": servers, "supervisor": own}))
        return path


def entry(command: tuple[str, ...], **settings: Any) -> dict[str, Any]:
    """Return the configuration of one server."""
    return {"command": command[0], "args": list(command[1:]), **settings}


@contextmanager
def daemon(
    place: Place, servers: Mapping[str, Any], *, env: Mapping[str, str] | None = None, **settings: Any
) -> Iterator[Running]:
    """Run our daemon; entered when it listens, which is before it has discovered anything. `env`: more variables."""
    port = free_port()
    config = place.write(servers, port, **{"log_level": "warning", **settings})
    command = [sys.executable, "-m", "supervisor", "run", "--config", str(config)]
    with program(command, port, place.directory / "daemon.log", env=env) as process:
        yield Running(port, process)


def status(port: int) -> dict[str, Any]:
    """Return the daemon's status page."""
    found: dict[str, Any] = page(port, "/api/status")
    return found


def until_ready(port: int, timeout_s: float = 300.0) -> None:
    """Wait until everything is discovered, indexed and counted."""

    def ready() -> bool:
        status_page = status(port)
        known = [row for row in status_page["servers"] if row.get("tools") is not None]
        return len(known) == len(status_page["servers"]) and bool(status_page["tokens"]["counted"])

    until(ready, "all servers are discovered", timeout_s, step_s=0.2)


def until_dormant(port: int, timeout_s: float = 120.0) -> None:
    """Wait until no server runs."""
    until(
        lambda: all(row["state"] == "dormant" for row in status(port)["servers"]),
        "all servers are dormant",
        timeout_s,
        step_s=0.05,
    )


@contextmanager
def bare(body_bytes: int, directory: Path, stack: str = "hypercorn") -> Iterator[Running]:
    """Run a server that answers with so many bytes; see `bare`."""
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.bare", stack, str(port), str(body_bytes)]
    with program(command, port, directory / "bare.log") as process:
        yield Running(port, process)


@contextmanager
def fastmcp(python: Path, directory: Path, sessions: str) -> Iterator[Running]:
    """Run FastMCP's proxy of the echo server with a Python that has it; see `fastmcp_proxy` for `sessions`."""
    with fastmcp_of(ECHO, python, directory, sessions) as running:
        yield running


@contextmanager
def fastmcp_of(server: tuple[str, ...], python: Path, directory: Path, sessions: str) -> Iterator[Running]:
    """Run FastMCP's proxy of a server: its command, or its address alone."""
    port = free_port()
    command = [str(python), str(ROOT / "benchmarks" / "fastmcp_proxy.py"), sessions, str(port), *server]
    with program(command, port, directory / "fastmcp.log", end_s=5.0) as process:
        yield Running(port, process)
