"""The official clients in front of the daemon, published servers behind it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.e2e import environments
from tests.e2e.daemons import Daemon, running, stand_in
from tests.e2e.environments import CLIENTS

pytestmark = pytest.mark.e2e

FOUR = ["discover_mcp_tools", "execute_mcp_tool", "list_mcp_resources", "read_mcp_resource"]
LEGACY, MODERN = "2025-11-25", "2026-07-28"
CHANGED = "notifications/tools/list_changed"
CLIENT_S = 60.0
BRIDGE = [sys.executable, "-m", "supervisor", "stdio", "--url"]
"""What a client starts for an address that begins with `stdio+`."""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository without a commit."""
    directory = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "--quiet", "--initial-branch=trunk", str(directory)], check=True)
    return directory


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Iterator[Daemon]:
    """One daemon with three published servers and one that grows."""
    directory = tmp_path_factory.mktemp("clients")
    database = str(directory / "test.db")
    servers = {
        "time": {"command": sys.executable, "args": ["-m", "mcp_server_time"]},
        "git": {"command": sys.executable, "args": ["-m", "mcp_server_git", "--repository", str(repository)]},
        "sqlite": {"command": environments.sqlite_server(), "args": ["--db-path", database]},
        "growing": stand_in("growing"),
    }
    with running(directory, servers) as daemon:
        trio.run(daemon.ready)
        yield daemon


def report(*command: str, within_s: float = CLIENT_S) -> dict[str, Any]:
    """Run a client; return what it found."""
    (found,) = _reports(command, within_s)
    return found


def of_one_run(script: str, ways: Mapping[str, tuple[str, ...]]) -> dict[str, dict[str, Any]]:
    """Return what a Python client finds by several ways, which are its arguments; it is run once for all of them."""
    python = environments.python_1() if script.startswith("mcp1_") else environments.python_2()
    arguments = chain.from_iterable(("--", *way) for way in ways.values())
    return dict(zip(ways, _once((python, str(CLIENTS / script), *arguments)), strict=True))


@cache
def _once(command: tuple[str, ...]) -> list[dict[str, Any]]:
    return _reports(command, CLIENT_S)


def _reports(command: tuple[str, ...], within_s: float) -> list[dict[str, Any]]:
    environment = {**os.environ, "BRIDGE": json.dumps(BRIDGE)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=within_s, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def address(daemon: Daemon, transport: str) -> str:
    """Return the daemon's address for the Python client 1.x over a transport."""
    scheme = {"http": "http", "websocket": "ws", "stdio": "stdio+http"}[transport]
    return daemon.url.replace("http", scheme, 1)


def check(found: dict[str, Any], version: str, notified: str) -> None:
    """What every client has to find."""
    assert found["version"] == version
    assert found["tools"] == FOUR
    structured = found["discovered"]["structured"]
    assert json.loads(found["discovered"]["text"]) == structured
    assert {"time:get_current_time", "time:convert_time"} & {row["tool_path"] for row in structured["tools"]}
    assert json.loads(found["time"])["timezone"] == "Europe/Berlin"
    assert "On branch trunk" in found["git"]
    assert found["sqlite"] == "[]"
    assert "No business insights" in found["resource"]
    assert found["failed"]["told"] is True
    assert "has no tool 'no_such_tool'" in found["failed"]["text"]
    assert found["failed"]["error"]["code"] == -32602
    assert found["failed"]["error"]["type"] == "not_found"
    assert found["notified"] == notified
    assert found["grown"][0] == found["grown"][1]


async def test_the_published_servers_are_of_both_eras(daemon: Daemon) -> None:
    servers = await daemon.servers()
    spoken = {name: servers[name]["protocol_version"] for name in ("time", "git", "sqlite")}
    assert spoken == {"time": MODERN, "git": MODERN, "sqlite": LEGACY}
    assert not any(servers[name]["problems"] for name in spoken)


@pytest.mark.parametrize("over", ["", "stdio+"])
@pytest.mark.parametrize(
    ("mode", "version", "notified"),
    [("auto", MODERN, "ToolsListChanged"), (MODERN, MODERN, "ToolsListChanged"), ("legacy", LEGACY, CHANGED)],
)
def test_the_python_client_2_uses_everything(
    daemon: Daemon, repository: Path, mode: str, version: str, notified: str, over: str
) -> None:
    script = str(CLIENTS / "mcp2_client.py")
    found = report(environments.python_2(), script, f"{over}{daemon.url}/mcp", mode, str(repository))
    check(found, version, notified)


@pytest.mark.parametrize(
    ("transport", "path"), [("http", "/mcp"), ("websocket", "/ws"), ("websocket", "/mcp"), ("stdio", "/mcp")]
)
def test_the_python_client_1_uses_everything(daemon: Daemon, repository: Path, transport: str, path: str) -> None:
    url = address(daemon, transport) + path
    script = str(CLIENTS / "mcp1_client.py")
    found = report(environments.python_1(), script, url, transport, str(repository))
    check(found, LEGACY, CHANGED)


@pytest.mark.parametrize("over", ["", "stdio+"])
@pytest.mark.parametrize(
    ("kind", "version", "notified"),
    [
        ("sdk", LEGACY, CHANGED),
        ("default", LEGACY, "tools changed"),
        ("auto", MODERN, "tools changed"),
        (MODERN, MODERN, "tools changed"),
    ],
)
def test_the_typescript_clients_use_everything(
    daemon: Daemon, repository: Path, kind: str, version: str, notified: str, over: str
) -> None:
    node = environments.node()
    if node is None:  # the one thing that cannot be installed from the registries this project uses
        pytest.skip("not run: the TypeScript clients need Node.js 20 or later, and there is none")
    script = str(CLIENTS / "typescript_client.cjs")
    found = report(node, script, environments.typescript(), f"{over}{daemon.url}/mcp", kind, str(repository))
    check(found, version, notified)
