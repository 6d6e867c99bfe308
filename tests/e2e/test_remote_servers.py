"""The daemon in front of servers of the official Python SDK, 1.x and 2.x, over everything they listen with."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trio

from tests.e2e import environments
from tests.e2e.daemons import Daemon, running

pytestmark = pytest.mark.e2e

SERVER = str(Path(__file__).with_name("sdk_server.py"))
LEGACY, MODERN = "2025-11-25", "2026-07-28"


class Sdk(NamedTuple):
    """What listens how, where, and what the daemon finds out. `type_`: what its entry says of it."""

    major: int
    listens: str
    path: str
    kind: str
    version: str
    type_: str = ""


SERVERS = {
    "one-http": Sdk(1, "http", "http:/mcp", "http", LEGACY),
    "one-json": Sdk(1, "json", "http:/mcp", "http", LEGACY),
    "one-sse": Sdk(1, "sse", "http:/sse", "sse", LEGACY),
    "one-websocket": Sdk(1, "websocket", "ws:/", "websocket", LEGACY),
    "two-http": Sdk(2, "http", "http:/mcp", "http", MODERN),
    "two-json": Sdk(2, "json", "http:/mcp", "http", MODERN),
    "two-sse": Sdk(2, "sse", "http:/sse", "sse", LEGACY, "sse"),
}


def wait_for(port: int) -> None:
    """Return once something listens: a server tells its port before it does."""
    deadline = time.monotonic() + 30
    while True:
        with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), 5):
            return
        assert time.monotonic() < deadline
        threading.Event().wait(0.05)


@contextmanager
def listening(sdk: Sdk) -> Iterator[Callable[[], str]]:
    """Run a server for the block; what waits for its address."""
    python = environments.python_1() if sdk.major == 1 else environments.python_2()
    process = subprocess.Popen([*python, SERVER, sdk.listens], stdout=subprocess.PIPE, text=True)

    def address() -> str:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        wait_for(port)
        scheme, _, path = sdk.path.partition(":")
        return f"{scheme}://127.0.0.1:{port}{path}"

    try:
        yield address
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon before all of them."""
    with ExitStack() as stack:
        addresses = {name: stack.enter_context(listening(sdk)) for name, sdk in SERVERS.items()}
        entries: dict[str, Any] = {}
        for name, sdk in SERVERS.items():
            entries[name] = {"url": addresses[name]()} | ({"type": sdk.type_} if sdk.type_ else {})
        daemon = stack.enter_context(running(tmp_path_factory.mktemp("remote"), entries))
        trio.run(daemon.ready)
        yield daemon


@pytest.mark.parametrize("name", SERVERS)
async def test_a_server_of_the_official_sdk_is_found_out_and_called(daemon: Daemon, name: str) -> None:
    sdk = SERVERS[name]
    row = (await daemon.rows())[name]
    assert (row["transport"], row["protocol_version"], row["tools"]) == (sdk.kind, sdk.version, 3)
    answer = await daemon.execute(f"{name}:add", a=2, b=40)
    assert answer["result"]["content"][0]["text"] == "42"


@pytest.mark.parametrize("name", SERVERS)
async def test_an_error_of_a_tool_and_a_resource_come_through(daemon: Daemon, name: str) -> None:
    result = (await daemon.execute(f"{name}:fail"))["result"]
    assert result["isError"] is True
    assert "fail" in result["content"][0]["text"]
    listed = await daemon.call("list_mcp_resources", server=name)
    assert "memo://one" in listed["result"]["content"][0]["text"]


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.parametrize("region", ["us-west1", "São\r\nPaulo"])
async def test_what_a_tool_wants_in_a_header_is_there_where_it_is_checked(
    daemon: Daemon, name: str, region: str
) -> None:
    """SDK 2.x refuses a call in the modern era without `Mcp-Param-Region`, or with another one."""
    answer = await daemon.execute(f"{name}:route", region=region)
    assert answer["result"]["content"][0]["text"] == region


async def test_calls_side_by_side_have_each_its_own_answer(daemon: Daemon) -> None:
    sums: dict[tuple[str, int], str] = {}

    async def call(name: str, number: int) -> None:
        answer = await daemon.execute(f"{name}:add", a=number, b=1)
        sums[name, number] = answer["result"]["content"][0]["text"]

    async with trio.open_nursery() as nursery:
        for name in SERVERS:
            for number in range(10):
                nursery.start_soon(call, name, number)
    assert sums == {(name, number): str(number + 1) for name in SERVERS for number in range(10)}
