"""The doors of a whole daemon, over real sockets, and what of them outlives it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2

from supervisor.host.datadir import DataDir
from supervisor.servers.deployment import DeployedServer
from tests.fakes.http_client import JSON_HEADERS, legacy
from tests.fakes.memory import MemoryTransport
from tests.fakes.whole_server import INFO, INSTRUCTIONS, TOOLS, WholeServer
from tests.scenario.client import Client
from tests.scenario.daemon import configuration, running

LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
PATHS = ("/mcp", "/mcp/all", "/mcp/servers/one", "/mcp/servers/two")


class Fleet:
    """Two servers; one of them says more than it must."""

    def __init__(self) -> None:
        self.servers = {name: WholeServer(prompts=("prompt0",)) for name in ("one", "two")}

    def connect(self, server: DeployedServer) -> MemoryTransport:
        return MemoryTransport(self.servers[server.name].serve)


async def ask(client: httpx2.AsyncClient, path: str, method: str, session: str = "", **params: Any) -> httpx2.Response:
    headers = {**JSON_HEADERS, **({"mcp-session-id": session} if session else {})}
    return await client.post(path, headers=headers, content=legacy(method, params))


async def initialize(client: httpx2.AsyncClient, path: str) -> httpx2.Response:
    return await ask(client, path, "initialize", protocolVersion="2025-11-25")


async def test_doors_names_and_sessions_outlive_the_daemon_and_wake_nobody(tmp_path: Path, data: DataDir) -> None:
    config = configuration(tmp_path, {name: {"command": "x"} for name in ("one", "two")})
    first, second = Fleet(), Fleet()
    async with running(config, data, connect=first.connect) as client:
        await Client(client).ready()
        opened = {path: await initialize(client, path) for path in PATHS}
        listed = {method: (await ask(client, "/mcp/all", method)).json()["result"] for method in LISTS}
    assert [prompt["name"] for prompt in listed["prompts/list"]["prompts"]] == ["one__prompt0", "two__prompt0"]
    sessions = {path: answer.headers["mcp-session-id"] for path, answer in opened.items()}
    async with running(config, data, connect=second.connect) as client:
        for path in PATHS:
            for other, session in sessions.items():
                status = (await ask(client, path, "ping", session)).status_code
                assert status == (200 if other == path else 404)
        greeting = (await initialize(client, "/mcp/servers/one")).json()["result"]
        assert greeting == opened["/mcp/servers/one"].json()["result"]
        assert (greeting["serverInfo"], greeting["instructions"]) == (INFO, INSTRUCTIONS)
        own = (await ask(client, "/mcp/servers/one", "tools/list", sessions["/mcp/servers/one"])).json()["result"]
        assert own == {"tools": TOOLS}
        assert {method: (await ask(client, "/mcp/all", method)).json()["result"] for method in LISTS} == listed
        assert [server.starts for server in second.servers.values()] == [0, 0]
        called = await ask(client, "/mcp/all", "tools/call", name="two__tool1", arguments={})
        assert called.json()["result"]["content"] == []
        assert [server.starts for server in second.servers.values()] == [0, 1]


async def test_an_address_without_a_door_says_which_there_are(tmp_path: Path, data: DataDir) -> None:
    async with running(configuration(tmp_path, {"one": {"command": "x"}}), data, connect=Fleet().connect) as client:
        (row,) = (await client.get("/api/status")).json()["servers"]
        assert (await initialize(client, row["path"])).json()["result"]["serverInfo"] == INFO
        answer = await initialize(client, "/mcp/servers/three")
        assert answer.status_code == 404
        assert answer.json()["error"]["data"]["servers"] == ["one"]
        answer = await initialize(client, "/mcp/nothing")
        assert answer.status_code == 404
        assert "/mcp/servers/NAME" in answer.json()["error"]["message"]
        assert (await client.get("/mcp/servers/o%20ne")).status_code == 404


async def test_who_comes_to_an_address_beside_that_of_mcp_is_served_or_told_where_it_is(
    tmp_path: Path, data: DataDir
) -> None:
    """A slash at the end changes nothing, an old client is told the address, and a browser gets the pages."""
    config = configuration(tmp_path, {name: {"command": "x"} for name in ("one", "two")})
    async with running(config, data, connect=Fleet().connect) as client:
        await Client(client).ready()
        for path in PATHS:
            plain, slashed = await ask(client, path, "tools/list"), await ask(client, f"{path}/", "tools/list")
            assert (slashed.status_code, slashed.json()) == (200, plain.json())
        old = [await client.get("/sse", headers={"accept": "text/event-stream"}), await ask(client, "/sse", "ping")]
        old += [await ask(client, "/messages/?session_id=1", "ping")]
        assert [answer.status_code for answer in old] == [404] * 3
        assert all("MCP is served at /mcp" in answer.text for answer in old)
        browser = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
        shown = await client.get("/mcp", headers=browser)
        assert (shown.status_code, shown.headers["location"]) == (303, "/ui")
        assert (await client.get("/mcp", headers={"accept": "text/event-stream"})).status_code == 405
