"""The doors of a whole daemon, over real sockets, and what of them outlives it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from supervisor.host.datadir import DataDir
from supervisor.servers.deployment import DeployedServer
from tests.fakes.memory import MemoryTransport
from tests.fakes.whole_server import INFO, INSTRUCTIONS, TOOLS, WholeServer
from tests.scenario.daemon import world

HELLO = {"protocolVersion": "2025-11-25"}
SERVERS: dict[str, Any] = {name: {"command": "x"} for name in ("one", "two")}
STREAM = {"accept": "text/event-stream"}
LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
PATHS = ("/mcp", "/mcp/all", "/mcp/servers/one", "/mcp/servers/two")


class Fleet:
    """Two servers; one of them says more than it must."""

    def __init__(self) -> None:
        self.servers = {name: WholeServer(prompts=("prompt0",)) for name in ("one", "two")}

    def connect(self, server: DeployedServer) -> MemoryTransport:
        return MemoryTransport(self.servers[server.name].serve)


async def test_doors_names_and_sessions_outlive_the_daemon_and_wake_nobody(tmp_path: Path, data: DataDir) -> None:
    first, second = Fleet(), Fleet()
    async with world(tmp_path, data, SERVERS, daemon={"connect": first.connect}) as at:
        opened = {path: await at.at(path).send("initialize", **HELLO) for path in PATHS}
        listed = {method: (await at.at("/mcp/all").rpc(method))["result"] for method in LISTS}
    assert [prompt["name"] for prompt in listed["prompts/list"]["prompts"]] == ["one__prompt0", "two__prompt0"]
    sessions = {path: answer.headers["mcp-session-id"] for path, answer in opened.items()}
    async with world(tmp_path, data, SERVERS, waits=False, daemon={"connect": second.connect}) as at:
        one = at.at("/mcp/servers/one")
        for path in PATHS:
            for other, session in sessions.items():
                status = (await at.at(path).within(session).send("ping")).status_code
                assert status == (200 if other == path else 404)
        greeting = (await one.rpc("initialize", **HELLO))["result"]
        assert greeting == opened["/mcp/servers/one"].json()["result"]
        assert (greeting["serverInfo"], greeting["instructions"]) == (INFO, INSTRUCTIONS)
        own = (await one.within(sessions["/mcp/servers/one"]).rpc("tools/list"))["result"]
        assert own == {"tools": TOOLS}
        assert {method: (await at.at("/mcp/all").rpc(method))["result"] for method in LISTS} == listed
        assert [server.starts for server in second.servers.values()] == [0, 0]
        assert (await at.at("/mcp/all").result("two__tool1"))["content"] == []
        assert [server.starts for server in second.servers.values()] == [0, 1]


async def test_an_address_without_a_door_says_which_there_are(tmp_path: Path, data: DataDir) -> None:
    async with world(tmp_path, data, {"one": {"command": "x"}}, daemon={"connect": Fleet().connect}) as at:
        path = (await at.row("one"))["path"]
        assert (await at.at(path).rpc("initialize", **HELLO))["result"]["serverInfo"] == INFO
        answer = await at.at("/mcp/servers/three").send("initialize", **HELLO)
        assert answer.status_code == 404
        assert answer.json()["error"]["data"]["servers"] == ["one"]
        answer = await at.at("/mcp/nothing").send("initialize", **HELLO)
        assert answer.status_code == 404
        assert "/mcp/servers/NAME" in answer.json()["error"]["message"]
        assert (await at.ask("GET", "/mcp/servers/o%20ne")).status_code == 404


async def test_who_comes_to_an_address_beside_that_of_mcp_is_served_or_told_where_it_is(
    tmp_path: Path, data: DataDir
) -> None:
    """A slash at the end changes nothing, an old client is told the address, and a browser gets the pages."""
    async with world(tmp_path, data, SERVERS, daemon={"connect": Fleet().connect}) as at:
        for path in PATHS:
            plain, slashed = [await at.at(each).send("tools/list") for each in (path, f"{path}/")]
            assert (slashed.status_code, slashed.json()) == (200, plain.json())
        old = [await at.ask("GET", "/sse", headers=STREAM), await at.at("/sse").send("ping")]
        old += [await at.at("/messages/?session_id=1").send("ping")]
        assert [answer.status_code for answer in old] == [404] * 3
        assert all("MCP is served at /mcp" in answer.text for answer in old)
        browser = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
        shown = await at.ask("GET", "/mcp", headers=browser)
        assert (shown.status_code, shown.headers["location"]) == (303, "/ui")
        assert (await at.ask("GET", "/mcp", headers=STREAM)).status_code == 405
