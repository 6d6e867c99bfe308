"""Tasks of an official server through the daemon: as such to an official client, as calls to those that have none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.e2e import environments
from tests.e2e.daemons import Daemon, running
from tests.e2e.test_clients import LEGACY, MODERN, address, report

pytestmark = pytest.mark.e2e

SERVER = str(Path(__file__).with_name("servers") / "tasks.py")
CALLS: dict[str, Any] = {"requests": {"tools": {"call": {}}}}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon with a server of the SDK 1.x, the last one that has tasks."""
    servers = {"tasks": environments.entry(environments.python_1(), SERVER)}
    with running(tmp_path_factory.mktemp("tasks"), servers) as daemon:
        trio.run(daemon.ready)
        yield daemon


@pytest.mark.parametrize(
    ("door", "transport", "tool"),
    [
        ("/mcp/servers/tasks", "http", "greet"),
        ("/mcp/all", "websocket", "tasks__greet"),
        ("/mcp/all", "stdio", "tasks__greet"),
    ],
)
def test_the_python_client_1_has_tasks(daemon: Daemon, door: str, transport: str, tool: str) -> None:
    url = address(daemon, transport) + door
    found = report(*environments.client("mcp1_tasks.py"), url, transport, tool)
    assert found == {
        "offered": {"cancel": {}, **CALLS},
        "support": ["required"],
        "before": "input_required",
        "result": "hello Ada",
        "about": True,
        "after": "completed",
        "cancelled": ["cancelled", "cancelled"],
        "unknown": -32602,
        "plain": "hello Bob",
    }


@pytest.mark.parametrize(
    ("mode", "version", "door", "tool"),
    [
        ("legacy", LEGACY, "/mcp", "execute_mcp_tool"),
        (MODERN, MODERN, "/mcp/servers/tasks", "greet"),
    ],
)
@pytest.mark.parametrize("over", ["", "stdio+"])
def test_the_python_client_2_calls_such_a_tool_like_others(
    daemon: Daemon, mode: str, version: str, door: str, tool: str, over: str
) -> None:
    found = report(*environments.client("mcp2_tasks.py"), over + daemon.url + door, mode, tool)
    assert found == {"version": version, "result": "hello Ada"}
