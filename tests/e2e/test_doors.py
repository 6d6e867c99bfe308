"""The official clients at the other doors: one server by itself, and everything; HTTP and WebSocket, both eras."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import trio

from tests.e2e import environments
from tests.e2e.daemons import Daemon, running, stand_in
from tests.e2e.test_clients import CHANGED, LEGACY, MODERN, address, of_one_run

pytestmark = pytest.mark.e2e

ONE, EVERYTHING = "/mcp/servers/growing", "/mcp/all"
PROFILES = {"small": {"servers": ["growing"], "deny": ["growing:hang"]}}
ONE_OF_PROFILE, EVERYTHING_OF_PROFILE = f"{ONE}?profile=small", f"{EVERYTHING}?profile=small"
OWN = ["grow", "echo", "hang", "wait", "big"]
PREFIX = {ONE: "", EVERYTHING: "growing__", ONE_OF_PROFILE: "", EVERYTHING_OF_PROFILE: "growing__"}
doors = pytest.mark.parametrize("path", [*PREFIX])


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon with a server that grows, and a published one beside it."""
    servers = {
        "growing": stand_in("growing"),
        "time": environments.time_server(),
    }
    with running(tmp_path_factory.mktemp("doors"), servers, profiles=PROFILES) as daemon:
        trio.run(daemon.ready)
        yield daemon


def check(found: dict[str, Any], path: str, version: str, notified: str) -> None:
    """What every client has to find."""
    assert found["version"] == version
    assert found["echoed"] == "hello"
    assert found["notified"] == notified
    assert found["sprout"] not in found["tools"]
    assert found["sprout"] in found["after"]
    if path in (ONE_OF_PROFILE, EVERYTHING_OF_PROFILE):
        assert {PREFIX[path] + name for name in OWN if name != "hang"} < set(found["tools"])
        assert not any("time" in name or "hang" in name for name in found["after"])
        assert found["wrong"] == {"told": True}
    elif path == ONE:
        assert found["server"] == "growing"
        assert found["tools"][:5] == OWN
        assert "time" not in str(found["after"])
        assert found["wrong"]["code"] == -32601
    else:
        assert found["server"] == "mcpvisor"
        assert {f"growing__{name}" for name in OWN} < set(found["tools"])
        assert "time__get_current_time" in found["tools"]
        assert found["wrong"] == {"told": True}


@doors
@pytest.mark.parametrize(
    ("mode", "version", "notified"), [("auto", MODERN, "ToolsListChanged"), ("legacy", LEGACY, CHANGED)]
)
def test_the_python_client_2(daemon: Daemon, path: str, mode: str, version: str, notified: str) -> None:
    ways = {path: (daemon.url + path, mode, prefix) for path, prefix in PREFIX.items()}
    check(of_one_run("mcp2_doors.py", ways)[path], path, version, notified)


@doors
@pytest.mark.parametrize("transport", ["http", "websocket", "stdio"])
def test_the_python_client_1(daemon: Daemon, path: str, transport: str) -> None:
    base = address(daemon, transport)
    ways = {path: (base + path, transport, prefix) for path, prefix in PREFIX.items()}
    check(of_one_run("mcp1_doors.py", ways)[path], path, LEGACY, CHANGED)


@doors
@pytest.mark.parametrize(("kind", "version", "notified"), [("sdk", LEGACY, CHANGED), ("auto", MODERN, "tools changed")])
def test_the_typescript_clients(daemon: Daemon, path: str, kind: str, version: str, notified: str) -> None:
    ways = {
        (path, kind): (daemon.url + path, kind, prefix) for kind in ("sdk", "auto") for path, prefix in PREFIX.items()
    }
    check(of_one_run("typescript_doors.cjs", ways)[path, kind], path, version, notified)
