"""Profiles and rules of tools in a whole daemon, over real sockets: HTTP, WebSocket, the command line, a restart."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import httpx2
import trio
from click.testing import CliRunner, Result

from supervisor.cli import cli
from supervisor.host.datadir import DataDir
from tests.fakes.http_client import JSON_HEADERS, modern
from tests.fakes.websocket_client import open_websocket
from tests.scenario.client import Client
from tests.scenario.daemon import configuration, running
from tests.supervisor.test_doors_of_daemon import Fleet, ask, initialize

SERVERS = {
    "one": {"command": "x", "tools": {"rename": {"tool0": "first"}, "deny": ["tool4"]}},
    "two": {"command": "x"},
}
PROFILES = {"work": {"tools": ["one:first", "two:tool1"]}, "two": {"servers": ["two"]}}


async def names(client: httpx2.AsyncClient, query: str, session: str = "", path: str = "/mcp/all") -> list[str]:
    listed = (await ask(client, path + query, "tools/list", session)).json()["result"]["tools"]
    return [tool["name"] for tool in listed]


async def test_an_address_names_a_profile_and_a_session_keeps_its_own(tmp_path: Path, data: DataDir) -> None:
    config = configuration(tmp_path, SERVERS, profiles=PROFILES)
    fleets = [Fleet(), Fleet()]
    async with running(config, data, connect=fleets[0].connect) as client:
        await Client(client).ready()
        queries = ("", "?profile=work", "?profile=two")
        opened = {query: (await initialize(client, f"/mcp/all{query}")).headers["mcp-session-id"] for query in queries}
        assert await names(client, "?profile=work", opened["?profile=work"]) == ["one__first", "two__tool1"]
        assert len(await names(client, "", opened[""])) == 9
    async with running(config, data, connect=fleets[1].connect) as client:
        for query in queries:
            for other, session in opened.items():
                status = (await ask(client, f"/mcp/all{query}", "ping", session)).status_code
                assert status == (200 if other == query else 404)
        # What was kept is the servers' own, so the rules of a file hold for it at once, whatever they were.
        assert await names(client, "?profile=work") == ["one__first", "two__tool1"]
        called = await ask(client, "/mcp?profile=work", "tools/call", name="one-first", arguments={})
        assert called.json()["result"]["content"] == []
        asked = fleets[1].servers["one"].asked
        assert [params["name"] for method, params in asked if method == "tools/call"] == ["tool0"]
        assert fleets[1].servers["two"].starts == 0


async def test_an_unknown_profile_is_a_404_with_an_error_that_names_the_nearest(tmp_path: Path, data: DataDir) -> None:
    config = configuration(tmp_path, SERVERS, profiles=PROFILES)
    async with running(config, data, connect=Fleet().connect) as client:
        answer = await initialize(client, "/mcp?profile=wrok")
        assert answer.status_code == 404
        error = answer.json()["error"]
        assert error["message"] == "there is no profile 'wrok'; did you mean 'work'?"
        assert error["data"]["nearest"] == ["work"]
        upgrade = {"connection": "upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
        key = {"sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ=="}
        refused = await client.get("/ws?profile=wrok", headers={**upgrade, **key})
        assert refused.status_code == 404
        assert refused.json()["error"]["message"] == error["message"]


async def test_a_websocket_has_the_profile_of_its_address_and_else_that_of_the_setting(
    tmp_path: Path, data: DataDir
) -> None:
    config = configuration(tmp_path, SERVERS, profiles=PROFILES, profile="two")
    async with running(config, data, connect=Fleet().connect) as client:
        await Client(client).ready()
        port = int(str(client.base_url).rstrip("/").rpartition(":")[2])
        found = {}
        for path in ("/ws?profile=work", "/mcp/all?profile=work", "/mcp/all", "/ws"):
            async with open_websocket(port, path) as socket:
                if "all" in path:
                    await socket.send_message(modern("tools/list").decode())
                    told = json.loads(await socket.get_message())["result"]["tools"]
                    found[path] = {tool["name"] for tool in told}
                else:
                    arguments = {"name": "discover_mcp_tools", "arguments": {"query": "*", "limit": 50}}
                    await socket.send_message(modern("tools/call", arguments).decode())
                    told = json.loads(await socket.get_message())["result"]["content"][0]["text"]
                    found[path] = {row["tool_path"] for row in json.loads(told)["tools"]}
        two = {f"tool{number}" for number in range(5)}
        assert found == {
            "/ws?profile=work": {"one:first", "two:tool1"},
            "/mcp/all?profile=work": {"one__first", "two__tool1"},
            "/mcp/all": {f"two__{name}" for name in two},
            "/ws": {f"two:{name}" for name in two},
        }


async def test_commands_take_a_profile(tmp_path: Path, data: DataDir) -> None:
    config = configuration(tmp_path, SERVERS, profiles=PROFILES)

    async def invoke(*words: str) -> Result:
        return await trio.to_thread.run_sync(partial(CliRunner().invoke, cli, [*words, "--url", str(client.base_url)]))

    async with running(config, data, connect=Fleet().connect) as client:
        await Client(client).ready()
        found = await invoke("search", "*", "--profile", "work", "--json")
        assert {row["tool_path"] for row in json.loads(found.stdout)["tools"]} == {"one:first", "two:tool1"}
        assert (await invoke("call", "two:tool1", "{}", "--profile", "work")).exit_code == 0
        hidden = await invoke("call", "two:tool2", "{}", "--profile", "work")
        assert hidden.exit_code == 1
        assert "has no tool 'tool2'" in hidden.output
        wrong = await invoke("search", "*", "--profile", "wrok")
        assert wrong.exit_code != 0
        assert "did you mean 'work'?" in wrong.output
        listed = await invoke("tools", "--server", "one")
        assert "hidden by the configuration of one: tool4" in listed.output


async def test_pages_of_operators_are_about_everything_whatever_the_setting(tmp_path: Path, data: DataDir) -> None:
    config = configuration(tmp_path, SERVERS, profiles=PROFILES, profile="two")
    async with running(config, data, connect=Fleet().connect) as client:
        await Client(client).ready()
        page = (await client.get("/api/tools", params={"limit": 50}, headers=dict(JSON_HEADERS))).json()
        assert page["total"] == 9
        rows = {row["server"]: row for row in (await client.get("/api/status")).json()["servers"]}
        assert (rows["one"]["tools"], rows["one"]["hidden_tools"]) == (4, 1)
        assert (rows["two"]["tools"], rows["two"]["hidden_tools"]) == (5, 0)


async def test_changed_rules_and_profiles_are_seen_after_a_reload_and_no_server_is_touched(
    tmp_path: Path, data: DataDir
) -> None:
    config = configuration(tmp_path, SERVERS, profiles=PROFILES, reload_on_change=False)
    fleet = Fleet()
    async with running(config, data, connect=fleet.connect) as client:
        await Client(client).ready()
        starts = [server.starts for server in fleet.servers.values()]
        assert await names(client, "?profile=work") == ["one__first", "two__tool1"]
        rules = {**SERVERS, "one": {"command": "x", "tools": {"allow": ["tool1", "tool4"]}}}
        changed = {"profiles": {"work": {"servers": ["one"]}}, "profile": "work"}
        configuration(tmp_path, rules, **changed, reload_on_change=False)
        reloaded = (await client.post("/api/reload")).json()
        assert reloaded["outcome"] == "applied"
        assert (reloaded["changes"]["replaced"], reloaded["changes"]["restart"]) == ([], [])
        assert set(reloaded["changes"]["settings"]) == {"profile", "profiles"}
        with trio.fail_after(20):
            while await names(client, "") != ["one__tool1", "one__tool4"]:  # noqa: ASYNC110 - what others see follows
                await trio.sleep(0.02)
        assert (await initialize(client, "/mcp?profile=two")).status_code == 404
        assert [server.starts for server in fleet.servers.values()] == starts
