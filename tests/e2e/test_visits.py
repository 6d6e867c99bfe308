"""The official Python client 1.x before a server of the same SDK, which tells it that visits to an address are over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import trio

from tests.e2e import environments
from tests.e2e.daemons import Daemon, running
from tests.e2e.test_clients import address, of_one_run
from tests.e2e.test_matrix import listening

pytestmark = pytest.mark.e2e

SERVER = str(Path(__file__).with_name("servers") / "visits.py")
WAYS = {"/mcp/servers/piped": "", "/mcp/servers/remote": "", "/mcp/all": "remote__"}
HEARD = {"asked": "accept", "first": "one", "refused": [-32042, "two"], "second": "two", "other": "three", "more": 0}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon before the server, over both transports."""
    program = [*environments.python_1(), SERVER]
    with ExitStack() as stack:
        address = stack.enter_context(listening(program))
        servers = {"piped": environments.entry(program, "stdio"), "remote": {"url": address()}}
        daemon = stack.enter_context(running(tmp_path_factory.mktemp("visits"), servers))
        trio.run(daemon.ready)
        yield daemon


@pytest.mark.parametrize("path", WAYS)
@pytest.mark.parametrize("transport", ["http", "websocket", "stdio"])
def test_who_was_asked_to_open_an_address_hears_that_it_is_done(daemon: Daemon, transport: str, path: str) -> None:
    base = address(daemon, transport)
    ways = {path: (base + path, transport, prefix) for path, prefix in WAYS.items()}
    assert of_one_run("mcp1_visits.py", ways)[path] == HEARD
