"""What the tour starts: a configuration of the demo's own servers, and a daemon for it as a child process.

The daemon runs as it does for everybody, `mcpvisor run` on a free port; its address is read from its stdout, and
it ends when the tour does.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

import trio

import supervisor
from actors.kit.nursery import background
from supervisor.demo.office import DEPARTMENTS
from supervisor.fleet.node_setup import LISTENING

START_S = 60.0
END_S = 60.0
IDLE_S = 1.5
"""How long the calculator is idle before it sleeps."""
SMALL = {"notes": "notes", "calculator": "calculator", "weather-desk": "weather_desk"}
PACKAGE_ROOT = str(Path(supervisor.__file__).parent.parent)
LOG_NAME = "daemon.log"
LOG_LINES = 15


class TourFailed(Exception):
    """A step did not happen as it should; the text says what did."""


def configuration() -> dict[str, Any]:
    servers = {name: _entry(module) for name, module in SMALL.items()}
    servers["calculator"]["idle_timeout_s"] = IDLE_S
    servers |= {department: _entry("office", department) for department in DEPARTMENTS}
    return {"mcpServers": servers, "supervisor": {"listen": "127.0.0.1:0"}}


def _entry(module: str, *arguments: str) -> dict[str, Any]:
    return {
        "command": sys.executable,
        "args": ["-m", f"supervisor.demo.{module}", *arguments],
        "env": {"PYTHONPATH": PACKAGE_ROOT},
    }


class DemoDaemon:
    """A running daemon: its base URL and its process."""

    def __init__(self, url: str, process: trio.Process) -> None:
        self.url = url
        self._process = process

    async def end(self) -> None:
        """Ask it to end and wait until it did. Raises `TourFailed` if it does not, or ends with an error."""
        self._process.terminate()
        with trio.move_on_after(END_S):
            await self._process.wait()
        if self._process.returncode != 0:
            raise TourFailed(f"the daemon did not end in order (exit code {self._process.returncode})")


@asynccontextmanager
async def running_daemon(
    directory: Path, document: dict[str, Any], python: Sequence[str] = (sys.executable,)
) -> AsyncIterator[DemoDaemon]:
    """Run a daemon in an empty directory for the block. Raises `TourFailed` with the end of its log.

    `python` begins its command.
    """
    config, log = directory / "mcp.json", directory / LOG_NAME
    config.write_text(json.dumps(document, indent=2), encoding="utf-8")
    options = ["--config", str(config), "--data-dir", str(directory / "data")]
    command = [*python, "-m", "supervisor", "run", *options]
    environment = {**os.environ, "PYTHONPATH": PACKAGE_ROOT, "PYTHONUNBUFFERED": "1"}
    with log.open("wb") as stderr:
        run = partial(
            trio.run_process, command, stdin=DEVNULL, stdout=PIPE, stderr=stderr, env=environment, check=False
        )
        async with background() as nursery:
            process: trio.Process = await nursery.start(run)
            try:
                yield await _await_start(process, log)
            finally:
                nursery.cancel_scope.cancel()  # whatever happened in the block: no daemon is left behind


async def _await_start(process: trio.Process, log: Path) -> DemoDaemon:
    """Wait for the first `listening on` line on stdout, which has the URL."""
    assert process.stdout is not None
    seen = b""
    with trio.move_on_after(START_S):
        async for chunk in process.stdout:
            seen += chunk
            for line in seen[: seen.rfind(b"\n") + 1].decode(errors="replace").splitlines():
                if line.startswith(LISTENING):
                    return DemoDaemon(line.removeprefix(LISTENING), process)
    raise TourFailed(f"the daemon did not start; its log ends with:\n{last_lines(log)}")


def last_lines(log: Path) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:])
