"""Events of servers (SEP-3415) at the doors of many servers, as the official TypeScript SDK 2.x sends and gets them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from tests.e2e import environments
from tests.e2e.daemons import Daemon, running
from tests.e2e.test_clients import LEGACY, MODERN, of_one_run

pytestmark = pytest.mark.e2e

SERVER = Path(__file__).with_name("servers") / "events.cjs"
WAYS = {
    ("/mcp", "auto", "pushes"): MODERN,
    ("/mcp", "default", "polled"): LEGACY,
    ("/mcp/all", "auto", "older"): MODERN,
    ("/mcp/all", "default", "pushes"): LEGACY,
}
"""The door, what the client negotiates, and the server; and the revision that the client speaks then."""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon with servers that only push, in both eras, and one that is only polled."""
    node, _, packages = environments.client("typescript.cjs")
    pushes = environments.entry([node], str(SERVER), packages, "push")
    polled = environments.entry([node], str(SERVER), packages, "poll")
    servers = {"pushes": pushes, "polled": polled, "older": {**pushes, "era": "legacy"}}
    with running(tmp_path_factory.mktemp("events"), servers, leaves_calls=True) as daemon:
        trio.run(daemon.ready)
        yield daemon


def arguments_of(daemon: Daemon, door: str, kind: str, server: str) -> tuple[str, ...]:
    """What the client is told: where, how, which type, and what to call so that it happens."""
    execution = {"name": "execute_mcp_tool", "arguments": {"tool_path": f"{server}:order", "arguments": {}}}
    call = execution if door == "/mcp" else {"name": f"{server}__order", "arguments": {}}
    return daemon.url + door, kind, f"{server}:order.created", json.dumps(call)


@pytest.mark.parametrize("way", WAYS)
def test_the_typescript_client_streams_resumes_and_polls_whatever_its_server_does(
    daemon: Daemon, way: tuple[str, str, str]
) -> None:
    ways = {each: arguments_of(daemon, *each) for each in WAYS}
    one = [[f"{way[2]}:order.created", 7]]
    assert of_one_run("typescript_events.cjs", ways)[way] == {
        "version": WAYS[way],
        "declared": True,
        "types": ["older:order.created", "polled:order.created", "pushes:order.created"],
        "live": [["active", None], ["event", 7]],
        "resumed": [["active", False], ["event", 7]],
        "polled": [one, False, True],
        "rest": [one, False, False],
        "refused": -32023,
    }
