"""Entries in every way that the protocol does not have, as the official TypeScript clients read them beside others."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from actors.protocol.listing import MEMBERS, METHODS
from tests.e2e.daemons import Daemon, running, stand_in
from tests.e2e.test_clients import of_one_run
from tests.fakes.misshapen import misshapen

pytestmark = pytest.mark.e2e

SERVER = Path(__file__).with_name("servers") / "misshapen.py"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon with a server that lists everything in every wrong shape, and one beside it."""
    lists = tmp_path_factory.mktemp("lists") / "lists.json"
    said = {}
    for kind, method in METHODS.items():
        entries = [*misshapen(kind)]
        said[method] = [{MEMBERS[kind]: entries[at : at + 200]} for at in range(0, len(entries), 200)]
    lists.write_text(json.dumps(said), encoding="utf-8")
    servers = {
        "odd": {"command": sys.executable, "args": ["-I", str(SERVER), str(lists)]},
        "growing": stand_in("growing"),
    }
    with running(tmp_path_factory.mktemp("misshapen"), servers) as daemon:
        trio.run(daemon.ready)
        yield daemon


@pytest.mark.parametrize("kind", ["sdk", "auto"])
@pytest.mark.parametrize("path", ["/mcp/all", "/mcp/servers/odd", "/mcp"])
def test_the_typescript_clients_read_every_list_to_its_end(daemon: Daemon, path: str, kind: str) -> None:
    ways = {
        (path, kind): (daemon.url + path, kind)
        for kind in ("sdk", "auto")
        for path in ("/mcp/all", "/mcp/servers/odd", "/mcp")
    }
    found = of_one_run("typescript_lists.cjs", ways)[path, kind]
    assert found["tools"] > (1500 if path != "/mcp" else 3)
    assert min(found["resources"], found["templates"], found["prompts"]) > 200
