"""Where the environments of the official clients are. `.ci/clients.sh` makes them; nothing here downloads anything."""

from __future__ import annotations

import json
import os
import select
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.installation import Installation
from tests.e2e.daemons import ROOT
from tests.e2e.fork_server import forking

CLIENTS = Path(__file__).with_name("clients")
SCRIPTS = Path(__file__).with_name("browser")
CACHE = ROOT / ".cache"
OLDEST_NODE = 20
SDK_2 = (
    *("mcp.client.auth", "mcp.server.mcpserver", "mcp.server.elicitation", "mcp.server.mcpserver.resolve", "httpcore2"),
    *("uvicorn.loops.auto", "uvicorn.protocols.http.auto", "uvicorn.protocols.websockets.auto", "uvicorn.lifespan.on"),
    *("anyio._backends._trio", "anyio._backends._asyncio", "rich.logging", "mcp_server_time.server"),
)
"""What is loaded where clients and servers with the SDK 2.x are forked."""
SDK_1 = (
    *("mcp.server.fastmcp", "mcp.client.streamable_http", "mcp.client.websocket", "mcp.client.sse", "httpcore"),
    *("uvicorn.loops.auto", "uvicorn.protocols.http.auto", "uvicorn.protocols.websockets.auto", "uvicorn.lifespan.on"),
    *("anyio._backends._asyncio", "httpcore._backends.anyio", "rich.logging", "mcp_server_sqlite.server"),
)
"""And with the SDK 1.x."""
BROWSER_S = 120.0


def python_2() -> list[str]:
    """How a command of the Python with the SDK 2.x begins, which is ours; it is forked."""
    return forking(sys.executable, SDK_2)


def python_1() -> list[str]:
    """How a command of the Python with the SDK 1.x begins; it is forked."""
    return forking(str(_made(CACHE / "mcp1") / "bin" / "python"), SDK_1)


def client(script: str) -> list[str]:
    """How a command of a script of `clients/` begins; skips the test, saying so, where there is no Node.js for it."""
    file = str(CLIENTS / script)
    if script.endswith(".py"):
        return [*(python_1() if script.startswith("mcp1_") else python_2()), file]
    program = node()
    if program is None:  # the one thing that cannot be installed from the registries this project uses
        pytest.skip("not run: the TypeScript clients need Node.js 20 or later, and there is none")
    return [program, file, typescript()]


def sqlite_server(*arguments: str) -> dict[str, Any]:
    """The entry of the published SQLite server, which needs the SDK 1.x."""
    return entry(python_1(), str(_made(CACHE / "mcp1") / "bin" / "mcp-server-sqlite"), *arguments)


def entry(python: Sequence[str], *arguments: str) -> dict[str, Any]:
    """The entry of a server that this Python runs."""
    return {"command": python[0], "args": [*python[1:], *arguments]}


def time_server() -> dict[str, Any]:
    """The entry of the published server that tells the time."""
    return entry(python_2(), "-m", "mcp_server_time")


def typescript() -> str:
    """The directory with the packages of both TypeScript clients."""
    return str(_made(CACHE / "ts"))


def browse(script: str, *given: Any, meanwhile: Callable[[], None] | None = None) -> Any:
    """What a script of browser/ tells of Chromium; skips the test, saying so, where Chromium or Node.js cannot run.

    `meanwhile` is done when the script says so; then it goes on.
    """
    program = node()
    if program is None:  # the one thing that cannot be installed from the registries this project uses
        pytest.skip("not run: the browser needs Node.js 20 or later, and there is none")
    browser = _browser(program)
    try:
        answer = browser.walk(script, given, meanwhile)
    except BaseException:  # it is at something that nobody waits for
        browser.end()
        _browser.cache_clear()
        raise
    if "missing" in answer:
        pytest.skip(f"not run: Chromium does not start here: {answer['missing']}")
    assert "failed" not in answer, answer["failed"][-4000:]
    return answer["told"]


class _Browser:
    """Chromium, started once for all tests of this process, with which it ends; it is no child of ours."""

    def __init__(self, program: str) -> None:
        ours, its = socket.socketpair()
        self._errors = os.memfd_create("browser")
        command = [program, str(SCRIPTS / "chromium.cjs"), str(_made(CACHE / "browser")), "serve"]
        shell = ["sh", "-c", 'exec 3<&0; "$@" <&3 3<&- &', "sh"]
        subprocess.run([*shell, *command], stdin=its.fileno(), stdout=its.fileno(), stderr=self._errors, check=True)
        its.close()
        self._file = ours.detach()
        self._rest = b""

    def walk(self, script: str, given: Sequence[Any], meanwhile: Callable[[], None] | None) -> dict[str, Any]:
        self._say({"script": script, "given": given})
        while "signal" in (answer := self._hear()):
            assert meanwhile is not None
            meanwhile()
            self._say({})
        return answer

    def end(self) -> None:
        os.close(self._file)
        os.close(self._errors)

    def _say(self, message: dict[str, Any]) -> None:
        left = memoryview(json.dumps(message).encode() + b"\n")
        while left:
            left = left[os.write(self._file, left) :]

    def _hear(self) -> dict[str, Any]:
        while b"\n" not in self._rest:
            data = b""
            assert select.select([self._file], [], [], BROWSER_S)[0], "the browser says nothing"
            with suppress(ConnectionResetError):
                data = os.read(self._file, 1 << 16)
            assert data, os.pread(self._errors, 4000, 0).decode(errors="replace") or "the browser has ended"
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        said: dict[str, Any] = json.loads(line)
        return said


_browser = cache(_Browser)


def prometheus(program: str = "prometheus") -> str:
    """A program of Prometheus, of the machine or of `.cache`; skips the test, saying so, where there is none."""
    unpacked = CACHE / "prometheus"
    found = shutil.which(program) or ((unpacked / "made").is_file() and str(unpacked / "usr" / "bin" / program))
    if not found:  # it is in no registry that this project uses
        pytest.skip(f"not run: there is no {program}, which Debian's package prometheus has; see .ci/clients.sh")
    return found


@cache
def node() -> str | None:
    """A Node.js that the TypeScript clients can run on, if there is one."""
    program = shutil.which("node")
    if program is None:
        return None
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return program if int(version.strip().lstrip("v").partition(".")[0]) >= OLDEST_NODE else None


def conformance() -> Installation:
    """The official conformance suite, a Node.js that can run it, and the reference server."""
    installation = Installation(CACHE / "conformance")
    assert installation.complete, f"{installation.directory} is missing: run .ci/clients.sh first"
    return installation


def _made(directory: Path) -> Path:
    assert (directory / "made-of").is_file(), f"{directory} is missing: run .ci/clients.sh first"
    return directory
