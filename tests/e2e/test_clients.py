"""The official clients in front of the daemon, published servers behind it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import trio

from supervisor.metatools.lean import lean
from tests.e2e import environments
from tests.e2e.daemons import Daemon, running, stand_in
from tests.e2e.environments import entry
from tests.e2e.fork_server import forking

pytestmark = pytest.mark.e2e

FOUR = ["discover_mcp_tools", "execute_mcp_tool", "list_mcp_resources", "read_mcp_resource"]
FIVE = [*FOUR[:2], "execute_read_only_mcp_tool", *FOUR[2:]]
BY_EFFECT = "/mcp?execute=by-effect"
LEGACY, MODERN = "2025-11-25", "2026-07-28"
CHANGED = "notifications/tools/list_changed"
CLIENT_S = 60.0
OVER = ("", "stdio+")
TYPESCRIPT = [
    ("sdk", LEGACY, CHANGED),
    ("default", LEGACY, "tools changed"),
    ("auto", MODERN, "tools changed"),
    (MODERN, MODERN, "tools changed"),
]
"""Kinds of clients, what each speaks, and what it hears of a change."""
BRIDGE = ["-m", "supervisor", "stdio", "--url"]
"""What a client has a Python run for an address that begins with `stdio+`."""


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
        "time": {**environments.time_server(), "read_only": ["get_current_time"]},
        "git": entry(environments.python_2(), "-m", "mcp_server_git", "--repository", str(repository)),
        "sqlite": environments.sqlite_server("--db-path", database),
        "growing": stand_in("growing"),
    }
    with running(directory, servers) as daemon:
        trio.run(daemon.ready)
        yield daemon


def report(*command: str, within_s: float = CLIENT_S) -> dict[str, Any]:
    """Run a client; return what it found."""
    (found,) = _reports(command, within_s)
    return found


def of_one_run(script: str, ways: Mapping[Any, tuple[str, ...]]) -> dict[Any, dict[str, Any]]:
    """Return what a client finds by several ways, which are its arguments; it is run once for all of them."""
    arguments = chain.from_iterable(("--", *way) for way in ways.values())
    return dict(zip(ways, _once((*environments.client(script), *arguments)), strict=True))


@cache
def _once(command: tuple[str, ...]) -> list[dict[str, Any]]:
    return _reports(command, CLIENT_S)


def _reports(command: tuple[str, ...], within_s: float) -> list[dict[str, Any]]:
    environment = {**os.environ, "BRIDGE": json.dumps([*forking(), *BRIDGE])}
    done = subprocess.run(command, capture_output=True, text=True, timeout=within_s, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def address(daemon: Daemon, transport: str) -> str:
    """Return the daemon's address for the Python client 1.x over a transport."""
    scheme = {"http": "http", "websocket": "ws", "stdio": "stdio+http"}[transport]
    return daemon.url.replace("http", scheme, 1)


def check(found: dict[str, Any], version: str, notified: str, path: str = "/mcp") -> None:
    """What every client has to find."""
    assert found["version"] == version
    assert found["tools"] == (FIVE if path == BY_EFFECT else FOUR)
    assert all(hints["anthropic/alwaysLoad"] is True for hints in found["hints"])
    assert found["picked"].startswith("Europe/Berlin")
    if path == BY_EFFECT:
        assert json.loads(found["read"])["timezone"] == "Europe/Berlin"
        assert "Call execute_mcp_tool" in found["refused"]
    structured = found["discovered"]["structured"]
    assert json.loads(found["discovered"]["text"]) == lean(structured)
    assert {"time:get_current_time", "time:convert_time"} & {row["tool_path"] for row in structured["tools"]}
    assert json.loads(found["time"])["timezone"] == "Europe/Berlin"
    assert "On branch trunk" in found["git"]
    assert found["sqlite"] == "[]"
    assert [each["tool_path"] for each in found["together"]] == ["time:get_current_time", "sqlite:list_tables"]
    assert "Europe/Berlin" in json.dumps(found["together"][0])
    assert found["together"][1]["text"] == "[]"
    assert {number for row in found["needs"] for number in row.get("queries", ())} == {1, 2}
    assert "No business insights" in found["resource"]
    assert found["failed"]["told"] is True
    assert "has no tool 'no_such_tool'" in found["failed"]["text"]
    assert found["failed"]["error"]["code"] == -32602
    assert found["failed"]["error"]["type"] == "not_found"
    assert found["notified"] == notified
    assert found["grown"][0] == found["grown"][1]


async def test_the_published_servers_are_of_both_eras(daemon: Daemon) -> None:
    servers = await daemon.rows()
    spoken = {name: servers[name]["protocol_version"] for name in ("time", "git", "sqlite")}
    assert spoken == {"time": MODERN, "git": MODERN, "sqlite": LEGACY}
    assert not any(servers[name]["problems"] for name in spoken)


@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize(
    ("mode", "path", "version", "notified"),
    [
        ("auto", BY_EFFECT, MODERN, "ToolsListChanged"),
        (MODERN, "/mcp", MODERN, "ToolsListChanged"),
        ("legacy", BY_EFFECT, LEGACY, CHANGED),
    ],
)
def test_the_python_client_2_uses_everything(
    daemon: Daemon, repository: Path, mode: str, path: str, version: str, notified: str, over: str
) -> None:
    found = report(*environments.client("mcp2_client.py"), over + daemon.url + path, mode, str(repository))
    check(found, version, notified, path)


@pytest.mark.parametrize(
    ("transport", "path"), [("http", BY_EFFECT), ("websocket", "/ws"), ("websocket", "/mcp"), ("stdio", "/mcp")]
)
def test_the_python_client_1_uses_everything(daemon: Daemon, repository: Path, transport: str, path: str) -> None:
    url = address(daemon, transport) + path
    found = report(*environments.client("mcp1_client.py"), url, transport, str(repository))
    check(found, LEGACY, CHANGED, path.replace("/ws", "/mcp"))


@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize(("kind", "version", "notified"), TYPESCRIPT)
def test_the_typescript_clients_use_everything(
    daemon: Daemon, repository: Path, kind: str, version: str, notified: str, over: str
) -> None:
    paths = {each: "/mcp" if each == "default" else BY_EFFECT for each, *_ in TYPESCRIPT}
    ways = {
        (each, way): (f"{way}{daemon.url}{path}", each, str(repository)) for each, path in paths.items() for way in OVER
    }
    check(of_one_run("typescript_client.cjs", ways)[kind, over], version, notified, paths[kind])
