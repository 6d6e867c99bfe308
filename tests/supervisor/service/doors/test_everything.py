"""The door of all servers: every name leads back to exactly its own tool, prompt or resource."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from actors.protocol.agreement.versions import Era
from supervisor.service.client import Client
from supervisor.service.doors.everything import NAME_KEY, NAMES, SERVER_KEY, WHAT
from supervisor.service.port import Answer, Service, answer
from supervisor.usage.records import CallRecord
from tests.fakes import nasty_tools
from tests.fakes.exchanges import LEGACY, MODERN, exchange
from tests.fakes.published import Served, served
from tests.fakes.whole_server import WholeServer

ALLOWED = re.compile(r"[A-Za-z0-9_-]{1,64}")

both = pytest.mark.parametrize("client", [LEGACY, MODERN], ids=["legacy", "modern"])


@dataclass
class Library(WholeServer):
    """Has prompts and resources, too; `uris` are those it lists."""

    prompts: tuple[str, ...] = ("greet", "summarise/all")
    uris: tuple[str, ...] = ("file:///shared",)
    templates: tuple[str, ...] = ("file:///{any}",)
    capabilities: dict[str, Any] = field(
        default_factory=lambda: {"tools": {}, "prompts": {}, "resources": {}, "completions": {}}
    )

    def _result(self, method: str, params: Any) -> Any:
        match method:
            case "resources/list":
                return {"resources": [{"uri": uri, "name": "r", "x-own": 1} for uri in self.uris]}
            case "resources/templates/list":
                return {"resourceTemplates": [{"uriTemplate": uri, "name": "t"} for uri in self.templates]}
            case "prompts/get":
                return {"messages": [], "got": params["name"]}
            case "completion/complete":
                return {"completion": {"values": []}, "got": params["ref"]}
        return super()._result(method, params)


class Rig:
    """The door and the servers behind it."""

    def __init__(self, running: Served, servers: Mapping[str, WholeServer]) -> None:
        self.running = running
        self.servers = servers
        self.door: Service = running.doors.find("all").service
        for server in servers.values():
            server.asked.clear()

    async def answer(self, client: Client, method: str, params: Any = None) -> Answer:
        data = b"" if params is None else json.dumps(params).encode()
        return await answer(self.door, exchange(client, method, data))

    async def ask(self, client: Client, method: str, params: Any = None) -> Any:
        return json.loads((await self.answer(client, method, params)).body)

    async def result(self, client: Client, method: str, params: Any = None) -> Any:
        return (await self.ask(client, method, params))["result"]

    async def pages(self, method: str, member: str, client: Client = LEGACY) -> list[list[Any]]:
        pages: list[list[Any]] = []
        params: dict[str, Any] = {}
        while True:
            page = await self.result(client, method, params)
            pages.append(page[member])
            if "nextCursor" not in page:
                return pages
            params = {"cursor": page["nextCursor"]}

    async def all(self, method: str, member: str, client: Client = LEGACY) -> list[Any]:
        return [entry for page in await self.pages(method, member, client) for entry in page]

    def arrived(self) -> list[tuple[str, str, Any]]:
        """The requests that arrived since the last time: server, method, params without `_meta` of ours."""
        calls = []
        for name, server in self.servers.items():
            calls += [(name, *server.last())] if server.asked else []
            server.asked.clear()
        return calls


@asynccontextmanager
async def door(servers: Mapping[str, WholeServer], era: Era = "legacy", **more: Any) -> AsyncIterator[Rig]:
    async with served(servers, era=era, **more) as running:
        yield Rig(running, servers)


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, "x-own": 1.0, **more}


def nasty() -> dict[str, WholeServer]:
    """35 servers with names of every kind, and tools of which many have equal names on many servers."""
    published = [tool for tools in nasty_tools.catalogue().values() for tool in tools]
    kinds = ("plain{}", "two__parts{}", "dotted.name{}", "with space {}", "ends{}_", "s" * 60 + "{}", "A{}")
    servers: dict[str, WholeServer] = {}
    for number in range(35):
        more = [
            f"only-{number}",
            "search",
            "a.b/c",
            "_x",
            "x" * 120,
            "y" * 120 + str(number),
            "t_0123456789ab",
            "\u4e16",
        ]
        tools = [*published[number::15], *(tool(name) for name in more)]
        unique = {one["name"]: one for one in tools}
        servers[kinds[number % 7].format(number)] = WholeServer(tools=list(unique.values()))
    return servers


# Lists ----------------------------------------------------------------------------------------------------------------


async def test_every_name_of_a_nasty_catalogue_leads_back_to_its_own_tool() -> None:
    async with door(nasty()) as rig:
        pages = await rig.pages("tools/list", "tools")
        listed = [tool for page in pages for tool in page]
        assert len(pages) > 1
        assert len(listed) == sum(len(server.tools) for server in rig.servers.values()) > 500
        assert len({tool["name"] for tool in listed}) == len(listed)
        assert all(ALLOWED.fullmatch(tool["name"]) for tool in listed)
        for tool in listed:
            await rig.result(LEGACY, "tools/call", {"name": tool["name"], "arguments": {}})
            meta = tool["_meta"]
            assert rig.arrived() == [(meta[SERVER_KEY], "tools/call", {"name": meta[NAME_KEY], "arguments": {}})]


@both
async def test_a_definition_is_the_servers_own_but_for_its_name_and_whose_it_is(client: Client) -> None:
    own = tool("get.user", title="Get", annotations={"readOnlyHint": True}, _meta={"x-own/a": [1.0], "b": None})
    async with door({"one": WholeServer(tools=[own, tool("plain")])}) as rig:
        first, second = (await rig.result(client, "tools/list"))["tools"]
        assert re.fullmatch(r"one__get-user_[0-9a-f]{12}", first["name"])
        whose = {SERVER_KEY: "one", NAME_KEY: "get.user"}
        assert first == {**own, "name": first["name"], "_meta": {**own["_meta"], **whose}}
        assert second == tool("one__plain", _meta={SERVER_KEY: "one", NAME_KEY: "plain"})


async def test_a_meta_that_is_no_object_is_left_out() -> None:
    async with door({"one": WholeServer(tools=[tool("plain", _meta=[5])])}) as rig:
        ours = {SERVER_KEY: "one", NAME_KEY: "plain"}
        assert (await rig.result(LEGACY, "tools/list"))["tools"] == [tool("one__plain", _meta=ours)]


async def test_the_page_of_a_tool_is_named_as_it_can_be_read() -> None:
    ui = {"ui": {"resourceUri": "ui://listed"}, "ui/resourceUri": "ui://unlisted"}
    servers = {"one": Library(tools=[tool("a", _meta=ui)], uris=("ui://listed",))}
    async with door(servers) as rig:
        meta = (await rig.result(LEGACY, "tools/list"))["tools"][0]["_meta"]
        assert (meta["ui"], meta["ui/resourceUri"]) == ({"resourceUri": "ui://listed"}, "mcp://one/ui://unlisted")
        for uri in ("ui://listed", "mcp://one/ui://unlisted"):
            await rig.result(LEGACY, "resources/read", {"uri": uri})
            assert rig.arrived() == [("one", "resources/read", {"uri": uri.removeprefix("mcp://one/")})]


async def test_a_cursor_of_somebody_else_is_refused_and_one_of_ours_outlives_a_change() -> None:
    server = WholeServer(tools=[tool(f"t{number}") for number in range(700)])
    async with door({"one": server}) as rig:
        for cursor in ("x", "", 5):
            error = (await rig.ask(LEGACY, "tools/list", {"cursor": cursor}))["error"]
            assert error["data"]["type"] == "invalid"
        first = await rig.result(LEGACY, "tools/list")
        other = await rig.ask(LEGACY, "prompts/list", {"cursor": first["nextCursor"]})
        assert other["error"]["data"]["type"] == "invalid"
        before = rig.door.revisions
        server.tools = server.tools[:600]
        await server.notify("notifications/tools/list_changed")
        while rig.door.revisions == before:
            await rig.running.registry.catalogue.wait_newer(rig.running.registry.catalogue.version)
        second = await rig.result(LEGACY, "tools/list", {"cursor": first["nextCursor"]})
        assert len(first["tools"]) + len(second["tools"]) == 600
        assert (await rig.result(LEGACY, "tools/call", {"name": "one__t599"}))["content"] == []
        failed = await rig.result(LEGACY, "tools/call", {"name": "one__t650"})
        assert failed["isError"] is True


# Calls ----------------------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("name", ["one__tool9", "one:tool0", "one-tool0", "tool0", "One__tool0", "two__tool0"])
async def test_no_name_is_forgiven_and_the_nearest_are_said(client: Client, name: str) -> None:
    async with door({"one": WholeServer()}) as rig:
        failed = await rig.result(client, "tools/call", {"name": name})
        assert failed["isError"] is True
        assert ("resultType" in failed) == (client is MODERN)
        text = failed["content"][0]["text"]
        assert "one__tool" in text or "tools/list tells" in text
        assert rig.arrived() == []


async def test_a_name_that_begins_with_a_server_of_which_nothing_is_known_waits_for_it() -> None:
    async with door({"one": WholeServer(), "late": WholeServer()}, undiscovered=["late"]) as rig:
        assert (await rig.result(LEGACY, "tools/call", {"name": "late__tool0"}))["content"] == []
        assert [(server, params) for server, _, params in rig.arrived()] == [("late", {"name": "tool0"})]


@pytest.mark.parametrize("params", [{}, {"name": 5}, {"name": ""}, None])
async def test_a_call_without_a_name_is_an_error_of_the_protocol(params: Any) -> None:
    async with door({"one": WholeServer()}) as rig:
        assert (await rig.ask(LEGACY, "tools/call", params))["error"]["code"] == -32602


async def test_calls_are_counted() -> None:
    used: list[tuple[str, str, str]] = []

    def note(record: CallRecord, given: object = None) -> None:
        used.append((record.server, record.tool, record.outcome))

    async with door({"one": WholeServer()}, used=note) as rig:
        await rig.ask(LEGACY, "tools/call", {"name": "one__tool0"})
        await rig.ask(LEGACY, "tools/call", {"name": "one__none"})
        await rig.ask(LEGACY, "tools/call", {"name": "made_up"})
        await rig.ask(LEGACY, "tools/call", {})
        unknown = ("_unknown", "_unknown", "rejected")
        assert used == [("one", "tool0", "ok"), ("one", "_unknown", "rejected"), unknown, unknown]


# Prompts and resources ------------------------------------------------------------------------------------------------


async def test_prompts_have_names_like_tools_and_their_arguments_can_be_completed() -> None:
    async with door({"one": Library(), "two": Library()}) as rig:
        listed = await rig.all("prompts/list", "prompts")
        assert len({prompt["name"] for prompt in listed}) == 4
        for prompt in listed:
            meta = prompt["_meta"]
            assert (await rig.result(LEGACY, "prompts/get", {"name": prompt["name"]}))["got"] == meta[NAME_KEY]
            assert [server for server, *_ in rig.arrived()] == [meta[SERVER_KEY]]
            ref = {"type": "ref/prompt", "name": prompt["name"], "x-own": 1}
            told = await rig.result(LEGACY, "completion/complete", {"ref": ref, "argument": {"name": "a", "value": ""}})
            assert told["got"] == {**ref, "name": meta[NAME_KEY]}
            assert [server for server, *_ in rig.arrived()] == [meta[SERVER_KEY]]
        assert (await rig.ask(LEGACY, "prompts/get", {"name": "one-greet"}))["error"]["data"]["type"] == "not_found"


@both
async def test_a_uri_is_the_servers_own_unless_another_one_lists_it(client: Client) -> None:
    servers = {
        "one": Library(client.era, uris=("file:///shared", "file:///one", "mcp://two/x")),
        "two": Library(client.era, uris=("file:///shared",)),
    }
    async with door(servers, era=client.era) as rig:
        listed = await rig.all("resources/list", "resources", client)
        assert [one["uri"] for one in listed] == [
            "mcp://one/file:///shared",
            "file:///one",
            "mcp://one/mcp://two/x",
            "mcp://two/file:///shared",
        ]
        for one in listed:
            meta = one["_meta"]
            read = await rig.result(client, "resources/read", {"uri": one["uri"]})
            assert read["contents"] == [{"uri": one["uri"], "text": "hello"}]
            assert rig.arrived() == [(meta[SERVER_KEY], "resources/read", {"uri": meta[NAME_KEY]})]
        ambiguous = (await rig.ask(client, "resources/read", {"uri": "file:///shared"}))["error"]
        assert ambiguous["data"]["readings"] == ["mcp://one/file:///shared", "mcp://two/file:///shared"]


async def test_templates_name_their_server_as_nobody_knows_whose_uris_fit() -> None:
    async with door({"one": Library(), "two": Library()}) as rig:
        listed = await rig.all("resources/templates/list", "resourceTemplates")
        assert [one["uriTemplate"] for one in listed] == ["mcp://one/file:///{any}", "mcp://two/file:///{any}"]
        await rig.result(LEGACY, "resources/read", {"uri": "mcp://two/file:///new"})
        assert rig.arrived() == [("two", "resources/read", {"uri": "file:///new"})]
        ref = {"type": "ref/resource", "uri": "mcp://two/file:///{any}"}
        told = await rig.result(LEGACY, "completion/complete", {"ref": ref, "argument": {"name": "any", "value": ""}})
        assert told["got"] == {"type": "ref/resource", "uri": "file:///{any}"}


async def test_a_long_uri_reaches_its_server_whole() -> None:
    async with door({"one": Library()}) as rig:
        uri = f"file:///{'a' * 9000}"
        await rig.result(LEGACY, "resources/read", {"uri": f"mcp://one/{uri}"})
        assert rig.arrived() == [("one", "resources/read", {"uri": uri})]


@both
async def test_what_is_no_resource_and_no_reference_is_said(client: Client) -> None:
    async with door({"one": Library()}) as rig:
        code = -32602 if client is MODERN else -32002
        for uri in ("mcp://three/a", "mcp://One/a", "http://example.org/", "one|file:///shared"):
            assert (await rig.ask(client, "resources/read", {"uri": uri}))["error"]["code"] == code
        for ref in ({"type": "ref/x", "name": "one__greet"}, {"type": "ref/prompt"}, {}):
            told = await rig.ask(client, "completion/complete", {"ref": ref, "argument": {}})
            assert told["error"]["data"]["type"] == "invalid"
        assert rig.arrived() == []


# Greeting -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 100])
async def test_the_names_of_the_servers_are_where_a_client_that_hides_tools_shows_its_model_something(
    count: int,
) -> None:
    async with door({f"server-{number}": Library() for number in range(count)}) as rig:
        line, _, rest = (await rig.result(LEGACY, "initialize"))["instructions"].partition("\n")
        assert line[:250].startswith(f"{WHAT}: server-0, server-1")
        assert ("more. " in line[:250]) is (count == 100)
        assert "server-0" in rest


async def test_a_client_is_told_what_is_here_in_its_era() -> None:
    async with door({"one": Library()}) as rig:
        told = await rig.result(LEGACY, "initialize")
        lists = {"listChanged": True}
        capabilities = {"tools": lists, "resources": lists, "prompts": lists, "completions": {}}
        assert (told["protocolVersion"], told["capabilities"]) == ("2025-11-25", capabilities)
        info = {"name": "mcpvisor", "title": "mcpvisor", "version": "1.0"}
        assert told["serverInfo"] == {**info, "description": WHAT}
        older = await rig.result(Client(version="2025-06-18"), "initialize")
        assert older["serverInfo"] == info
        assert told["instructions"].startswith(f"{WHAT}: one. {NAMES}\none ")
        discovered = await rig.result(MODERN, "server/discover")
        assert (discovered["capabilities"], discovered["instructions"]) == (capabilities, told["instructions"])
        assert await rig.result(LEGACY, "ping") == {}
        for client, methods in ((LEGACY, "server/discover x"), (MODERN, "ping initialize")):
            for method in methods.split():
                assert (await rig.ask(client, method))["error"]["code"] == -32601


async def test_its_lists_change_with_those_of_any_server_whatever_is_told_at_the_first_door() -> None:
    async with door({"one": Library(), "two": Library()}) as rig:
        before = rig.door.revisions
        rig.servers["two"].tools = []
        await rig.servers["two"].notify("notifications/tools/list_changed")
        rig.servers["one"].tools = [tool("new")]
        await rig.servers["one"].notify("notifications/tools/list_changed")
        while rig.door.revisions == before:
            await rig.running.registry.catalogue.wait_newer(rig.running.registry.catalogue.version)
        after = rig.door.revisions
        assert after.tools > before.tools
        assert (after.resources, after.prompts) == (before.resources, before.prompts)
