"""Every official client before every official server, of both eras, over stdio and HTTP: all that is told and asked.

A client is run once for all servers, behind the doors of one daemon. What it has to see is in `matrix.py`.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.e2e import environments
from tests.e2e.daemons import Daemon, running
from tests.e2e.matrix import CLIENTS, SERVERS, TRANSPORTS, Server, expected
from tests.e2e.test_clients import report

pytestmark = pytest.mark.e2e

BESIDE = Path(__file__).parent
Reports = Callable[[str], dict[str, Any]]
"""What a client saw, by server."""


def interpreter(script: str) -> list[str]:
    """Return what runs a script of a client or a server. Skips where that cannot be had."""
    if script in ("mcp1_features.py", "python_1.py"):
        return [environments.python_1()]
    return [environments.python_2()]


@contextmanager
def listening(script: str) -> Iterator[str]:
    """Run a server for the block; its address."""
    command = [*interpreter(script), str(BESIDE / "servers" / script), "http"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
    finally:
        process.kill()
        process.communicate()


def entry(server: Server, transport: str, stack: ExitStack) -> dict[str, Any]:
    """Return the entry of a server, which is started if it listens."""
    settings = {"era": server.era} if server.pinned else {}
    if transport == "http":
        return {"url": stack.enter_context(listening(server.script))} | settings
    program, *arguments = [*interpreter(server.script), str(BESIDE / "servers" / server.script), "stdio"]
    return {"command": program, "args": arguments} | settings


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon before all servers, over both transports."""
    with ExitStack() as stack:
        entries = {
            f"{name}-{transport}": entry(server, transport, stack)
            for name, server in SERVERS.items()
            for transport in TRANSPORTS
        }
        daemon = stack.enter_context(running(tmp_path_factory.mktemp("matrix"), entries))
        trio.run(daemon.ready)
        yield daemon


@pytest.fixture(scope="module")
def reports(daemon: Daemon) -> Reports:
    """Each client is run when its first cell is asked for."""
    servers = [f"{name}-{transport}" for name in SERVERS for transport in TRANSPORTS]

    @cache
    def run(name: str) -> dict[str, Any]:
        client = CLIENTS[name]
        command = [*interpreter(client.script), str(BESIDE / "clients" / client.script)]
        return report(*command, daemon.url, client.how, *servers)

    return run


async def test_the_servers_are_of_both_eras(daemon: Daemon) -> None:
    spoken = {name: row["protocol_version"] for name, row in (await daemon.servers()).items()}
    assert spoken == {
        f"{name}-{transport}": "2026-07-28" if server.era == "modern" else "2025-11-25"
        for name, server in SERVERS.items()
        for transport in TRANSPORTS
    }


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_sees_what_the_matrix_says(reports: Reports, client: str, server: str, transport: str) -> None:
    assert reports(client)[f"{server}-{transport}"] == expected(CLIENTS[client], SERVERS[server])
