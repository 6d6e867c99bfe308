"""A real daemon in a process of its own, and how a test talks to it.

Rules of this file:
- A test waits for events of the daemon, for the end of a process or of a connection, always with a deadline.
  Only the start of a daemon is polled for (`ready`).
- Every daemon ends with SIGTERM and code 0, unless the test ended it itself, and what `invariants` says holds of it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import httpx2
import trio

from benchmarks.machine import free_port
from tests.e2e.fork_server import ForkedProcess, can_fork, fork
from tests.e2e.invariants import CANARY, Watched, configured_secrets
from tests.fakes.event_reader import EventReader, listening
from tests.scenario.client import PATIENCE_S, Client, Json

ROOT = Path(__file__).parents[2]
STAND_IN = str(Path(__file__).with_name("stand_in.py"))
_RUN = (sys.executable, "-m", "supervisor", "run")
COMMAND = _RUN
"""With another one in its place, daemons are started by that, and never forked."""

DaemonProcess = subprocess.Popen[str] | ForkedProcess


def stand_in(role: str, argument: str = "", **settings: Any) -> Json:
    """The entry of a stand-in server."""
    return {"command": sys.executable, "args": ["-I", "-S", STAND_IN, role, argument], **settings}


class Daemon(Client):
    """One running daemon, and whoever speaks to it."""

    poll_s = 0.05

    def __init__(self, process: DaemonProcess, url: str, directory: Path, data: Path | None = None) -> None:
        """`data` is its data directory, if that is not the one in `directory`."""
        super().__init__(httpx2.AsyncClient(base_url=url, verify=_UNUSED, trust_env=False))
        self.process = process
        self.directory = directory
        self.data = data or directory / "data"
        self.port = int(url.rpartition(":")[2])

    @property
    def pid(self) -> int:
        """Its own id; `process` may be one that stands for it, see `start_forked.py`."""
        try:
            return int((self.data / "daemon.lock").read_text())
        except (OSError, ValueError):
            return self.process.pid

    @property
    def log(self) -> str:
        """What it wrote to stderr so far."""
        return log_of(self.directory).read_text(errors="replace")

    async def ask(self, method: str, path: str, /, **more: Any) -> httpx2.Response:
        """Send any request, by a connection of its own: what tests share they use in several loops."""
        headers = {**self.headers, **more.pop("headers", {})}
        async with client() as http:
            return await http.request(method, self.url + path, headers=headers, **more)

    async def settled(self) -> None:
        """Wait until the store, which writes a moment later, has written everything."""
        await self.until("/api/status", lambda page: page["store"]["pending_writes"] == 0)

    async def counted(self) -> None:
        """Wait until every tool's tokens, which are counted a moment later, have been."""
        await self.until("/api/status", lambda page: page["tokens"]["counted"])

    @asynccontextmanager
    async def events(self) -> AsyncIterator[EventReader]:
        """Follow what happens."""
        async with listening(self.url) as events:
            await events.until("hello")
            yield events

    async def ended(self, within_s: float = PATIENCE_S) -> int:
        """Wait for the end of the process; return its exit code."""
        return await trio.to_thread.run_sync(partial(self.process.wait, timeout=within_s))

    async def kill(self) -> None:
        """`kill -9`, and wait until it is dead."""
        self.process.kill()
        await self.ended()


def client() -> httpx2.AsyncClient:
    """A plain HTTP client that adds as little as possible."""
    return httpx2.AsyncClient(verify=_UNUSED, trust_env=False, timeout=PATIENCE_S)


_UNUSED: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""No daemon here speaks TLS, and to make one of these takes longer than a request."""


def text(answer: Json) -> str:
    """Return the first text of a tool's result."""
    assert "result" in answer, answer
    shown: str = answer["result"]["content"][0]["text"]
    return shown


def log_of(directory: Path) -> Path:
    """Where a daemon in this directory logs."""
    return directory / "daemon.log"


def spawn(
    directory: Path,
    listen: str = "",
    data_dir: Path | None = None,
    environment: Mapping[str, str] = MappingProxyType({}),
    network: str = "",
) -> DaemonProcess:
    """Start a daemon with `mcp.json` of this directory, without waiting for anything.

    `listen` is a port that nobody else has, also not while a daemon is killed and started again, if none is given;
    `environment`: more of it; `network`: the file of the network namespace that it runs in.
    """
    arguments = ["--config", str(directory / "mcp.json"), "--listen", listen or f"127.0.0.1:{free_port()}"]
    arguments += ["--data-dir", str(data_dir or directory / "data")]
    variables = {**os.environ, **CANARY, **environment}
    with log_of(directory).open("ab") as log:
        if COMMAND == _RUN and can_fork(variables):
            return fork(["run", *arguments], variables, log.fileno(), network=network)
        inside = ("ip", "netns", "exec", Path(network).name) if network else ()
        return subprocess.Popen(
            [*inside, *COMMAND, *arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=variables,
        )


def write_config(directory: Path, servers: Json, **settings: Any) -> None:
    """Write `mcp.json`."""
    directory.mkdir(exist_ok=True)
    body = {"mcpServers": servers, "supervisor": settings}
    (directory / "mcp.json").write_text(json.dumps(body), encoding="utf-8")


def start(
    directory: Path,
    listen: str = "",
    environment: Mapping[str, str] = MappingProxyType({}),
    network: str = "",
) -> Daemon:
    """Start a daemon and wait until it listens."""
    process = spawn(directory, listen, environment=environment, network=network)
    assert process.stdout is not None
    readable, _, _ = select.select([process.stdout], [], [], PATIENCE_S)
    line = process.stdout.readline() if readable else ""
    if not line.startswith("listening on "):
        process.kill()
        process.wait()
        process.stdout.close()
        raise AssertionError(f"the daemon did not start:\n{log_of(directory).read_text(errors='replace')}")
    url = line.removeprefix("listening on ").strip()
    return Daemon(process, url, directory)


def end(daemon: Daemon, *, leaves_calls: bool = False) -> None:
    """End it in order, if it still runs. Raises AssertionError if it does not do so, or something does not hold.

    `leaves_calls`: its clients went away from calls that go on to their deadline.
    """
    secrets = configured_secrets(daemon.directory / "mcp.json")
    watched = Watched(daemon.pid, daemon.url, daemon.data, secrets)
    try:
        if daemon.process.poll() is None:
            watched.look(calm=not leaves_calls)
            daemon.process.send_signal(signal.SIGTERM)
            assert daemon.process.wait(PATIENCE_S) == 0, daemon.log[-4000:]
    finally:
        daemon.process.kill()
        daemon.process.wait()
        if daemon.process.stdout is not None:
            daemon.process.stdout.close()
    watched.check(daemon.log)


@contextmanager
def running(
    directory: Path, servers: Json, listen: str = "", *, leaves_calls: bool = False, **settings: Any
) -> Iterator[Daemon]:
    """Run a daemon for the block; it listens when the block begins, and `ready` waits for its servers."""
    write_config(directory, servers, **settings)
    with _ended(start(directory, listen), leaves_calls=leaves_calls) as daemon:
        yield daemon


@contextmanager
def restarted(daemon: Daemon, *, leaves_calls: bool = False) -> Iterator[Daemon]:
    """Run another daemon in place of one that ended: the same configuration, data directory and port."""
    with _ended(start(daemon.directory, f"127.0.0.1:{daemon.port}"), leaves_calls=leaves_calls) as following:
        yield following


@contextmanager
def _ended(daemon: Daemon, *, leaves_calls: bool = False) -> Iterator[Daemon]:
    try:
        yield daemon
    finally:
        end(daemon, leaves_calls=leaves_calls)
