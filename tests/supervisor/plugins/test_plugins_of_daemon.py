"""A whole daemon with plugins: at each door, in both eras, across reloads, and when a plugin fails."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import trio

from supervisor.config import load
from supervisor.host.datadir import DataDir
from tests.fakes.era_clients import EraClient
from tests.fakes.failures import failure
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.plugins import install
from tests.scenario.client import eventually
from tests.scenario.daemon import A, B, World, configuration, world

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


SERVERS = {"a": A, "b": B}
SETTINGS: dict[str, Any] = {"plugin_call_timeout_s": 30}


def plugged(
    directory: Path, data: DataDir, settings: dict[str, Any] | None = None, **plugins: Any
) -> AbstractAsyncContextManager[World]:
    fakes = {name: FakeServer(tools=[tool("echo"), tool("hang"), tool("refuse")]) for name in SERVERS}
    return world(directory, data, SERVERS, fakes, plugins=plugins, **SETTINGS, **(settings or {}))


async def reload(at: World, code: int = 200, **plugins: Any) -> Any:
    """Have the daemon use these plugins, or refuse to."""
    at.write(SERVERS, plugins=plugins, **SETTINGS)
    return await at.reload(code)


async def described(at: World, server: str = "a") -> dict[str, str]:
    """Return the descriptions of the tools of a server as a client sees them."""
    client = EraClient(at.http, f"/mcp/servers/{server}", "modern")
    return {each["name"]: each["description"] for each in await client.tools()}


async def test_a_plugin_sees_the_calls_of_both_eras_at_the_doors_of_servers(tmp_path: Path, data: DataDir) -> None:
    async with plugged(tmp_path, data, plain={"refused": "bob", "mark": "(checked)", "hidden": "hang"}) as at:
        for door, name in (("/mcp/servers/a", "echo"), ("/mcp/all", "a__echo")):
            for era in ("legacy", "modern"):
                client = EraClient(at.http, door, era)
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
    async with plugged(tmp_path, data, plain={"refused": "bob", "mark": "zebra", "hidden": "hang"}) as at:
        assert (await at.executed("a:echo", n=1))["structuredContent"] == {"n": 1, "by": ""}
        error = failure(await at.execute("a:echo", to="bob"))
        assert error["message"].endswith("nothing was called: nobody (admin, ) may not a:echo")
        assert (error["data"]["type"], error["data"]["outcome"]) == ("refused", "not_sent")
        assert {*await at.discover("zebra")} >= {"a:echo", "b:echo"}
        assert failure(await at.execute("a:hang"))["data"]["type"] == "not_found"
        assert (await at.row("a"))["problems"] == ["tool 'hang' is hidden by plugin plain: not for clients"]


async def test_what_a_plugin_says_of_a_tool_selects_it_and_decides_who_is_asked_as_what_a_server_says(
    tmp_path: Path, data: DataDir
) -> None:
    async with plugged(tmp_path, data, labels={}) as at:
        for criteria, found in (
            ("category=billing", ["a:echo", "a:hang", "a:refuse"]),
            ("tags=was-general-moderate&safety=moderate", ["a:hang", "a:refuse"]),
            ("safety=dangerous&requires_confirmation=false&destructive=true", ["a:echo"]),
            ("category=general", []),
        ):
            rows = (await at.page(f"/api/tools?servers=a&{criteria}"))["tools"]
            assert [row["path"] for row in rows] == found, criteria
        told = (await at.executed("a:echo"))["structuredContent"]
        assert told == {"category": "billing", "safety": "dangerous"}


async def test_an_error_of_a_server_reaches_nobody_but_through_the_plugins(tmp_path: Path, data: DataDir) -> None:
    async with plugged(tmp_path, data, plain={}) as at:
        client = EraClient(at.http, "/mcp/servers/a", "legacy")
        await client.greet()
        answer = await client.ask("tools/call", name="refuse", arguments={})
        assert (answer["error"]["message"], "data" in answer["error"]) == ("seen refuse", False)
        assert "refused" not in json.dumps(await at.execute("a:refuse"))


async def test_plugins_come_change_and_go_while_the_daemon_runs(tmp_path: Path, data: DataDir) -> None:
    async with plugged(tmp_path, data) as at:
        starts = at.fakes["a"].starts
        assert (await at.status())["plugins"] == []
        said = await reload(at, plain={"mark": "one", "off": "b"})
        assert said["message"] == "1 server changed (b); settings changed: plugins"
        assert (await at.executed("a:echo", n=1))["structuredContent"] == {"n": 1, "by": ""}
        assert "plugin plain refuses it: not on this machine" in failure(await at.execute("b:echo"))["message"]
        await until(at, "does something one")
        said = await reload(at, plain={"mark": "two"})
        assert said["message"] == "1 server changed (b); settings changed: plugins"
        await until(at, "does something two")
        assert (await at.executed("b:echo", n=2))["structuredContent"]["n"] == 2
        (row,) = (await at.status())["plugins"]
        assert (row["name"], row["version"], row["off"]) == ("plain", "plug_daemon 1.2.3", [])
        await reload(at)
        await until(at, "does something")
        assert (await at.executed("a:echo", n=3))["structuredContent"] == {"n": 3}
        assert at.fakes["a"].starts == starts


async def until(at: World, description: str) -> None:
    async def holds() -> bool:
        return (await described(at))["echo"] == description

    with trio.fail_after(60):
        await eventually(holds)


async def test_a_reload_with_a_plugin_of_no_use_is_refused_and_changes_nothing(tmp_path: Path, data: DataDir) -> None:
    async with plugged(tmp_path, data, plain={"refused": "bob"}) as at:
        for plugins, said in (
            ({"plan": {}}, "no plugin of this name is installed (did you mean plain?)"),
            ({"plain": {"refuse": "x"}}, 'unknown key (did you mean "refused"?)'),
        ):
            answer = await reload(at, 422, **plugins)
            assert said in json.dumps(answer).replace('\\"', '"')
        assert failure(await at.execute("a:echo", to="bob"))["data"]["type"] == "refused"


async def test_a_plugin_that_fails_costs_no_call_and_a_guard_refuses_all(tmp_path: Path, data: DataDir) -> None:
    async with plugged(tmp_path, data, plain={"fails": True}) as at:
        for n in range(7):
            assert (await at.executed("a:echo", n=n))["structuredContent"] == {"n": n}
        status = await at.status()
        assert [each["what"] for each in status["degraded"]] == ["plugin plain, before_call"]
        assert status["plugins"][0]["off"] == ["before_call"]
        assert "secret" not in json.dumps(status)
        await reload(at, guard={"fails": True})
        error = failure(await at.execute("a:echo", n=1))
        assert error["data"]["type"] == "refused"
        assert "it failed; nothing was called" in error["message"]
        assert (await at.status())["degraded"] == []


async def test_what_is_known_of_an_earlier_run_is_shown_as_plugins_see_it(tmp_path: Path, data: DataDir) -> None:
    async with plugged(tmp_path, data) as at:
        assert (await described(at)).keys() == {"echo", "hang", "refuse"}
    async with plugged(tmp_path, data, plain={"hidden": "hang", "off": "b"}) as at:
        assert (await described(at)).keys() == {"echo", "refuse"}
        row = await at.row("b")
        assert (row["disabled"], row["reason"]) == (True, "plugin plain refuses it: not on this machine")
        answer = await at.ask("POST", "/api/servers/b/wake")
        assert "plugin plain refuses it" in answer.text


async def test_a_plugin_knows_who_calls(tmp_path: Path, data: DataDir) -> None:
    identity = {
        "users": {"ana": {"role": "admin"}, "ben": {}},
        "teams": {"core": {"members": ["ana", "ben"]}, "ops": {"members": ["ben"]}},
    }
    more: dict[str, Any] = {"people": {"ana": {"role": "admin"}, "ben": {}}, "auth": "tokens", "identity": identity}
    async with plugged(tmp_path, data, more, guard={"refused": "ben"}) as at:
        answer = await at["ana"].executed("a:echo", n=1)
        assert answer["structuredContent"] == {"n": 1, "by": "ana"}
        answer = await at["ben"].executed("a:echo", n=1)
        assert "ben (member, core,ops) may not a:echo" in answer["content"][0]["text"]
        await at.admit("ben", team="ops")
        answer = await at["ben"].executed("a:echo", n=1)
        assert "ben (member, ops) may not a:echo" in answer["content"][0]["text"]
        records = await at.records(action="tool.refuse")
        assert {(record["target"], record["detail"]) for record in records} <= {("a:echo", "by plugin guard")}


def test_a_configuration_that_names_an_unknown_plugin_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"mcp.json:1: supervisor.plugins.pain: .* \(did you mean plain\?\)"):
        configuration(tmp_path, SERVERS, plugins={"pain": {}})
    assert load(tmp_path / "mcp.json", {}, change=lambda text: text.replace("pain", "plain")).settings.plugins
