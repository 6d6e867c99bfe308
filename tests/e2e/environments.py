"""Where the environments of the official clients are. `.ci/clients.sh` makes them; nothing here downloads anything."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.installation import Installation
from tests.e2e.daemons import ROOT

CLIENTS = Path(__file__).with_name("clients")
SCRIPTS = Path(__file__).with_name("browser")
CACHE = ROOT / ".cache"
OLDEST_NODE = 20
BROWSER_S = 120.0


def python_2() -> str:
    """The Python with the SDK 2.x: ours."""
    return sys.executable


def python_1() -> str:
    """The Python with the SDK 1.x."""
    return str(_made(CACHE / "mcp1") / "bin" / "python")


def sqlite_server() -> str:
    """The published SQLite server, which needs the SDK 1.x."""
    return str(_made(CACHE / "mcp1") / "bin" / "mcp-server-sqlite")


def typescript() -> str:
    """The directory with the packages of both TypeScript clients."""
    return str(_made(CACHE / "ts"))


def browse(script: str, *arguments: str, meanwhile: Callable[[], None] | None = None) -> Any:
    """What a script of browser/ tells of Chromium; skips the test, saying so, where Chromium or Node.js cannot run.

    `meanwhile` is done when the script says so on stderr; then it goes on.
    """
    program = node()
    if program is None:  # the one thing that cannot be installed from the registries this project uses
        pytest.skip("not run: the browser needs Node.js 20 or later, and there is none")
    command = [program, str(SCRIPTS / script), str(_made(CACHE / "browser")), *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        said = ""
        if meanwhile is not None and (said := process.stderr.readline()) == "signal\n":
            meanwhile()
            process.stdin.write("\n")
            process.stdin.flush()
        try:
            output, errors = process.communicate(timeout=BROWSER_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert process.returncode == 0, (said + errors)[-4000:]
    told = json.loads(output)
    if "missing" in told:
        pytest.skip(f"not run: Chromium does not start here: {told['missing']}")
    return told


def prometheus(program: str = "prometheus") -> str:
    """A program of Prometheus, of the machine or of `.cache`; skips the test, saying so, where there is none."""
    unpacked = CACHE / "prometheus"
    found = shutil.which(program) or ((unpacked / "made").is_file() and str(unpacked / "usr" / "bin" / program))
    if not found:  # it is in no registry that this project uses
        pytest.skip(f"not run: there is no {program}, which Debian's package prometheus has; see .ci/clients.sh")
    return found


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
