"""The two sides of a comparison: the reference server by itself, and the same behind a door of a daemon."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import trio

from benchmarks.machine import free_port
from tests.conformance.installation import ROOT, Installation
from tests.conformance.suites import Behind
from tests.e2e import environments
from tests.e2e.daemons import Daemon, running
from tests.fleet.valkey import settle, valkey

Transport = Literal["stdio", "http"]
Doors = Literal["as needed", "each", "one"]
"""Which scenarios have a daemon of their own: where the one before leaves a call that keeps others waiting, or each."""
NAME = "reference"
REVISIONS: dict[Behind, str] = {"legacy": "2025-11-25", "modern": "2026-07-28", "dual": "2026-07-28"}


class Role(NamedTuple):
    """How the reference server behaves; with the overlay it asks in its own era what the tools of the other ask."""

    era: Behind
    overlay: bool = False

    def command(self, transport: Transport) -> list[str]:
        """How it is started."""
        overlay = ["--overlay"] if self.overlay else []
        return [
            *environments.python_2(),
            "-m",
            "tests.conformance.reference",
            "--era",
            self.era,
            "--transport",
            transport,
            *overlay,
        ]


class Door(NamedTuple):
    """The address of the server at a daemon, or at the nodes of a fleet, and these."""

    url: str
    daemons: tuple[Daemon, ...]

    @property
    def is_busy(self) -> bool:
        """Whether a call is in flight, though nobody waits: the questions of one that was made are left unanswered."""
        return any(trio.run(daemon.rows)[NAME]["in_flight"] for daemon in self.daemons)


class Stage:
    """Starts either of them for a block, and gives its address. `nodes`: so many daemons, behind a balancer."""

    def __init__(self, installation: Installation, nodes: int = 1) -> None:
        self._nodes = nodes
        self._log = installation.directory / "reference.log"
        self._paths = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(installation.reference)])}

    @property
    def environment(self) -> dict[str, str]:
        """What the reference server is started with."""
        return os.environ | self._paths

    @contextmanager
    def server(self, role: Role) -> Iterator[str]:
        """Run the reference server over HTTP."""
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                role.command("http"), stdout=subprocess.PIPE, stderr=log, text=True, env=self.environment
            )
        try:
            assert process.stdout is not None
            port = process.stdout.readline().strip()
            assert port, f"the reference server did not start, see {self._log}"
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()
            process.communicate()

    @contextmanager
    def door(self, role: Role, transport: Transport) -> Iterator[Door]:
        """Run a daemon with the reference server behind it; its address and the daemon.

        Raises:
            AssertionError: The server is not there, or the daemon speaks another revision with it.
        """
        with ExitStack() as stack:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="conformance-")))
            if transport == "http":
                entry: dict[str, Any] = {"url": stack.enter_context(self.server(role))}
            else:
                command, *arguments = role.command("stdio")
                entry = {"command": command, "args": arguments, "env": self._paths}
            url, daemons = self._daemons(stack, directory, entry)
            rows = [trio.run(daemon.rows)[NAME] for daemon in daemons]
            assert REVISIONS[role.era] in [row.get("protocol_version") for row in rows], rows
            yield Door(f"{url or daemons[0].url}/mcp/servers/{NAME}", daemons)

    def _daemons(self, stack: ExitStack, directory: Path, entry: dict[str, Any]) -> tuple[str, tuple[Daemon, ...]]:
        """Start those that there are; return the address of the balancer, too, if there is one."""
        settings: list[dict[str, Any]] = [{}]
        port = free_port() if self._nodes > 1 else 0
        url = f"http://127.0.0.1:{port}" if port else ""
        if port:
            (directory / "engine").mkdir()
            engine = stack.enter_context(valkey(directory / "engine"))
            trio.run(settle, engine)
            fleet = {"engine": engine.url, "keys": ["the key of this fleet, which is long"], "lease_s": 60.0}
            settings = [
                {"fleet": {**fleet, "node": f"node{number}"}, "public_url": url} for number in range(self._nodes)
            ]
        daemons = tuple(
            stack.enter_context(running(directory / f"{number}", {NAME: entry}, leaves_calls=True, **more))
            for number, more in enumerate(settings)
        )
        for daemon in daemons:
            trio.run(daemon.ready)
        if port:
            stack.enter_context(_balancer(port, daemons))
        return url, daemons


@contextmanager
def _balancer(port: int, daemons: tuple[Daemon, ...]) -> Iterator[None]:
    command = [sys.executable, "-m", "tests.fleet.balancer", str(port), *(daemon.url for daemon in daemons)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        yield
        process.kill()
