"""Tools that the configuration hides, renames and describes, at every door, towards the server and after a reload."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from msgspec.structs import replace

from actors.catalogue.tool_rules import ToolRules
from actors.protocol.agreement.versions import Era
from actors.registry_inbox import AwaitShown, RulesChanged
from supervisor.service.client import Client
from supervisor.usage.records import UNKNOWN, CallArguments, CallRecord
from tests.fakes.exchanges import LEGACY, MODERN
from tests.fakes.published import Served, served
from tests.fakes.whole_server import WholeServer

RULES = ToolRules(
    deny=("drop_*",), rename={"list_rows": "rows"}, describe={"list_rows": "Shows the guests of the party."}
)
TOOLS = [
    {"name": name, "description": f"does {name}", "inputSchema": {"type": "object"}, "x-own": 1.0}
    for name in ("drop_table", "drop_index", "list_rows", "add_row")
]
DOORS = {"": "data:", "all": "data__", "servers/data": ""}
"""The doors, and what stands before a tool's name there."""


class Rig:
    def __init__(self, running: Served, server: WholeServer, used: list[tuple[str, str]]) -> None:
        self.running = running
        self.server = server
        self.used = used

    async def result(self, door: str, method: str, params: Any = None, client: Client = LEGACY) -> Any:
        told = await self.running.ask(method, client, door, **(params or {}))
        return told.get("result", told)

    async def call(self, door: str, tool: str, client: Client = LEGACY) -> Any:
        """Call a tool by the name that it has at a door."""
        self.server.asked.clear()
        name = DOORS[door] + tool
        params = {"name": name, "arguments": {"a": 1.0}}
        if not door:
            params = {"name": "execute_mcp_tool", "arguments": {"tool_path": name, "arguments": {"a": 1.0}}}
        return await self.result(door, "tools/call", params, client)

    async def discover(self, query: str) -> Any:
        told = await self.result("", "tools/call", {"name": "discover_mcp_tools", "arguments": {"query": query}})
        return told["structuredContent"]

    async def rule(self, rules: ToolRules) -> None:
        """Change the configuration as it runs."""
        cell = self.running.gateway.parts.deployment
        cell.set(replace(cell.value, tool_rules={"data": rules} if rules else {}))
        await self.running.registry.address.tell(RulesChanged(server="data"))
        await self.running.registry.address.ask(AwaitShown(server="data"))


@asynccontextmanager
async def rig(rules: ToolRules = RULES, era: Era = "legacy", **more: Any) -> AsyncIterator[Rig]:
    server = WholeServer(era, tools=list(TOOLS))
    used: list[tuple[str, str]] = []

    def note(record: CallRecord, given: CallArguments | None = None) -> None:
        if record.server:
            used.append((record.server, record.tool))

    async with served({"data": server}, era=era, used=note, tool_rules={"data": rules}, **more) as running:
        yield Rig(running, server, used)


def text(result: Any) -> str:
    return str(result["content"][0]["text"])


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("client", [LEGACY, MODERN], ids=["legacy client", "modern client"])
@pytest.mark.parametrize("door", DOORS)
async def test_a_renamed_tool_is_called_by_its_new_name_and_reaches_the_server_by_its_own(
    door: str, client: Client, era: Era
) -> None:
    async with rig(era=era) as at:
        result = await at.call(door, "rows", client)
        assert not result.get("isError")
        assert at.server.last() == ("tools/call", {"name": "list_rows", "arguments": {"a": 1.0}})
        assert at.used == [("data", "list_rows")]
        await at.call(door, "add_row", client)
        assert at.server.last() == ("tools/call", {"name": "add_row", "arguments": {"a": 1.0}})


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", ["drop_table", "drop_index", "list_rows", "no_such"])
async def test_what_is_hidden_is_as_unknown_as_what_is_not_there(door: str, name: str) -> None:
    async with rig() as at:
        result = await at.call(door, name)
        assert result["isError"]
        assert result["structuredContent"]["error"]["type"] == "not_found"
        told = json.dumps(result).replace(name, "")
        assert "drop" not in told, "nothing that is hidden is suggested"
        assert ("rows" in told) == (name == "list_rows" and door != "all"), "who knows the old name is told the new one"
        assert (at.server.asked, at.used) == ([], [("data", UNKNOWN)])


async def test_a_direct_call_by_the_new_name_reaches_it_too() -> None:
    async with rig() as at:
        await at.result("", "tools/call", {"name": "data-rows", "arguments": {}})
        assert at.server.last()[1]["name"] == "list_rows"


async def test_search_and_lists_show_what_is_left_under_its_names() -> None:
    async with rig() as at:
        hits = (await at.discover("guests of the party"))["tools"]
        assert hits[0]["tool_path"] == "data:rows"
        assert hits[0]["description"] == "Shows the guests of the party."
        assert (await at.discover("drop the table"))["tools"] == []
        listed = (await at.discover("data:*"))["tools"]
        assert {row["tool_path"] for row in listed} == {"data:rows", "data:add_row"}
        everything = (await at.result("all", "tools/list"))["tools"]
        assert [tool["name"] for tool in everything] == ["data__rows", "data__add_row"]
        assert everything[0]["description"] == "Shows the guests of the party."
        assert everything[0]["_meta"] == {"mcpvisor/server": "data", "mcpvisor/name": "list_rows"}


@pytest.mark.parametrize("client", [LEGACY, MODERN], ids=["legacy", "modern"])
async def test_the_list_of_one_server_is_ours_awake_or_asleep(client: Client) -> None:
    async with rig() as at:
        at.server.asked.clear()
        awake = (await at.result("servers/data", "tools/list", None, client))["tools"]
        await at.running.sleep("data")
        asleep = (await at.result("servers/data", "tools/list", None, client))["tools"]
        assert awake == asleep
        assert awake == [
            {**TOOLS[2], "name": "rows", "description": "Shows the guests of the party."},
            TOOLS[3],
        ]
        assert at.server.methods() == []
        # A cursor of the server would lead past what we show.
        refused = await at.result("servers/data", "tools/list", {"cursor": "1"}, client)
        assert refused["error"]["code"] == -32602
        assert (await at.result("servers/data", "prompts/list"))["prompts"] == []


async def test_a_call_waits_for_a_server_of_which_nothing_is_known_before_it_says_what_it_shows() -> None:
    async with rig(undiscovered=["data"]) as at:
        assert "has no tool 'drop_table'" in text(await at.call("servers/data", "drop_table"))
        assert "tools/call" not in at.server.methods()
    async with rig(undiscovered=["data"]) as at:
        await at.call("servers/data", "rows")
        assert at.server.last()[1]["name"] == "list_rows"


async def test_a_tool_that_a_sleeping_server_gained_is_found_although_others_came_that_nobody_sees() -> None:
    async with rig() as at:
        await at.running.sleep("data")
        at.server.tools += [{"name": name, "inputSchema": {"type": "object"}} for name in ("drop_all", "count")]
        with trio.fail_after(5):
            await at.call("", "count")
        assert at.server.last()[1]["name"] == "count"


async def test_changed_rules_are_seen_without_a_word_to_the_server() -> None:
    async with rig() as at:
        service = at.running.doors.find("").service
        before = service.revisions
        at.server.asked.clear()
        await at.rule(ToolRules(allow=("drop_table",)))
        assert {row["tool_path"] for row in (await at.discover("*"))["tools"]} == {"data:drop_table"}
        assert service.revisions.tools > before.tools
        assert "has no tool" in text(await at.call("servers/data", "rows"))
        await at.rule(ToolRules())
        listed = {row["tool_path"] for row in (await at.discover("*"))["tools"]}
        assert listed == {f"data:{tool['name']}" for tool in TOOLS}
        again = service.revisions
        await at.rule(ToolRules())
        assert service.revisions == again
        assert (at.server.asked, at.server.starts) == ([], 1)


async def test_a_rule_that_fits_nothing_is_told_to_the_operator_alone() -> None:
    async with rig(ToolRules(deny=("drop_tabel",))) as at:
        (problem,) = at.running.registry.catalogue.value.entries["data"].offer.problems
        assert problem == "tools.deny: the server has no tool 'drop_tabel'; did you mean 'drop_table'?"
        assert "drop_tabel" not in json.dumps(await at.discover("*"))
