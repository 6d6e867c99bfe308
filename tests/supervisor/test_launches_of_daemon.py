"""A daemon whose servers take values of people: who has which process, and what becomes of it."""

from __future__ import annotations

import json
from contextlib import AbstractAsyncContextManager
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
from tests.scenario.daemon import World, world

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


def doorway(
    directory: Path,
    data: DataDir,
    processes: Processes,
    identity: dict[str, Any] = IDENTITY,
    servers: dict[str, Any] = SERVERS,
    **more: Any,
) -> AbstractAsyncContextManager[World]:
    people: dict[str, Any] = {user: {} for user in identity["users"]}
    given = {"auth": "tokens", "identity": identity, "people": people, **more}
    return world(directory, data, servers, daemon={"connect": processes.connect}, **given)


@pytest.mark.case("I07")
async def test_each_has_the_process_of_their_values_and_equals_share_one(tmp_path: Path, data: DataDir) -> None:
    processes = Processes()
    async with doorway(tmp_path, data, processes) as at:
        assert processes.of("forge") == [], "who has not come in costs nothing"
        assert await at["ana"].until_tool("forge__use_forge") == [
            *("clock__as_anybody", "clock__use_clock", "forge__as_canary_ana_1_beta", "forge__use_forge"),
            *("look__as___mode_plain", "look__use_look"),
        ]
        ben = await at["ben"].until_tool("forge__as_canary_ben_1_beta")
        assert "look__as___mode_dark" in await at["ben"].until_tool("look__as___mode_dark")
        assert "forge__as_canary_ana_1_beta" not in ben
        assert await at["cem"].until_tool("look__as___mode_dark") == [
            *("clock__as_anybody", "clock__use_clock", "look__as___mode_dark", "look__use_look"),
        ]
        assert "look__as___mode_plain" in await at["dan"].until_tool("look__as___mode_plain")
        assert processes.of("forge") == ["canary_ana_1_beta", "canary_ben_1_beta"]
        assert len([each for each in processes.started if server_of(each.name) == "look"]) == 2
        assert len([each for each in processes.started if each.name == "clock"]) == 1
        (look,) = await at.launches("look")
        assert (look["users"], look["tools"]) == (["ben", "cem"], 2)
        told = await at.operator.status()
        assert told["totals"]["servers"] == len(SERVERS), "however many launches they have"
        assert "canary" not in json.dumps(
            [row for row in told["servers"] if "tools" not in row or row["server"] == "forge"]
        )


@pytest.mark.case("I08")
async def test_a_call_goes_to_the_launch_of_whoever_makes_it(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, Processes()) as at:
        await at["ana"].until_tool("forge__use_forge")
        await at["ben"].until_tool("forge__use_forge")
        answer = await at["ana"].executed("forge:as_canary_ana_1_beta", n=1)
        assert answer["structuredContent"] == {"n": 1}
        for path in ("forge:as_canary_ana_1_beta", "forge~x:use_forge"):
            foreign = await at["ben"].executed(path)
            assert foreign["isError"]
            assert "there is no" in json.dumps(foreign) or "has no tool" in json.dumps(foreign)
            assert not {"forge:as_canary_ana_1_beta"} & set(foreign["structuredContent"]["error"]["nearest"])
        calls = {tuple(row["users"]): row["calls"] for row in await at.launches("forge")}
        assert calls == {("ana",): 1, ("ben",): 0}
        found = await at["ben"].result("discover_mcp_tools", query="forge")
        assert "canary_ben" in json.dumps(found)
        assert "ana_1" not in json.dumps(found["structuredContent"]["tools"])


async def test_what_waits_for_a_value_says_which_and_how_it_is_given(tmp_path: Path, data: DataDir) -> None:
    processes = Processes()
    async with doorway(tmp_path, data, processes) as at:
        for who in ("dan", "operator"):
            refused = await at[who].executed("forge:use_forge")
            error = refused["structuredContent"]["error"]
            assert (error["type"], error["missing"]) == ("needs_configuration", ["TOKEN"])
            assert "mcpvisor config set forge TOKEN" in error["message"]
            found = await at[who].result("discover_mcp_tools", query="issues of a forge")
            assert "forge waits for values" in found["structuredContent"]["notice"]
        body = await at.operator.page("/readyz")
        assert (body["failed"], body["discovering"]) == ([], [])
        row = await at.operator.row("forge")
        assert (row["state"], row["awaits"]) == ("stopped", ["TOKEN"])
        door = (await at["dan"].at("/mcp/servers/forge").rpc("tools/list"))["error"]
        assert door["data"]["type"] == "needs_configuration"
    assert processes.of("forge") == []


async def test_a_changed_value_is_another_launch_and_the_one_that_nobody_has_leaves(
    tmp_path: Path, data: DataDir
) -> None:
    async with doorway(tmp_path, data, Processes()) as at:
        await at["ana"].until_tool("forge__use_forge")
        await at["cem"].until_tool("look__as___mode_dark")
        changed = json.loads(json.dumps(IDENTITY))
        changed["users"]["ana"]["values"]["forge"]["TOKEN"] = "canary-ana-2"
        changed["users"]["cem"] = {}
        del changed["users"]["ben"]
        changed["teams"]["core"]["members"] = ["ana"]
        await at.edit(SERVERS, auth="tokens", identity=changed)
        assert "forge__as_canary_ana_1_beta" not in await at["ana"].until_tool("forge__as_canary_ana_2_beta")
        assert "look__as___mode_dark" not in await at["cem"].until_tool("look__as___mode_plain")
        while [(server_of(row["server"]), row["users"]) for row in await at.launches()] != [("forge", ["ana"])]:  # noqa: ASYNC110
            await trio.sleep(0.02)


async def test_what_is_known_of_a_launch_outlives_the_daemon(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, Processes()) as at:
        await at["ana"].until_tool("forge__use_forge")
        await at["cem"].until_tool("look__as___mode_dark")
        keys = at.keys
    later = Processes()
    async with doorway(tmp_path, data, later, people={}) as at:
        at.keys = keys
        assert "forge__as_canary_ana_1_beta" in await at["ana"].until_tool("forge__as_canary_ana_1_beta")
        assert later.of("forge") == [], "what is known needs nothing of its own until somebody calls it"
        assert await at.launches("forge") == []
        assert (await at.operator.rows())["forge"]["launches"] == 1
        answer = await at["ana"].executed("forge:as_canary_ana_1_beta", n=3)
        assert answer["structuredContent"] == {"n": 3}
        assert later.of("forge") == ["canary_ana_1_beta"]
        assert [(row["state"], row["users"]) for row in await at.launches("forge")] == [("ready", ["ana"])]


async def test_a_launch_that_sleeps_is_nothing_but_known_until_somebody_calls_it(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running_module, "LOOK_S", 0.01)
    servers = {"forge": {**SERVERS["forge"], "idle_timeout_s": 0.05}}
    processes, identity = Processes(), {**IDENTITY, "users": {"ana": IDENTITY["users"]["ana"]}}
    async with doorway(tmp_path, data, processes, identity, servers, waits=False) as at:
        await at["ana"].until_tool("forge__use_forge")
        number = 0
        while len(processes.started) < 4:  # each actor has a transport of its own
            for _ in range(3):
                number += 1
                answer = await at["ana"].executed("forge:use_forge", n=number)
                assert answer["structuredContent"] == {"n": number}
            await trio.sleep(0.04 + number % 7 / 100)  # some calls come while the actor is taken
        assert processes.of("forge") == ["canary_ana_1_beta"]
        await at.ordered("forge", "disable")
        refused = await at["ana"].executed("forge:use_forge")
        assert refused["structuredContent"]["error"]["type"] == "disabled"
        assert await at["ana"].tools() == []


async def test_a_server_that_is_switched_off_is_off_for_everybody(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, Processes()) as at:
        await at["ana"].until_tool("forge__use_forge")
        await at.ordered("forge", "disable")
        refused = await at["ana"].executed("forge:use_forge")
        assert refused["structuredContent"]["error"]["type"] == "disabled"
        assert "forge~" not in json.dumps(refused)
        late = await at["ben"].executed("forge:use_forge")
        assert late["structuredContent"]["error"]["type"] == "disabled"
        await at.ordered("forge", "enable")
        await at["ana"].until_tool("forge__use_forge")
        answer = await at["ana"].executed("forge:use_forge", n=2)
        assert answer["structuredContent"] == {"n": 2}


@pytest.mark.case("I05")
async def test_a_member_sees_the_log_of_what_is_started_for_them_alone_and_their_own_calls(
    tmp_path: Path, data: DataDir
) -> None:
    async with doorway(tmp_path, data, Processes()) as at:
        for user in ("ana", "ben"):
            await at[user].until_tool("forge__use_forge")
            await at[user].until_tool("look__use_look")
        for _ in range(2):
            await at["ana"].executed("forge:use_forge")
        nowhere = await at["ana"].ask("GET", "/api/servers/nowhere/logs")
        assert nowhere.status_code == 404
        lines = (await at["ana"].page("/api/servers/forge/logs"))["lines"]
        assert lines
        assert "canary" not in json.dumps(lines)
        assert (await at["ben"].ask("GET", "/api/servers/clock/logs")).content == nowhere.content, "all share it"
        assert (await at["ben"].ask("GET", "/api/servers/look/logs")).status_code == 200
        await at["cem"].until_tool("look__use_look")
        assert (await at["ben"].ask("GET", "/api/servers/look/logs")).content == nowhere.content, "cem has it as well"
        assert (await at["cem"].ask("GET", "/api/servers/forge/logs")).content == nowhere.content, "it waits for values"
        async with at["ana"].websocket("/api/servers/forge/logs?after=0") as socket:
            assert json.loads(await socket.get_message())["lines"]
        with pytest.RaisesGroup(pytest.RaisesExc(ConnectionRejected, check=lambda error: error.status_code == 404)):
            async with at["ana"].websocket("/api/servers/clock/logs?after=0"):
                pass
        calls = {
            user: {row["server"]: row["calls"] for row in (await at[user].page("/api/me"))["servers"]}
            for user in ("ana", "ben")
        }
        assert (calls["ana"]["forge"], calls["ben"]["forge"]) == (2, 0)


async def test_logs_outlive_the_daemon_and_each_sees_what_came_while_a_launch_was_theirs_alone(
    tmp_path: Path, data: DataDir
) -> None:
    async def texts(at: World, user: str, path: str) -> list[str]:
        return [line["text"] for line in (await at[user].page(path))["lines"]]

    for users in (("ben", "cem"), ("cem",)):
        async with doorway(tmp_path, data, Processes()) as at:
            for user in users:
                await at[user].until_tool("look__use_look")
            await at["cem"].executed("look:use_look")
            look = next(row["server"] for row in await at.launches("look") if row["users"])
            await at.ordered(look, "restart")
            everything = await texts(at, "operator", f"/api/servers/{look}/logs?lines=1000")
            if users == ("cem",):
                assert everything.count("restart ordered") == 2, "one of them before"
                assert (await texts(at, "cem", "/api/servers/look/logs?lines=1000")).count("restart ordered") == 1
                of_cem = (await at["cem"].page("/api/logs?lines=1000"))["lines"]
                assert {line["server"] for line in of_cem} == {look}
                assert [line["text"] for line in of_cem].count("restart ordered") == 1
                async with at["cem"].websocket("/api/logs?after=0") as socket:
                    assert json.loads(await socket.get_message())["server"] == look
            else:
                assert await texts(at, "cem", "/api/logs") == [], "ben has it as well"
            assert "clock" in {line["server"] for line in (await at.operator.page("/api/logs"))["lines"]}
    written = "".join(file.read_text(encoding="utf-8") for file in (tmp_path / "data" / "logs").iterdir())
    assert '"user":"cem"' in written
    assert "canary" not in written


async def test_an_operator_orders_one_launch_by_its_name(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, Processes()) as at:
        await at["ana"].until_tool("forge__use_forge")
        launch = (await at.launches("forge"))[0]["server"]
        await at.ordered(launch, "restart")
        row = await at.operator.row(launch)
        assert (row["incarnation"], row["users"]) == (2, ["ana"])
        log = await at.operator.page(f"/api/servers/{launch}/logs")
        assert "canary" not in json.dumps(log)
        assert "disable that" in await at.ordered(launch, "disable", 400)


async def test_each_sees_how_their_own_servers_are_doing(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, Processes()) as at:
        await at["ana"].until_tool("forge__use_forge")
        await at["dan"].until_tool("clock__use_clock")
        mine = await at["ana"].page("/api/me")
        assert (mine["user"], mine["role"], mine["team"]) == ("ana", "member", "")
        assert {row["server"]: row["status"] for row in mine["servers"]} == dict.fromkeys(SERVERS, "online")
        assert mine["tokens"]["exposed_tokens"] > 0
        theirs = {row["server"]: row for row in (await at["dan"].page("/api/me"))["servers"]}
        assert (theirs["forge"]["status"], theirs["forge"]["missing"]) == ("awaiting_user_config", ["TOKEN"])
        assert "mcpvisor config set forge TOKEN" in theirs["forge"]["reason"]
        assert "ana" not in json.dumps(theirs).replace("canary", "")
        operator = await at.operator.page("/api/me")
        assert [row["server"] for row in operator["servers"]] == ["clock", "forge", "look"]
        rows = await at.operator.rows()
        assert (rows["forge"]["status"], rows["clock"]["status"]) == ("awaiting_user_config", "online")


async def test_a_websocket_is_of_whoever_opened_it(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, Processes()) as at:
        for user in ("ana", "ben"):
            await at[user].until_tool("forge__use_forge")
            async with at[user].websocket("/mcp/all") as socket:
                await socket.send_message(modern("tools/list").decode())
                tools = {each["name"] for each in json.loads(await socket.get_message())["result"]["tools"]}
                assert f"forge__as_canary_{user}_1_beta" in tools
                name = f"forge__as_canary_{user}_1_beta"
                await socket.send_message(modern("tools/call", {"name": name, "arguments": {"n": 7}}).decode())
                assert json.loads(await socket.get_message())["result"]["structuredContent"] == {"n": 7}
        calls = {tuple(row["users"]): row["calls"] for row in await at.launches("forge")}
        assert calls == {("ana",): 1, ("ben",): 1}


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
            told = await at[who].page(f"/api/tools/history?path={server}:add")
            assert (told["own"], told["offered"]) == (server != "clock", True), told
            return told["revisions"]

        await at.admit("ana", role="auditor")
        await at["ana"].until_tool("forge__add")
        await at["ben"].until_tool("forge__add")
        assert len(await revisions("ana", "forge")) == len(await revisions("ana", "clock")) == 1
        of = {tuple(row["users"]): row["server"] for row in await at.launches("forge")}
        launch, bens = of["ana",], of["ben",]
        adders.servers["canary_ana_1_beta"].tools = [tool("add", "Adds with canary-ana-1.")]
        await at.ordered(launch, "refresh")
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
