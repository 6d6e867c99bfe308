"""A daemon whose servers take values of people: who has which process, and what becomes of it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from trio_websocket import ConnectionRejected

from actors.launch import server_of
from supervisor.host.datadir import DataDir
from supervisor.servers.deployment import DeployedServer
from supervisor.servers.launches import running as running_module
from tests.fakes.http_client import modern
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.memory import MemoryTransport
from tests.fakes.websocket_client import open_websocket
from tests.scenario.daemon import World, configuration, running

SERVERS: dict[str, Any] = {
    "forge": {
        "command": "x",
        "env": {"TOKEN": "${user:TOKEN}", "HOST": "${team:HOST:-alpha}"},
        "description": "issues of a forge",
    },
    "look": {"command": "x", "args": ["--mode", "${user:MODE:-plain}"]},
    "clock": {"command": "x"},
}
IDENTITY: dict[str, Any] = {
    "users": {
        "ana": {"values": {"forge": {"TOKEN": "canary-ana-1"}}},
        "ben": {"values": {"forge": {"TOKEN": "canary-ben-1"}, "look": {"MODE": "dark"}}},
        "cem": {"values": {"look": {"MODE": "dark"}}},
        "dan": {},
    },
    "teams": {"core": {"members": ["ana", "ben"], "values": {"forge": {"HOST": "beta"}}}},
}


class Processes:
    """Every process that was started, and what each server is like: its tools say as whom it was started."""

    def __init__(self) -> None:
        self.started: list[DeployedServer] = []

    def connect(self, server: DeployedServer) -> MemoryTransport:
        self.started.append(server)
        tools = [tool(f"use_{server_of(server.name)}"), tool(f"as_{whose(server)}")]
        return MemoryTransport(FakeServer(tools=tools).serve)

    def of(self, server: str) -> list[str]:
        """Return as whom a server was started, once for each launch."""
        return sorted({whose(each) for each in self.started if server_of(each.name) == server})


def whose(server: DeployedServer) -> str:
    given = [*server.launch.env.values(), *server.launch.args]
    return "_".join(given).replace("-", "_") or "anybody"


@asynccontextmanager
async def doorway(
    directory: Path, data: DataDir, processes: Processes, identity: dict[str, Any] = IDENTITY
) -> AsyncIterator[World]:
    config = configuration(directory, SERVERS, auth="tokens", identity=identity)
    async with running(config, data, connect=processes.connect) as client:
        at = World(client, data)
        await at.operator.ready()
        for user in identity["users"]:
            await at.admit(user)
        yield at


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    with trio.fail_after(20):
        while not await holds():  # noqa: ASYNC110 - processes start
            await trio.sleep(0.02)


async def until_seen(at: World, user: str, name: str) -> list[str]:
    async def sees() -> bool:
        return name in await at[user].tools()

    await until(sees)
    return await at[user].tools()


@pytest.mark.case("I07")
async def test_each_has_the_process_of_their_values_and_equals_share_one(tmp_path: Path, data: DataDir) -> None:
    processes = Processes()
    async with doorway(tmp_path, data, processes) as at:
        assert processes.of("forge") == [], "who has not come in costs nothing"
        assert await until_seen(at, "ana", "forge__use_forge") == [
            *("clock__as_anybody", "clock__use_clock", "forge__as_canary_ana_1_beta", "forge__use_forge"),
            *("look__as___mode_plain", "look__use_look"),
        ]
        ben = await until_seen(at, "ben", "forge__as_canary_ben_1_beta")
        assert "look__as___mode_dark" in await until_seen(at, "ben", "look__as___mode_dark")
        assert "forge__as_canary_ana_1_beta" not in ben
        assert await until_seen(at, "cem", "look__as___mode_dark") == [
            *("clock__as_anybody", "clock__use_clock", "look__as___mode_dark", "look__use_look"),
        ]
        assert "look__as___mode_plain" in await until_seen(at, "dan", "look__as___mode_plain")
        assert processes.of("forge") == ["canary_ana_1_beta", "canary_ben_1_beta"]
        assert len([each for each in processes.started if server_of(each.name) == "look"]) == 2
        assert len([each for each in processes.started if each.name == "clock"]) == 1
        rows = (await at.operator.ask("GET", "/api/status")).json()["servers"]
        users = {server_of(row["server"]): row["users"] for row in rows if "users" in row and row["tools"]}
        assert users["look"] == ["ben", "cem"]
        totals = (await at.operator.ask("GET", "/api/status")).json()["totals"]
        assert totals["servers"] == len(SERVERS), "however many launches they have"
        assert "canary" not in json.dumps([row for row in rows if "tools" not in row or row["server"] == "forge"])


@pytest.mark.case("I08")
async def test_a_call_goes_to_the_launch_of_whoever_makes_it(tmp_path: Path, data: DataDir) -> None:
    processes = Processes()
    async with doorway(tmp_path, data, processes) as at:
        await until_seen(at, "ana", "forge__use_forge")
        await until_seen(at, "ben", "forge__use_forge")
        answer = await at["ana"].result("execute_mcp_tool", tool_path="forge:as_canary_ana_1_beta", arguments={"n": 1})
        assert answer["structuredContent"] == {"n": 1}
        for path in ("forge:as_canary_ana_1_beta", "forge~x:use_forge"):
            foreign = await at["ben"].result("execute_mcp_tool", tool_path=path, arguments={})
            assert foreign["isError"]
            assert "there is no" in json.dumps(foreign) or "has no tool" in json.dumps(foreign)
            assert not {"forge:as_canary_ana_1_beta"} & set(foreign["structuredContent"]["error"]["nearest"])
        rows = (await at.operator.ask("GET", "/api/status")).json()["servers"]
        own = [row for row in rows if server_of(row["server"]) == "forge" and "users" in row]
        calls = {tuple(row["users"]): row["calls"] for row in own}
        assert calls == {("ana",): 1, ("ben",): 0}
        found = await at["ben"].result("discover_mcp_tools", query="forge")
        assert "canary_ben" in json.dumps(found)
        assert "ana_1" not in json.dumps(found["structuredContent"]["tools"])


async def test_what_waits_for_a_value_says_which_and_how_it_is_given(tmp_path: Path, data: DataDir) -> None:
    processes = Processes()
    async with doorway(tmp_path, data, processes) as at:
        for who in ("dan", "operator"):
            refused = await at[who].result("execute_mcp_tool", tool_path="forge:use_forge", arguments={})
            error = refused["structuredContent"]["error"]
            assert (error["type"], error["missing"]) == ("needs_configuration", ["TOKEN"])
            assert "mcpvisor config set forge TOKEN" in error["message"]
            found = await at[who].result("discover_mcp_tools", query="issues of a forge")
            assert "forge waits for values" in found["structuredContent"]["notice"]
        body = (await at.operator.ask("GET", "/readyz")).json()
        assert (body["failed"], body["discovering"]) == ([], [])
        row = (await at.operator.ask("GET", "/api/servers/forge")).json()
        assert (row["state"], row["awaits"]) == ("stopped", ["TOKEN"])
        door = (await at["dan"].at("/mcp/servers/forge").rpc("tools/list"))["error"]
        assert door["data"]["type"] == "needs_configuration"
    assert processes.of("forge") == []


async def test_a_changed_value_is_another_launch_and_the_one_that_nobody_has_leaves(
    tmp_path: Path, data: DataDir
) -> None:
    processes = Processes()
    async with doorway(tmp_path, data, processes) as at:
        await until_seen(at, "ana", "forge__use_forge")
        await until_seen(at, "cem", "look__as___mode_dark")
        changed = json.loads(json.dumps(IDENTITY))
        changed["users"]["ana"]["values"]["forge"]["TOKEN"] = "canary-ana-2"
        changed["users"]["cem"] = {}
        del changed["users"]["ben"]
        changed["teams"]["core"]["members"] = ["ana"]
        await write_and_reload(at, tmp_path, SERVERS, changed)
        assert "forge__as_canary_ana_1_beta" not in await until_seen(at, "ana", "forge__as_canary_ana_2_beta")
        assert "look__as___mode_dark" not in await until_seen(at, "cem", "look__as___mode_plain")

        async def alone() -> bool:
            rows = (await at.operator.ask("GET", "/api/status")).json()["servers"]
            own = [row for row in rows if "users" in row]
            return [(server_of(row["server"]), row["users"]) for row in own] == [("forge", ["ana"])]

        await until(alone)


async def write_and_reload(at: World, directory: Path, servers: dict[str, Any], identity: dict[str, Any]) -> None:
    configuration(directory, servers, auth="tokens", identity=identity)
    answer = await at.operator.ask("POST", "/api/reload")
    assert answer.status_code == 200, answer.text


async def test_what_is_known_of_a_launch_outlives_the_daemon(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, Processes()) as at:
        await until_seen(at, "ana", "forge__use_forge")
        await until_seen(at, "cem", "look__as___mode_dark")
        token = at.keys["ana"]
    later = Processes()
    config = configuration(tmp_path, SERVERS, auth="tokens", identity=IDENTITY)
    async with running(config, data, connect=later.connect) as client:
        at = World(client, data)
        at.keys["ana"] = token
        await at.operator.ready()
        assert "forge__as_canary_ana_1_beta" in await until_seen(at, "ana", "forge__as_canary_ana_1_beta")
        assert later.of("forge") == [], "what is known needs nothing of its own until somebody calls it"

        async def rows() -> dict[str, Any]:
            page = (await at.operator.ask("GET", "/api/status")).json()
            return {server_of(row["server"]) + "~" * ("users" in row): row for row in page["servers"]}

        assert "forge~" not in await rows()
        assert (await rows())["forge"]["launches"] == 1
        answer = await at["ana"].result("execute_mcp_tool", tool_path="forge:as_canary_ana_1_beta", arguments={"n": 3})
        assert answer["structuredContent"] == {"n": 3}
        assert later.of("forge") == ["canary_ana_1_beta"]
        assert ((await rows())["forge~"]["state"], (await rows())["forge~"]["users"]) == ("ready", ["ana"])


async def test_a_launch_that_sleeps_is_nothing_but_known_until_somebody_calls_it(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running_module, "LOOK_S", 0.01)
    servers = {"forge": {**SERVERS["forge"], "idle_timeout_s": 0.05}}
    processes, identity = Processes(), {**IDENTITY, "users": {"ana": IDENTITY["users"]["ana"]}}
    config = configuration(tmp_path, servers, auth="tokens", identity=identity)
    async with running(config, data, connect=processes.connect) as client:
        at = World(client, data)
        await at.admit("ana")
        await until_seen(at, "ana", "forge__use_forge")
        number = 0
        while len(processes.started) < 4:  # each actor has a transport of its own
            for _ in range(3):
                number += 1
                answer = await at["ana"].result(
                    "execute_mcp_tool", tool_path="forge:use_forge", arguments={"n": number}
                )
                assert answer["structuredContent"] == {"n": number}
            await trio.sleep(0.04 + number % 7 / 100)  # some calls come while the actor is taken
        assert processes.of("forge") == ["canary_ana_1_beta"]
        assert (await at.operator.ask("POST", "/api/servers/forge/disable")).status_code == 200
        refused = await at["ana"].result("execute_mcp_tool", tool_path="forge:use_forge", arguments={})
        assert refused["structuredContent"]["error"]["type"] == "disabled"
        assert await at["ana"].tools() == []


async def test_a_server_that_is_switched_off_is_off_for_everybody(tmp_path: Path, data: DataDir) -> None:
    processes = Processes()
    async with doorway(tmp_path, data, processes) as at:
        await until_seen(at, "ana", "forge__use_forge")
        assert (await at.operator.ask("POST", "/api/servers/forge/disable")).status_code == 200
        refused = await at["ana"].result("execute_mcp_tool", tool_path="forge:use_forge", arguments={})
        assert refused["structuredContent"]["error"]["type"] == "disabled"
        assert "forge~" not in json.dumps(refused)
        late = await at["ben"].result("execute_mcp_tool", tool_path="forge:use_forge", arguments={})
        assert late["structuredContent"]["error"]["type"] == "disabled"
        assert (await at.operator.ask("POST", "/api/servers/forge/enable")).status_code == 200
        await until_seen(at, "ana", "forge__use_forge")
        answer = await at["ana"].result("execute_mcp_tool", tool_path="forge:use_forge", arguments={"n": 2})
        assert answer["structuredContent"] == {"n": 2}


@pytest.mark.case("I05")
async def test_a_member_sees_the_log_of_what_is_started_for_them_alone_and_their_own_calls(
    tmp_path: Path, data: DataDir
) -> None:
    async with doorway(tmp_path, data, Processes()) as at:
        for user in ("ana", "ben"):
            await until_seen(at, user, "forge__use_forge")
            await until_seen(at, user, "look__use_look")
        for _ in range(2):
            await at["ana"].result("execute_mcp_tool", tool_path="forge:use_forge", arguments={})
        nowhere = await at["ana"].ask("GET", "/api/servers/nowhere/logs")
        assert nowhere.status_code == 404
        lines = (await at["ana"].ask("GET", "/api/servers/forge/logs")).json()["lines"]
        assert lines
        assert "canary" not in json.dumps(lines)
        assert (await at["ben"].ask("GET", "/api/servers/clock/logs")).content == nowhere.content, "all share it"
        assert (await at["ben"].ask("GET", "/api/servers/look/logs")).status_code == 200
        await until_seen(at, "cem", "look__use_look")
        assert (await at["ben"].ask("GET", "/api/servers/look/logs")).content == nowhere.content, "cem has it as well"
        assert (await at["cem"].ask("GET", "/api/servers/forge/logs")).content == nowhere.content, "it waits for values"
        port = at.http.base_url.port
        assert port is not None
        shown = [("authorization", f"Bearer {at.keys['ana']}")]
        async with open_websocket(port, "/api/servers/forge/logs?after=0", shown) as socket:
            assert json.loads(await socket.get_message())["lines"]
        with pytest.RaisesGroup(pytest.RaisesExc(ConnectionRejected, check=lambda error: error.status_code == 404)):
            async with open_websocket(port, "/api/servers/clock/logs?after=0", shown):
                pass
        calls = {
            user: {row["server"]: row["calls"] for row in (await at[user].ask("GET", "/api/me")).json()["servers"]}
            for user in ("ana", "ben")
        }
        assert (calls["ana"]["forge"], calls["ben"]["forge"]) == (2, 0)


async def test_logs_outlive_the_daemon_and_each_sees_what_came_while_a_launch_was_theirs_alone(
    tmp_path: Path, data: DataDir
) -> None:
    async def texts(at: World, user: str, path: str) -> list[str]:
        return [line["text"] for line in (await at[user].ask("GET", path)).json()["lines"]]

    for users in (("ben", "cem"), ("cem",)):
        async with doorway(tmp_path, data, Processes()) as at:
            for user in users:
                await until_seen(at, user, "look__use_look")
            await at["cem"].result("execute_mcp_tool", tool_path="look:use_look", arguments={})
            rows = (await at.operator.ask("GET", "/api/status")).json()["servers"]
            look = next(row["server"] for row in rows if server_of(row["server"]) == "look" and row.get("users"))
            assert (await at.operator.ask("POST", f"/api/servers/{look}/restart")).status_code == 200
            everything = await texts(at, "operator", f"/api/servers/{look}/logs?lines=1000")
            if users == ("cem",):
                assert everything.count("restart ordered") == 2, "one of them before"
                assert (await texts(at, "cem", "/api/servers/look/logs?lines=1000")).count("restart ordered") == 1
                of_cem = (await at["cem"].ask("GET", "/api/logs?lines=1000")).json()["lines"]
                assert {line["server"] for line in of_cem} == {look}
                assert [line["text"] for line in of_cem].count("restart ordered") == 1
                port = at.http.base_url.port
                assert port is not None
                shown = [("authorization", f"Bearer {at.keys['cem']}")]
                async with open_websocket(port, "/api/logs?after=0", shown) as socket:
                    assert json.loads(await socket.get_message())["server"] == look
            else:
                assert await texts(at, "cem", "/api/logs") == [], "ben has it as well"
            assert "clock" in {line["server"] for line in (await at.operator.ask("GET", "/api/logs")).json()["lines"]}
    written = "".join(file.read_text(encoding="utf-8") for file in (tmp_path / "data" / "logs").iterdir())
    assert '"user":"cem"' in written
    assert "canary" not in written


async def test_an_operator_orders_one_launch_by_its_name(tmp_path: Path, data: DataDir) -> None:
    processes = Processes()
    async with doorway(tmp_path, data, processes) as at:
        await until_seen(at, "ana", "forge__use_forge")
        rows = (await at.operator.ask("GET", "/api/status")).json()["servers"]
        launch = next(row["server"] for row in rows if "users" in row)
        assert server_of(launch) == "forge"
        assert (await at.operator.ask("POST", f"/api/servers/{launch}/restart")).status_code == 200
        row = (await at.operator.ask("GET", f"/api/servers/{launch}")).json()
        assert (row["incarnation"], row["users"]) == (2, ["ana"])
        log = (await at.operator.ask("GET", f"/api/servers/{launch}/logs")).json()
        assert "canary" not in json.dumps(log)
        refused = await at.operator.ask("POST", f"/api/servers/{launch}/disable")
        assert refused.status_code == 400
        assert "disable that" in refused.text


async def test_each_sees_how_their_own_servers_are_doing(tmp_path: Path, data: DataDir) -> None:
    processes = Processes()
    async with doorway(tmp_path, data, processes) as at:
        await until_seen(at, "ana", "forge__use_forge")
        await until_seen(at, "dan", "clock__use_clock")
        mine = (await at["ana"].ask("GET", "/api/me")).json()
        assert (mine["user"], mine["role"], mine["team"]) == ("ana", "member", "")
        assert {row["server"]: row["status"] for row in mine["servers"]} == dict.fromkeys(SERVERS, "online")
        assert mine["tokens"]["exposed_tokens"] > 0
        theirs = {row["server"]: row for row in (await at["dan"].ask("GET", "/api/me")).json()["servers"]}
        assert (theirs["forge"]["status"], theirs["forge"]["missing"]) == ("awaiting_user_config", ["TOKEN"])
        assert "mcpvisor config set forge TOKEN" in theirs["forge"]["reason"]
        assert "ana" not in json.dumps(theirs).replace("canary", "")
        operator = (await at.operator.ask("GET", "/api/me")).json()
        assert [row["server"] for row in operator["servers"]] == ["clock", "forge", "look"]
        listed = (await at.operator.ask("GET", "/api/status")).json()["servers"]
        rows = {row["server"]: row["status"] for row in listed}
        assert (rows["forge"], rows["clock"]) == ("awaiting_user_config", "online")


async def test_a_websocket_is_of_whoever_opened_it(tmp_path: Path, data: DataDir) -> None:
    processes = Processes()
    async with doorway(tmp_path, data, processes) as at:
        for user in ("ana", "ben"):
            await until_seen(at, user, "forge__use_forge")
            bearer = [("authorization", f"Bearer {at.keys[user]}")]
            async with open_websocket(at.http.base_url.port or 0, "/mcp/all", bearer) as socket:
                await socket.send_message(modern("tools/list").decode())
                tools = {each["name"] for each in json.loads(await socket.get_message())["result"]["tools"]}
                assert f"forge__as_canary_{user}_1_beta" in tools
                name = f"forge__as_canary_{user}_1_beta"
                await socket.send_message(modern("tools/call", {"name": name, "arguments": {"n": 7}}).decode())
                assert json.loads(await socket.get_message())["result"]["structuredContent"] == {"n": 7}
        rows = (await at.operator.ask("GET", "/api/status")).json()["servers"]
        own = [row for row in rows if server_of(row["server"]) == "forge" and "users" in row]
        assert {tuple(row["users"]): row["calls"] for row in own} == {("ana",): 1, ("ben",): 1}


class Adders(Processes):
    """Each launch has a tool whose description says as whom it was started."""

    def __init__(self) -> None:
        super().__init__()
        self.servers: dict[str, FakeServer] = {}

    def connect(self, server: DeployedServer) -> MemoryTransport:
        self.servers[whose(server)] = offered = FakeServer(tools=[tool("add", f"Adds to the list of {whose(server)}.")])
        return MemoryTransport(offered.serve)


async def test_the_history_of_a_tool_is_that_of_the_launch_of_whoever_asks(tmp_path: Path, data: DataDir) -> None:
    adders, users = Adders(), IDENTITY["users"]
    identity = {**IDENTITY, "users": {**users, "ana": {**users["ana"], "role": "auditor"}}}
    async with doorway(tmp_path, data, adders, identity) as at:

        async def revisions(who: str, server: str) -> Any:
            told = (await at[who].ask("GET", f"/api/tools/history?path={server}:add")).json()
            assert (told["own"], told["offered"]) == (server != "clock", True), told
            return told["revisions"]

        await at.admit("ana", role="auditor")
        await until_seen(at, "ana", "forge__add")
        await until_seen(at, "ben", "forge__add")
        assert len(await revisions("ana", "forge")) == len(await revisions("ana", "clock")) == 1
        rows = (await at.operator.ask("GET", "/api/status")).json()["servers"]
        launch, bens = (
            next(row["server"] for row in rows if row.get("users") == [user] and server_of(row["server"]) == "forge")
            for user in ("ana", "ben")
        )
        adders.servers["canary_ana_1_beta"].tools = [tool("add", "Adds with canary-ana-1.")]
        assert (await at.operator.ask("POST", f"/api/servers/{launch}/refresh")).status_code == 200
        found = await revisions("ana", "forge")
        assert [change["place"] for change in found[1]["changes"]] == ["description"]
        assert "canary-ana-1" not in json.dumps(found), "secrets are masked as everywhere"
        assert await revisions("operator", launch) == found
        assert len(await revisions("operator", bens)) == 1, "what one has of it says nothing of another's"
        nobodys = await at.operator.ask("GET", "/api/tools/history?path=forge:add")
        assert nobodys.status_code == 404
        assert "name one of its launches" in nobodys.text
        for name in ("forge", launch, bens):
            assert (await at["ben"].ask("GET", f"/api/tools/history?path={name}:add")).status_code == 404
