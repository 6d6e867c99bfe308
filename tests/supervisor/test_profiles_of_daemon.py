"""Profiles and rules of tools in a whole daemon, over real sockets: HTTP, WebSocket, the command line, a restart."""

from __future__ import annotations

import json
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import trio

from supervisor.host.datadir import DataDir
from tests.fakes.http_client import modern
from tests.fakes.whole_server import WholeServer
from tests.scenario.client import Client
from tests.scenario.daemon import World, world
from tests.supervisor.commands.test_cli import ask as command

SERVERS = {
    "one": {"command": "x", "tools": {"rename": {"tool0": "first"}, "deny": ["tool4"]}},
    "two": {"command": "x"},
}
PROFILES = {"work": {"tools": ["one:first", "two:tool1"]}, "two": {"servers": ["two"]}}


def profiled(directory: Path, data: DataDir, **settings: Any) -> AbstractAsyncContextManager[World]:
    fakes = {name: WholeServer() for name in SERVERS}
    return world(directory, data, SERVERS, fakes, **{"profiles": PROFILES, **settings})


async def names(at: Client, query: str = "") -> list[str]:
    listed = await at.at(f"/mcp/all{query}").rpc("tools/list")
    return [tool["name"] for tool in listed["result"]["tools"]]


async def test_an_address_names_a_profile_and_a_session_keeps_its_own(tmp_path: Path, data: DataDir) -> None:
    queries = ("", "?profile=work", "?profile=two")
    async with profiled(tmp_path, data) as at:
        opened = {query: await at.at(f"/mcp/all{query}").session() for query in queries}
        assert await names(at.within(opened["?profile=work"]), "?profile=work") == ["one__first", "two__tool1"]
        assert len(await names(at.within(opened[""]))) == 9
    async with profiled(tmp_path, data, waits=False) as at:
        for query in queries:
            for other, session in opened.items():
                status = (await at.at(f"/mcp/all{query}").within(session).send("ping")).status_code
                assert status == (200 if other == query else 404)
        # What was kept is the servers' own, so the rules of a file hold for it at once, whatever they were.
        assert await names(at, "?profile=work") == ["one__first", "two__tool1"]
        assert (await at.at("/mcp?profile=work").result("one-first"))["content"] == []
        asked = at.fakes["one"].asked
        assert [params["name"] for method, params in asked if method == "tools/call"] == ["tool0"]
        assert at.fakes["two"].starts == 0


async def test_an_unknown_profile_is_a_404_with_an_error_that_names_the_nearest(tmp_path: Path, data: DataDir) -> None:
    async with profiled(tmp_path, data, waits=False) as at:
        answer = await at.at("/mcp?profile=wrok").send("initialize", protocolVersion="2025-11-25")
        assert answer.status_code == 404
        error = answer.json()["error"]
        assert error["message"] == "there is no profile 'wrok'; did you mean 'work'?"
        assert error["data"]["nearest"] == ["work"]
        upgrade = {"connection": "upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
        key = {"sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ=="}
        refused = await at.ask("GET", "/ws?profile=wrok", headers={**upgrade, **key})
        assert refused.status_code == 404
        assert refused.json()["error"]["message"] == error["message"]


async def test_a_websocket_has_the_profile_of_its_address_and_else_that_of_the_setting(
    tmp_path: Path, data: DataDir
) -> None:
    async with profiled(tmp_path, data, profile="two") as at:
        found = {}
        for path in ("/ws?profile=work", "/mcp/all?profile=work", "/mcp/all", "/ws"):
            async with at.socket(path) as socket:
                if "all" in path:
                    await socket.send(modern("tools/list"))
                    told = (await socket.next())["result"]["tools"]
                    found[path] = {tool["name"] for tool in told}
                else:
                    arguments = {"name": "discover_mcp_tools", "arguments": {"query": "*", "limit": 50}}
                    await socket.send(modern("tools/call", arguments))
                    told = (await socket.next())["result"]["content"][0]["text"]
                    found[path] = {row["tool_path"] for row in json.loads(told)["tools"]}
        two = {f"tool{number}" for number in range(5)}
        assert found == {
            "/ws?profile=work": {"one:first", "two:tool1"},
            "/mcp/all?profile=work": {"one__first", "two__tool1"},
            "/mcp/all": {f"two__{name}" for name in two},
            "/ws": {f"two:{name}" for name in two},
        }


async def test_commands_take_a_profile(tmp_path: Path, data: DataDir) -> None:
    async with profiled(tmp_path, data) as at:
        found = await command(at.url, "search", "*", "--profile", "work", "--json")
        assert {row["tool_path"] for row in json.loads(found.stdout)["tools"]} == {"one:first", "two:tool1"}
        assert (await command(at.url, "call", "two:tool1", "{}", "--profile", "work")).exit_code == 0
        hidden = await command(at.url, "call", "two:tool2", "{}", "--profile", "work")
        assert hidden.exit_code == 1
        assert "has no tool 'tool2'" in hidden.output
        wrong = await command(at.url, "search", "*", "--profile", "wrok")
        assert wrong.exit_code != 0
        assert "did you mean 'work'?" in wrong.output
        listed = await command(at.url, "tools", "--server", "one")
        assert "hidden by the configuration of one: tool4" in listed.output


async def test_pages_of_operators_are_about_everything_whatever_the_setting(tmp_path: Path, data: DataDir) -> None:
    async with profiled(tmp_path, data, profile="two") as at:
        assert (await at.page("/api/tools", limit=50))["total"] == 9
        rows = await at.rows()
        assert (rows["one"]["tools"], rows["one"]["hidden_tools"]) == (4, 1)
        assert (rows["two"]["tools"], rows["two"]["hidden_tools"]) == (5, 0)


async def test_changed_rules_and_profiles_are_seen_after_a_reload_and_no_server_is_touched(
    tmp_path: Path, data: DataDir
) -> None:
    async with profiled(tmp_path, data) as at:
        starts = [at.fakes[name].starts for name in SERVERS]
        assert await names(at, "?profile=work") == ["one__first", "two__tool1"]
        rules = {**SERVERS, "one": {"command": "x", "tools": {"allow": ["tool1", "tool4"]}}}
        at.write(rules, profiles={"work": {"servers": ["one"]}}, profile="work")
        reloaded = await at.reload()
        assert reloaded["outcome"] == "applied"
        assert (reloaded["changes"]["replaced"], reloaded["changes"]["restart"]) == ([], [])
        assert set(reloaded["changes"]["settings"]) == {"profile", "profiles"}
        with trio.fail_after(20):
            while await names(at) != ["one__tool1", "one__tool4"]:  # noqa: ASYNC110 - what others see follows
                await trio.sleep(0.02)
        gone = await at.at("/mcp?profile=two").send("initialize", protocolVersion="2025-11-25")
        assert gone.status_code == 404
        assert [at.fakes[name].starts for name in SERVERS] == starts
