"""The address where reading is apart from acting: five tools, one of which runs only what surely does only that."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from actors.catalogue.views import ViewProfile
from actors.life.states import State
from supervisor.config import Settings
from supervisor.identity.people import OPERATOR
from supervisor.metatools import definitions
from supervisor.service.client import Client
from supervisor.service.introduction import HOW, HOW_BY_EFFECT
from supervisor.service.port import answer
from supervisor.tokens.counting import META_TOKENS_BY_EFFECT
from supervisor.usage.records import CallRecord
from tests.fakes.exchanges import LEGACY, MODERN, exchange
from tests.fakes.mcp_server import tool
from tests.fakes.published import Served, served
from tests.fakes.whole_server import WholeServer

READS = {"annotations": {"readOnlyHint": True}}
TOOLS = [
    tool("read_note", "Reads a note.", **READS),
    tool("list_notes", "Lists notes."),
    tool("stir", "Stirs.", **READS),
    tool("add_note", "Adds a note."),
    tool("delete_note", "Deletes a note.", **READS),
]
READ_ONLY, EXECUTE = "execute_read_only_mcp_tool", "execute_mcp_tool"


class Rig:
    def __init__(self, running: Served, server: WholeServer, records: list[CallRecord]) -> None:
        self.running = running
        self.server = server
        self.records = records
        self.doors = running.doors

    async def result(
        self, method: str, params: Any = None, execute: str = "by-effect", profile: str = "", client: Client = LEGACY
    ) -> Any:
        service = (await self.doors.find_for(OPERATOR, "", profile, execute)).service
        data = b"" if params is None else json.dumps(params).encode()
        return json.loads((await answer(service, exchange(client, method, data))).body)["result"]

    async def run(self, name: str, path: str, arguments: Any = None, **where: Any) -> Any:
        params = {"name": name, "arguments": {"tool_path": path, "arguments": arguments or {}}}
        return await self.result("tools/call", params, **where)

    async def rows(self, query: str, **where: Any) -> dict[str, Any]:
        params = {"name": "discover_mcp_tools", "arguments": {"query": query}}
        told = await self.result("tools/call", params, **where)
        return {row["tool_path"]: row for row in told["structuredContent"]["tools"]}

    def rule(self, **members: Any) -> None:
        """Have other rules hold for the server."""
        cell = self.running.gateway.parts.deployment
        cell.set(replace(cell.value, rules={"notes": replace(cell.value.rules_of("notes"), **members)}))

    def calls(self) -> list[str]:
        return [params["name"] for method, params in self.server.asked if method == "tools/call"]


@asynccontextmanager
async def rig(**settings: Any) -> AsyncIterator[Rig]:
    records: list[CallRecord] = []
    server = WholeServer(tools=list(TOOLS))
    used = Settings(first_discovery_wait_s=0.0, **settings)
    async with served({"notes": server}, used, used=lambda record, given=None: records.append(record)) as running:
        server.asked.clear()
        yield Rig(running, server, records)


def plain(definition: dict[str, Any]) -> dict[str, Any]:
    """Return a definition without hints for clients."""
    return {key: value for key, value in definition.items() if key != "_meta"}


@pytest.mark.parametrize("client", [LEGACY, MODERN], ids=["legacy", "modern"])
async def test_it_lists_five_and_the_other_address_four_as_before(client: Client) -> None:
    async with rig() as at:
        five = await at.result("tools/list", client=client)
        assert {each["_meta"]["anthropic/alwaysLoad"] for each in five["tools"]} == {True}
        assert [plain(each) for each in five["tools"]] == [*definitions.BY_EFFECT]
        assert at.records[-1].tokens_shown == META_TOKENS_BY_EFFECT
        four = await at.result("tools/list", execute="", client=client)
        assert [plain(each) for each in four["tools"]] == [*definitions.DEFINITIONS]
        method = "initialize" if client is LEGACY else "server/discover"
        params = {"protocolVersion": "2025-11-25"}
        assert (await at.result(method, params, client=client))["instructions"].count(f"{HOW_BY_EFFECT}\nServers")
        assert HOW in (await at.result(method, params, execute="", client=client))["instructions"]
        assert READ_ONLY in HOW_BY_EFFECT
        assert READ_ONLY not in HOW


async def test_what_surely_reads_is_run_and_counted_as_the_call_of_the_servers_tool_that_it_is() -> None:
    async with rig() as at:
        await at.run(READ_ONLY, "notes:read_note")
        assert at.calls() == ["read_note"]
        await at.run("executeReadOnlyMcpTool", "notes:read_note")
        assert at.calls() == ["read_note"] * 2
        assert [(each.server, each.tool, each.outcome) for each in at.records] == [("notes", "read_note", "ok")] * 2
        for name in ("add_note", "list_notes", "read_note"):
            await at.run(EXECUTE, f"notes:{name}")
        assert at.calls()[2:] == ["add_note", "list_notes", "read_note"]


async def test_of_several_calls_each_is_looked_at() -> None:
    async with rig() as at:
        calls = [{"tool_path": f"notes:{name}", "arguments": {}} for name in ("read_note", "add_note", "delete_note")]
        told = await at.result("tools/call", {"name": READ_ONLY, "arguments": {"calls": calls}})
        failed = [each.get("isError", False) for each in told["structuredContent"]["results"]]
        assert (failed, at.calls()) == ([False, True, True], ["read_note"])
        wrong = await at.result("tools/call", {"name": READ_ONLY, "arguments": {"calls": [calls[0], 7]}})
        assert wrong["content"][0]["text"].startswith(f"{READ_ONLY}: call 2 must be an object")


@pytest.mark.parametrize(
    ("name", "why"),
    [("list_notes", "undeclared"), ("stir", "unworded"), ("add_note", "undeclared"), ("delete_note", "destructive")],
)
async def test_anything_else_is_refused_before_its_server_is_woken(name: str, why: str) -> None:
    async with rig() as at:
        await at.running.sleep("notes")
        starts = at.server.starts
        told = await at.run(READ_ONLY, f"notes:{name}", {"unknown": 1})
        assert told["isError"]
        error = told["structuredContent"]["error"]
        assert (error["type"], error["reason"], error["instead"], error["outcome"]) == (
            "not_read_only",
            why,
            EXECUTE,
            "not_sent",
        )
        assert EXECUTE in told["content"][0]["text"]
        assert (at.calls(), at.server.starts) == ([], starts)
        assert at.running.actors["notes"].life.state is State.DORMANT
        (record,) = at.records
        assert (record.server, record.tool, record.outcome, record.error) == (
            "notes",
            name,
            "rejected",
            "not_read_only",
        )


async def test_a_row_says_which_of_the_two_runs_it_at_that_address_alone() -> None:
    async with rig() as at:
        for query in ("*", "notes:*", "read a note"):
            rows = await at.rows(query)
            assert [path for path, row in rows.items() if "read_only" in row] == ["notes:read_note"]
            assert rows["notes:read_note"]["read_only"] is True
            apart = {path: {**row, "read_only": None} for path, row in rows.items()}
            before = {path: {**row, "read_only": None} for path, row in (await at.rows(query, execute="")).items()}
            assert apart == before


async def test_it_is_in_the_text_that_a_model_reads() -> None:
    async with rig() as at:
        params = {"name": "discover_mcp_tools", "arguments": {"query": "read a note"}}
        told = await at.result("tools/call", params, client=replace(LEGACY, name="claude-code"))
        rows = {row["tool_path"]: row for row in json.loads(told["content"][0]["text"])["tools"]}
        assert [path for path, row in rows.items() if row.get("read_only")] == ["notes:read_note"]


async def test_it_asks_its_user_of_nothing_it_refuses() -> None:
    async with rig() as at:
        at.rule(confirm_from="safe")
        told = await at.run(READ_ONLY, "notes:read_note")
        assert told["structuredContent"]["error"]["reason"] == "confirmed"
        assert at.calls() == []


async def test_wrong_arguments_are_answered_in_the_name_of_the_tool_that_was_called() -> None:
    async with rig() as at:
        told = await at.result("tools/call", {"name": READ_ONLY, "arguments": {"arguments": {}}})
        assert told["content"][0]["text"].startswith(f"{READ_ONLY}: 'tool_path' must be a string")
        assert told["structuredContent"]["error"]["tool"] == READ_ONLY


async def test_where_there_are_four_it_is_no_tool_and_it_is_said_where_it_is() -> None:
    async with rig() as at:
        told = await at.run(READ_ONLY, "notes:read_note", execute="")
        assert "/mcp?execute=by-effect" in told["content"][0]["text"]
        assert at.calls() == []


async def test_the_address_goes_with_profiles() -> None:
    async with rig(profiles={"few": ViewProfile(tools=("notes:add_*",))}) as at:
        assert [*await at.rows("*", profile="few")] == ["notes:add_note"]
        told = await at.run(READ_ONLY, "notes:read_note", profile="few")
        assert told["structuredContent"]["error"]["type"] == "not_found"
        names = [at.doors.find("", profile, "by-effect").name for profile in ("", "few")]
        assert names == ["?execute=by-effect", "?profile=few&execute=by-effect"], "sessions are of one door"


async def test_a_setting_that_changes_holds_from_the_next_call_on() -> None:
    async with rig() as at:
        await at.run(READ_ONLY, "notes:read_note")
        at.rule(read_only=("stir",))
        assert (await at.run(READ_ONLY, "notes:read_note"))["structuredContent"]["error"]["reason"] == "unnamed"
        await at.run(READ_ONLY, "notes:stir")
        assert at.calls() == ["read_note", "stir"]
        assert [path for path, row in (await at.rows("*")).items() if "read_only" in row] == ["notes:stir"]
