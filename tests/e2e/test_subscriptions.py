"""Official clients that are subscribed to a resource, through the doors, before servers of both eras."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.e2e import environments
from tests.e2e.daemons import Daemon, running, stand_in
from tests.e2e.test_clients import LEGACY, MODERN, address, of_one_run

pytestmark = pytest.mark.e2e

MEMO = "memo://one"
WAYS = {
    "/mcp": ("newer-write", f"mcp://newer/{MEMO}"),
    "/mcp/servers/older": ("write", MEMO),
    "/mcp/servers/newer": ("write", MEMO),
    "/mcp/all": ("newer__write", f"mcp://newer/{MEMO}"),
}
ways = pytest.mark.parametrize("path", WAYS)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon with a server of each era that has a memo."""
    newer = environments.entry(environments.python_2(), str(Path(__file__).with_name("memo_server.py")))
    servers = {"older": stand_in("memo"), "newer": newer}
    with running(tmp_path_factory.mktemp("subscriptions"), servers) as daemon:
        trio.run(daemon.ready)
        yield daemon


def check(found: dict[str, Any], path: str, version: str) -> None:
    """What every client has to find."""
    uri = WAYS[path][1]
    assert (found["version"], found["announced"], found["before"]) == (version, True, "nothing")
    assert found["first"] == [uri, "first"]
    assert found["second"] == [uri, "second"]


@ways
@pytest.mark.parametrize("over", ["", "stdio+"])
@pytest.mark.parametrize(("mode", "version"), [("auto", MODERN), ("legacy", LEGACY)])
def test_the_python_client_2_is_told(daemon: Daemon, path: str, mode: str, version: str, over: str) -> None:
    ways = {path: (over + daemon.url + path, mode, *way) for path, way in WAYS.items()}
    check(of_one_run("mcp2_subscriptions.py", ways)[path], path, version)


@ways
@pytest.mark.parametrize("transport", ["http", "websocket", "stdio"])
def test_the_python_client_1_is_told(daemon: Daemon, path: str, transport: str) -> None:
    base = address(daemon, transport)
    ways = {path: (base + path, transport, *way) for path, way in WAYS.items()}
    found = of_one_run("mcp1_subscriptions.py", ways)[path]
    check(found, path, LEGACY)
    if path == "/mcp/servers/older":
        assert found["wrong"] == -32601
