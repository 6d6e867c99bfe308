"""Every official client before every official server, of both eras, over stdio and HTTP: all that is told and asked.

A client is run once for all servers, behind the doors of one daemon, and for those of its era that it reaches without
one. What it has to see is in `matrix.py`.
"""

from __future__ import annotations

import json
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
from tests.e2e.matrix import CLIENTS, DIRECT, SERVERS, TRANSPORTS, VERSIONS, directly, expected
from tests.e2e.test_clients import report

pytestmark = pytest.mark.e2e

BESIDE = Path(__file__).parent
CLIENT_S = 150.0
"""For one client and all servers; on an idle machine it is 20."""
PYTHON_1 = ("mcp1_features.py", "python_1.py")
Reports = Callable[[str], dict[str, Any]]
"""What a client saw, by server and way: a transport behind the daemon, or `direct`."""


def command(folder: str, script: str) -> list[str] | None:
    """Return what runs a client or a server, or None where there is no Node.js."""
    file = str(BESIDE / folder / script)
    if script.endswith(".py"):
        return [*(environments.python_1() if script in PYTHON_1 else environments.python_2()), file]
    node = environments.node()
    return None if node is None else [node, file, environments.typescript()]


@contextmanager
def listening(program: list[str]) -> Iterator[Callable[[], str]]:
    """Run a server for the block; what waits for its address."""
    process = subprocess.Popen([*program, "http"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def address() -> str:
        assert process.stdout is not None
        return f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"

    try:
        yield address
    finally:
        process.kill()
        process.communicate()


def entries(stack: ExitStack) -> dict[str, Any]:
    """Return the entries of the servers that can be run; those over HTTP run as long as the stack."""
    programs = {name: command("servers", server.script) for name, server in SERVERS.items()}
    addresses = {name: stack.enter_context(listening(program)) for name, program in programs.items() if program}
    made: dict[str, Any] = {}
    for name, address in addresses.items():
        program = programs[name] or []
        era = {"era": SERVERS[name].era} if SERVERS[name].pinned else {}
        made[f"{name}-stdio"] = {"command": program[0], "args": [*program[1:], "stdio"], **era}
        made[f"{name}-http"] = {"url": address(), **era}
    return made


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon before all servers, over both transports."""
    with ExitStack() as stack:
        daemon = stack.enter_context(running(tmp_path_factory.mktemp("matrix"), entries(stack)))
        trio.run(daemon.ready)
        yield daemon


@pytest.fixture(scope="module")
def reports(daemon: Daemon) -> Reports:
    """Each client is run when its first feature is looked at."""
    entries = json.loads((daemon.directory / "mcp.json").read_text())["mcpServers"]
    doors = {name: f"{daemon.url}/mcp/servers/{name}" for name in entries}

    @cache
    def run(name: str) -> dict[str, Any]:
        client = CLIENTS[name]
        program = needing_node(command("clients", client.script))
        own = {server: entries.get(f"{server}-http") for of, server in DIRECT if of == name}
        addresses = doors | {f"{server}-direct": entry["url"] for server, entry in own.items() if entry}
        over = "stdio+" if client.piped else ""
        given = [f"{each}={over}{address}" for each, address in addresses.items()]
        return report(*program, client.how, f"{over}{daemon.url}/mcp", *given, within_s=CLIENT_S)

    return run


def needing_node(program: list[str] | None) -> list[str]:
    """Skip if there is no program."""
    if program is None:  # the one thing that cannot be installed from the registries this project uses
        pytest.skip("not run: the TypeScript clients and servers need Node.js 20 or later, and there is none")
    return program


async def test_the_servers_are_of_both_eras(daemon: Daemon) -> None:
    for name, row in (await daemon.rows()).items():
        assert row["protocol_version"] == VERSIONS[SERVERS[name.rpartition("-")[0]].era]


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_sees_what_the_matrix_says(reports: Reports, client: str, server: str, transport: str) -> None:
    needing_node(command("servers", SERVERS[server].script))
    assert reports(client)[f"{server}-{transport}"] == expected(CLIENTS[client], SERVERS[server], transport)


@pytest.mark.parametrize(("client", "server"), DIRECT)
def test_a_client_sees_the_same_without_the_daemon_but_for_what_the_matrix_says(
    reports: Reports, client: str, server: str
) -> None:
    needing_node(command("servers", SERVERS[server].script))
    assert reports(client)[f"{server}-direct"] == directly(client, server)
