"""The first moments of a daemon that knows its servers from an earlier run."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio

from actors.catalogue.snapshot import segment_of
from actors.registry import indexing
from actors.search.segment import Segment
from supervisor.host.datadir import DataDir
from supervisor.servers.deployment import DeployedServer
from supervisor.service.lookup import visible
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.memory import MemoryTransport
from tests.scenario.client import Client
from tests.scenario.daemon import configuration, running


def connect(server: DeployedServer) -> MemoryTransport:
    """Reach a server with the tools `echo` and `send_NAME`."""
    return MemoryTransport(FakeServer(tools=[tool("echo"), tool(f"send_{server.name}")]).serve)


async def meta_call(client: httpx2.AsyncClient, name: str, **arguments: Any) -> Any:
    params = {"name": name, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return (await client.post("/mcp", json=message, timeout=60)).json()["result"]["structuredContent"]


async def test_right_after_a_restart_what_is_read_so_far_is_found_and_all_can_be_called(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = {name: {"command": "x"} for name in ("letter", "parcel")}
    config = configuration(tmp_path, servers)
    async with running(config, data, connect=connect) as client:
        await Client(client).ready()
    released = threading.Event()

    def slow(server: str, *of: Any) -> Segment:
        """Analyse one server at once, and the other one when the test says so."""
        if server == "parcel":
            released.wait(60)
        return segment_of(server, *of)

    monkeypatch.setattr(indexing, "segment_of", slow)
    monkeypatch.setattr(indexing, "PIECE", 1, raising=False)
    monkeypatch.setattr(visible, "INDEX_WAIT_S", 0.5, raising=False)
    async with running(config, data, connect=connect) as client:
        try:
            while not (page := await meta_call(client, "discover_mcp_tools", query="send a letter"))["tools"]:
                assert "can search" in page["notice"]
            assert page["tools"][0]["tool_path"] == "letter:send_letter"
            assert "The daemon has just started and can search 1 of 2 servers so far" in page["notice"]
            listed = await meta_call(client, "discover_mcp_tools", query="parcel:*")
            assert [row["tool_path"] for row in listed["tools"]] == ["parcel:echo", "parcel:send_parcel"]
            assert "notice" not in listed
            assert await meta_call(client, "execute_mcp_tool", tool_path="parcel:echo", arguments={"n": 1}) == {"n": 1}
        finally:
            released.set()
        await Client(client).ready()
        assert "notice" not in await meta_call(client, "discover_mcp_tools", query="send a parcel")


async def test_a_server_that_never_sleeps_is_started_with_the_daemon_and_one_that_sleeps_by_a_call(
    tmp_path: Path, data: DataDir
) -> None:
    fakes = {name: FakeServer(tools=[tool("echo")]) for name in ("kept", "lazy", "each")}
    servers: dict[str, dict[str, Any]] = {
        "kept": {"command": "x", "idle_timeout_s": 0},
        "lazy": {"command": "x"},
        "each": {"command": "x", "idle_timeout_s": 0, "instances": "per_client"},
    }

    def reach(server: DeployedServer) -> MemoryTransport:
        return MemoryTransport(fakes[server.name].serve)

    async with running(configuration(tmp_path, servers), data, connect=reach) as client:
        await Client(client).ready()
    before = {name: fake.starts for name, fake in fakes.items()}
    async with running(configuration(tmp_path, servers, reload_on_change=False), data, connect=reach) as client:
        await until(client, kept="ready")
        assert {name: fake.starts - before[name] for name, fake in fakes.items()} == {"kept": 1, "lazy": 0, "each": 0}
        servers["lazy"] = {**servers["lazy"], "idle_timeout_s": 0}
        configuration(tmp_path, servers, reload_on_change=False)
        assert (await client.post("/api/reload")).status_code == 200
        await until(client, kept="ready", lazy="ready")
        assert (await client.post("/api/servers/kept/disable")).status_code == 200
        answer = await client.post("/api/servers/kept/enable")
        assert answer.json()["message"] == "kept is switched on, and ready"
        await until(client, kept="ready", lazy="ready")


async def until(client: httpx2.AsyncClient, **states: str) -> None:
    """Wait until servers are so."""
    with trio.fail_after(60):
        while True:
            rows = (await client.get("/api/status")).json()["servers"]
            if states.items() <= {row["server"]: row["state"] for row in rows}.items():
                return
            await trio.sleep(0.01)


@pytest.mark.process
@pytest.mark.parametrize("package", ["cryptography", "opentelemetry"])
def test_what_takes_megabytes_and_few_need_is_not_loaded_before_it_is_needed(package: str) -> None:
    code = f"import sys, supervisor.daemon; print([name for name in sys.modules if name.startswith({package!r})])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
