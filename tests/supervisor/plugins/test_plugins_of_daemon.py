"""A whole daemon with plugins: at each door, in both eras, across reloads, and when a plugin fails."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio

from supervisor.config import load
from supervisor.host.datadir import DataDir
from supervisor.servers.deployment import DeployedServer
from tests.fakes.era_clients import EraClient
from tests.fakes.failures import failure
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.memory import MemoryTransport
from tests.fakes.plugins import install
from tests.scenario.client import Client
from tests.scenario.daemon import World, configuration, running

SOURCE = """
from supervisor.plugins.contract import *

class O(PluginOptions, frozen=True, kw_only=True):
    refused: str = ""
    mark: str = ""
    hidden: str = ""
    off: str = ""
    fails: bool = False

class P(Plugin[O]):
    options_type = O

    def before_discovery(self, server):
        return Rejection("not on this machine") if server.name == self.options.off else None

    def transform_tool(self, tool):
        if tool.name == self.options.hidden:
            return Rejection("not for clients")
        return tool.with_members(description=f"{tool.decode()['description']} {self.options.mark}")

    async def before_call(self, call):
        if self.options.fails:
            raise ValueError("secret")
        if self.options.refused and self.options.refused in (call.user, call.decode_arguments().get("to")):
            who = f"{call.user or 'nobody'} ({call.role}, {','.join(sorted(call.teams))})"
            return Rejection(f"{who} may not {call.path}")
        return {**call.decode_arguments(), "by": call.user}

    def after_call(self, call, result):
        value = decode_result(result)
        value["content"] = [{"type": "text", "text": f"seen {call.tool}"}]
        return value

class G(P):
    guards = True

class Labels(Plugin[PluginOptions]):
    def transform_tool(self, tool):
        told = tool.with_meta(category="billing", tags=[f"was-{tool.category}-{tool.safety}"])
        return told.with_members(annotations={"destructiveHint": True}) if tool.name == "echo" else told

    async def before_call(self, call):
        return {"category": call.category, "safety": call.safety}
"""


@pytest.fixture(autouse=True)
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    install(tmp_path / "site", "plug_daemon", SOURCE, {"plain": "P", "guard": "G", "labels": "Labels"})
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    yield
    del sys.modules["plug_daemon"]


class Plugged:
    """A daemon with a server that has tools, and one client."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.fakes = {name: FakeServer(tools=[tool("echo"), tool("hang"), tool("refuse")]) for name in "ab"}
        self.client = httpx2.AsyncClient()

    def connect(self, server: DeployedServer) -> MemoryTransport:
        return MemoryTransport(self.fakes[server.name].serve)

    async def call(self, path: str = "a:echo", **arguments: Any) -> Any:
        params = {"name": "execute_mcp_tool", "arguments": {"tool_path": path, "arguments": arguments}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return (await self.client.post("/mcp", json=body)).json()

    async def reload(self, code: int = 200, **plugins: Any) -> Any:
        self.write(**plugins)
        answer = await self.client.post("/api/reload")
        assert answer.status_code == code, answer.text
        return answer.json()

    def write(self, **plugins: Any) -> None:
        body = {"mcpServers": SERVERS, "supervisor": {**SETTINGS, "plugins": plugins}}
        (self.directory / "mcp.json").write_text(json.dumps(body))

    async def tools(self, server: str = "a") -> dict[str, str]:
        client = EraClient(self.client, f"/mcp/servers/{server}", "modern")
        return {each["name"]: each["description"] for each in await client.tools()}

    async def status(self) -> dict[str, Any]:
        return dict((await self.client.get("/api/status")).json())


SERVERS = {"a": {"command": "x"}, "b": {"command": "x"}}
SETTINGS = {"shutdown_s": 60, "reload_on_change": False, "drain_s": 0.2, "plugin_call_timeout_s": 30}


@asynccontextmanager
async def world(directory: Path, data: DataDir, **plugins: Any) -> AsyncIterator[Plugged]:
    shown = Plugged(directory)
    config = configuration(directory, SERVERS, **SETTINGS, plugins=plugins)
    async with running(config, data, connect=shown.connect) as shown.client:
        await Client(shown.client).ready()
        yield shown


async def test_a_plugin_sees_the_calls_of_both_eras_at_the_doors_of_servers(tmp_path: Path, data: DataDir) -> None:
    async with world(tmp_path, data, plain={"refused": "bob", "mark": "(checked)", "hidden": "hang"}) as shown:
        for door, name in (("/mcp/servers/a", "echo"), ("/mcp/all", "a__echo")):
            for era in ("legacy", "modern"):
                client = EraClient(shown.client, door, era)
                await client.greet()
                described = {each["name"]: each["description"] for each in await client.tools()}
                assert described[name] == "does something (checked)"
                result = await client.result("tools/call", name=name, arguments={"n": 1})
                assert result["structuredContent"] == {"n": 1, "by": ""}
                assert result["content"] == [{"type": "text", "text": "seen echo"}]
                refused = await client.result("tools/call", name=name, arguments={"to": "bob"})
                assert refused["isError"] is True
                said = "a:echo was refused by plugin plain, nothing was called: nobody (admin, ) may not a:echo"
                assert said in refused["content"][0]["text"]
                assert client.wrong == []


async def test_a_model_is_told_why_its_call_was_refused_and_finds_what_plugins_show(
    tmp_path: Path, data: DataDir
) -> None:
    async with world(tmp_path, data, plain={"refused": "bob", "mark": "zebra", "hidden": "hang"}) as shown:
        assert (await shown.call(n=1))["result"]["structuredContent"] == {"n": 1, "by": ""}
        error = failure(await shown.call(to="bob"))
        assert error["message"].endswith("nothing was called: nobody (admin, ) may not a:echo")
        assert (error["data"]["type"], error["data"]["outcome"]) == ("refused", "not_sent")
        found = await shown.client.post(
            "/mcp",
            json={
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": "discover_mcp_tools", "arguments": {"query": "zebra"}},
            },
        )
        rows = found.json()["result"]["structuredContent"]["tools"]
        assert {row["tool_path"] for row in rows} >= {"a:echo", "b:echo"}
        assert failure(await shown.call("a:hang"))["data"]["type"] == "not_found"
        row = next(row for row in (await shown.status())["servers"] if row["server"] == "a")
        assert row["problems"] == ["tool 'hang' is hidden by plugin plain: not for clients"]


async def test_what_a_plugin_says_of_a_tool_selects_it_and_decides_who_is_asked_as_what_a_server_says(
    tmp_path: Path, data: DataDir
) -> None:
    async with world(tmp_path, data, labels={}) as shown:
        for criteria, found in (
            ("category=billing", ["a:echo", "a:hang", "a:refuse"]),
            ("tags=was-general-moderate&safety=moderate", ["a:hang", "a:refuse"]),
            ("safety=dangerous&requires_confirmation=false&destructive=true", ["a:echo"]),
            ("category=general", []),
        ):
            rows = (await shown.client.get(f"/api/tools?servers=a&{criteria}")).json()["tools"]
            assert [row["path"] for row in rows] == found, criteria
        told = (await shown.call("a:echo"))["result"]["structuredContent"]
        assert told == {"category": "billing", "safety": "dangerous"}


async def test_an_error_of_a_server_reaches_nobody_but_through_the_plugins(tmp_path: Path, data: DataDir) -> None:
    async with world(tmp_path, data, plain={}) as shown:
        client = EraClient(shown.client, "/mcp/servers/a", "legacy")
        await client.greet()
        answer = await client.ask("tools/call", name="refuse", arguments={})
        assert (answer["error"]["message"], "data" in answer["error"]) == ("seen refuse", False)
        assert "refused" not in json.dumps(await shown.call("a:refuse"))


async def test_plugins_come_change_and_go_while_the_daemon_runs(tmp_path: Path, data: DataDir) -> None:
    async with world(tmp_path, data) as shown:
        starts = shown.fakes["a"].starts
        assert (await shown.status())["plugins"] == []
        said = await shown.reload(plain={"mark": "one", "off": "b"})
        assert said["message"] == "1 server changed (b); settings changed: plugins"
        assert (await shown.call(n=1))["result"]["structuredContent"] == {"n": 1, "by": ""}
        assert "plugin plain refuses it: not on this machine" in failure(await shown.call("b:echo"))["message"]
        await until(shown, "does something one")
        said = await shown.reload(plain={"mark": "two"})
        assert said["message"] == "1 server changed (b); settings changed: plugins"
        await until(shown, "does something two")
        assert (await shown.call("b:echo", n=2))["result"]["structuredContent"]["n"] == 2
        (row,) = (await shown.status())["plugins"]
        assert (row["name"], row["version"], row["off"]) == ("plain", "plug_daemon 1.2.3", [])
        await shown.reload()
        await until(shown, "does something")
        assert (await shown.call(n=3))["result"]["structuredContent"] == {"n": 3}
        assert shown.fakes["a"].starts == starts


async def until(shown: Plugged, description: str) -> None:
    with trio.fail_after(60):
        while (await shown.tools())["echo"] != description:  # noqa: ASYNC110 - the catalogue is another task's
            await trio.sleep(0.01)


async def test_a_reload_with_a_plugin_of_no_use_is_refused_and_changes_nothing(tmp_path: Path, data: DataDir) -> None:
    async with world(tmp_path, data, plain={"refused": "bob"}) as shown:
        for plugins, said in (
            ({"plan": {}}, "no plugin of this name is installed (did you mean plain?)"),
            ({"plain": {"refuse": "x"}}, 'unknown key (did you mean "refused"?)'),
        ):
            answer = await shown.reload(code=422, **plugins)
            assert said in json.dumps(answer).replace('\\"', '"')
        assert failure(await shown.call(to="bob"))["data"]["type"] == "refused"


async def test_a_plugin_that_fails_costs_no_call_and_a_guard_refuses_all(tmp_path: Path, data: DataDir) -> None:
    async with world(tmp_path, data, plain={"fails": True}) as shown:
        for n in range(7):
            assert (await shown.call(n=n))["result"]["structuredContent"] == {"n": n}
        status = await shown.status()
        assert [each["what"] for each in status["degraded"]] == ["plugin plain, before_call"]
        assert status["plugins"][0]["off"] == ["before_call"]
        assert "secret" not in json.dumps(status)
        await shown.reload(guard={"fails": True})
        error = failure(await shown.call(n=1))
        assert error["data"]["type"] == "refused"
        assert "it failed; nothing was called" in error["message"]
        assert (await shown.status())["degraded"] == []


async def test_what_is_known_of_an_earlier_run_is_shown_as_plugins_see_it(tmp_path: Path, data: DataDir) -> None:
    async with world(tmp_path, data) as shown:
        assert (await shown.tools()).keys() == {"echo", "hang", "refuse"}
    async with world(tmp_path, data, plain={"hidden": "hang", "off": "b"}) as shown:
        assert (await shown.tools()).keys() == {"echo", "refuse"}
        rows = {row["server"]: row for row in (await shown.status())["servers"]}
        assert (rows["b"]["disabled"], rows["b"]["reason"]) == (True, "plugin plain refuses it: not on this machine")
        answer = await shown.client.post("/api/servers/b/wake")
        assert "plugin plain refuses it" in answer.text


async def test_a_plugin_knows_who_calls(tmp_path: Path, data: DataDir) -> None:
    shown = Plugged(tmp_path)
    identity = {
        "users": {"ana": {"role": "admin"}, "ben": {}},
        "teams": {"core": {"members": ["ana", "ben"]}, "ops": {"members": ["ben"]}},
    }
    plugins = {"guard": {"refused": "ben"}}
    config = configuration(tmp_path, SERVERS, **SETTINGS, plugins=plugins, auth="tokens", identity=identity)
    async with running(config, data, connect=shown.connect) as client:
        at = World(client, data)
        await at.admit("ana", role="admin")
        await at.admit("ben")
        asked = {"tool_path": "a:echo", "arguments": {"n": 1}}
        answer = await at["ana"].result("execute_mcp_tool", **asked)
        assert answer["structuredContent"] == {"n": 1, "by": "ana"}
        answer = await at["ben"].result("execute_mcp_tool", **asked)
        assert "ben (member, core,ops) may not a:echo" in answer["content"][0]["text"]
        at.keys.pop("ben")
        await at.admit("ben", team="ops")
        answer = await at["ben"].result("execute_mcp_tool", **asked)
        assert "ben (member, ops) may not a:echo" in answer["content"][0]["text"]
        records = (await at.operator.ask("GET", "/api/audit?action=tool.refuse")).json()["records"]
        assert {(record["target"], record["detail"]) for record in records} <= {("a:echo", "by plugin guard")}


def test_a_configuration_that_names_an_unknown_plugin_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"mcp.json:1: supervisor.plugins.pain: .* \(did you mean plain\?\)"):
        configuration(tmp_path, SERVERS, plugins={"pain": {}})
    assert load(tmp_path / "mcp.json", {}, change=lambda text: text.replace("pain", "plain")).settings.plugins
