"""What clients of a profile find, list, call, read and are told of, at every door; and that others see no less."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
from msgspec.structs import replace

from actors.catalogue.snapshot import Catalogue
from actors.catalogue.views import ProfileView, ViewProfile, view
from actors.errors import UnknownDoor
from actors.life.states import State
from actors.messages import RefreshServer
from actors.registry_inbox import AwaitShown
from supervisor.config import ServerConfig, Settings
from supervisor.host.workbench import beside
from supervisor.identity.people import OPERATOR, Person, Rights, Viewer
from supervisor.plugins.contract import Plugin, PluginOptions, Rejection, ToolDefinition
from supervisor.plugins.loading import PluginPackage
from supervisor.plugins.running import RunningPlugin
from supervisor.service.client import Client
from supervisor.service.doors import addresses
from supervisor.service.doors.addresses import DoorTable, chosen_by
from supervisor.service.lookup import visible
from supervisor.service.port import Door, answer
from tests.fakes.exchanges import LEGACY, MODERN, exchange
from tests.fakes.published import Served, served
from tests.fakes.whole_server import WholeServer

PROFILES = {
    "work": ViewProfile(servers=("files",), tools=("mail:read_*",), deny=("files:delete",)),
    "files": ViewProfile(servers=("files",)),
    "odd": ViewProfile(tools=("late:nothing",)),
}
TOOLS = {"files": ["read", "delete"], "mail": ["read_mail", "send_mail"], "shop": ["buy"]}


def listed(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "description": f"does {name}", "inputSchema": {"type": "object"}} for name in names]


class Rig:
    def __init__(self, running: Served, servers: dict[str, WholeServer]) -> None:
        self.running = running
        self.servers = servers
        self.doors = running.doors

    async def ask(
        self, method: str, params: Any = None, door: str = "", profile: str = "work", client: Client = LEGACY
    ) -> Any:
        data = b"" if params is None else json.dumps(params).encode()
        service = (await self.doors.find_for(OPERATOR, door, profile)).service
        return json.loads((await answer(service, exchange(client, method, data))).body)

    async def result(self, method: str, params: Any = None, **where: Any) -> Any:
        return (await self.ask(method, params, **where))["result"]

    async def discover(self, query: str, profile: str = "work", **more: Any) -> Any:
        params = {"name": "discover_mcp_tools", "arguments": {"query": query, **more}}
        return (await self.result("tools/call", params, profile=profile))["structuredContent"]

    async def paths(self, query: str, profile: str = "work") -> set[str]:
        return {row["tool_path"] for row in (await self.discover(query, profile))["tools"]}

    async def execute(self, path: str, **where: Any) -> Any:
        params = {"name": "execute_mcp_tool", "arguments": {"tool_path": path, "arguments": {}}}
        return await self.result("tools/call", params, **where)

    def asked(self) -> list[tuple[str, str]]:
        """The requests that arrived: server and method."""
        return [(name, method) for name, server in self.servers.items() for method in server.methods()]

    def configure(self, **settings: Any) -> None:
        cell = self.running.gateway.parts.deployment
        cell.set(replace(cell.value, settings=replace(cell.value.settings, **settings)))


@asynccontextmanager
async def rig(**more: Any) -> AsyncIterator[Rig]:
    servers = {
        name: WholeServer(tools=listed(*tools), prompts=("greet",))
        for name, tools in {**TOOLS, **more.pop("also_servers", {})}.items()
    }
    settings = Settings(first_discovery_wait_s=0.0, profiles=PROFILES, profile=more.pop("profile", ""))
    async with served(servers, settings, **more) as running:
        for server in servers.values():
            server.asked.clear()
        yield Rig(running, servers)


async def test_search_and_lists_have_what_is_in_the_profile() -> None:
    async with rig() as at:
        assert await at.paths("*") == {"files:read", "mail:read_mail"}
        assert await at.paths("buy") == set()
        assert (await at.discover("send delete buy read"))["total_found"] <= 2
        assert (await at.discover("shop:*"))["tools"] == []
        assert "shop" not in json.dumps(await at.discover("mail:send_mail")).replace("shop:", "")
        assert await at.paths("*", "files") == {"files:read", "files:delete"}
        assert len(await at.paths("*", "")) == 5
        everything = (await at.result("tools/list", door="all"))["tools"]
        assert [tool["name"] for tool in everything] == ["files__read", "mail__read_mail"]
        prompts = (await at.result("prompts/list"))["prompts"]
        assert [prompt["name"] for prompt in prompts] == ["files-greet", "mail-greet"]
        resources = (await at.result("resources/list"))["resources"]
        assert [each["uri"] for each in resources] == ["mcp://files/file:///a", "mcp://mail/file:///a"]
        model = await at.result("tools/call", {"name": "list_mcp_resources", "arguments": {}})
        assert model["structuredContent"]["total_resources"] == 2


@pytest.mark.parametrize("client", [LEGACY, MODERN], ids=["legacy", "modern"])
@pytest.mark.parametrize("path", ["mail:send_mail", "files:delete", "shop:buy"])
async def test_what_is_not_in_it_is_unknown_and_no_server_is_asked(path: str, client: Client) -> None:
    server, _, tool = path.partition(":")
    async with rig() as at:
        told = await at.execute(path, client=client)
        assert told["structuredContent"]["error"]["type"] == "not_found"
        direct = await at.result("tools/call", {"name": f"{server}-{tool}", "arguments": {}}, client=client)
        assert direct["isError"]
        all_ = await at.result("tools/call", {"name": f"{server}__{tool}", "arguments": {}}, door="all", client=client)
        assert all_["isError"]
        if server == "shop":
            with pytest.raises(UnknownDoor) as caught:
                at.doors.find("servers/shop", "work")
            assert caught.value.details == {"servers": ["files", "mail"]}
        else:
            one = await at.result(
                "tools/call", {"name": tool, "arguments": {}}, door=f"servers/{server}", client=client
            )
            assert one["isError"]
        assert at.asked() == []
        assert not (await at.execute(path, profile="", client=client)).get("isError")
        assert at.asked() == [(server, "tools/call")]


async def test_what_is_in_it_is_called_and_read_as_without_a_profile() -> None:
    async with rig() as at:
        await at.execute("mail:read_mail")
        await at.result("tools/call", {"name": "mail__read_mail", "arguments": {}}, door="all")
        await at.result("tools/call", {"name": "read_mail", "arguments": {}}, door="servers/mail")
        assert at.asked() == [("mail", "tools/call")] * 3
        read = await at.result("resources/read", {"uri": "mcp://mail/file:///a"})
        assert read["contents"][0]["text"] == "hello"
        assert (await at.ask("resources/read", {"uri": "mcp://shop/file:///a"}))["error"]["code"] == -32002
        assert (await at.ask("prompts/get", {"name": "shop-greet"}))["error"]["code"] == -32602


async def test_one_server_lists_what_is_in_it() -> None:
    async with rig() as at:
        mail = (await at.result("tools/list", door="servers/mail"))["tools"]
        assert [tool["name"] for tool in mail] == ["read_mail"]
        assert at.asked() == []
        assert len((await at.result("tools/list", door="servers/mail", profile=""))["tools"]) == 2
        assert len((await at.result("tools/list", door="servers/files", profile="files"))["tools"]) == 2
        assert at.asked() == [("files", "tools/list"), ("mail", "tools/list")], "there it is the server's own"


async def test_a_client_is_introduced_to_the_servers_of_its_profile() -> None:
    async with rig() as at:
        for profile, told in (("work", {"files", "mail"}), ("", set(TOOLS))):
            await at.running.gateway.introduction.renew()
            text = (await at.result("initialize", {"protocolVersion": "2025-11-25"}, profile=profile))["instructions"]
            assert {name for name in TOOLS if f"{name} " in text or f"{name}:" in text or f"{name};" in text} == told
        # From the first client on, whatever the moment.
        first = (await at.result("initialize", profile="files"))["instructions"]
        assert "files" in first
        assert "mail" not in first
        assert "mail" not in (await at.result("initialize", door="all", profile="files"))["instructions"]


async def test_changes_are_told_to_those_who_see_them() -> None:
    async with rig() as at:
        services = {name: at.doors.find("", name).service for name in ("", "work", "files")}

        def revisions() -> dict[str, int]:
            return {name: service.revisions.tools for name, service in services.items()}

        before = revisions()
        rung = trio.Event()
        with services["work"].changes.on_set(lambda: rung.set()):
            at.servers["shop"].tools.append(listed("sell")[0])
            await at.running.actors["shop"].address.ask(RefreshServer(server="shop"))
            await at.running.registry.address.ask(AwaitShown(server="shop"))
            after = revisions()
            assert (after["work"], after["files"]) == (before["work"], before["files"])
            assert after[""] > before[""]
            await rung.wait()
            rung = trio.Event()
            at.configure(profiles={**PROFILES, "work": ViewProfile(servers=("shop",))})
            await rung.wait()
            assert revisions()["work"] > after["work"]
            assert revisions()["files"] == after["files"]
        assert await at.paths("*") == {"shop:buy", "shop:sell"}
        assert at.doors.find("", "work").service is services["work"]


async def test_whoever_is_still_there_when_their_profile_goes_sees_nothing_any_more() -> None:
    async with rig() as at:
        service = at.doors.find("", "work").service
        at.configure(profiles={"new": ViewProfile()})
        told = await service.perform(exchange(LEGACY, "resources/list"))
        assert json.loads(told)["resources"] == []
        assert at.doors.find("", "new").service is not service
        at.configure(profiles={**PROFILES})
        assert at.doors.find("", "work").service is not service, "what is gone is not kept"


@pytest.mark.parametrize(
    ("target", "profile", "execute"),
    [
        (b"/mcp", "", ""),
        (b"/mcp?profile=work", "work", ""),
        (b"/ws?a=b&profile=all%20but&c", "all but", ""),
        (b"/mcp?profile=", "", ""),
        (b"/mcp?profile=a&profile=b", "b", ""),
        (b"/mcp?Profile=a", "", ""),
        (b"/mcp?" + b"a=b&" * 1000, "", ""),
        (b"/mcp?profile=%ff", "\ufffd", ""),
        (b"/mcp?execute=by-effect", "", "by-effect"),
        (b"/mcp?execute=by-effect&profile=work", "work", "by-effect"),
    ],
)
def test_what_an_address_says_of_its_door(target: bytes, profile: str, execute: str) -> None:
    assert chosen_by(target) == (profile, execute)


@pytest.mark.parametrize(
    "target", [b"/mcp?profile=\xff", b"/mcp?profile=work" + b"&a=b" * 20, b"/mcp?execute=by-effect" + b"&a=b" * 20]
)
def test_an_address_that_cannot_be_read_is_not_that_of_everything(target: bytes) -> None:
    with pytest.raises(UnknownDoor, match="cannot be read"):
        chosen_by(target)


async def test_people_who_see_the_same_have_one_door_and_what_is_started_for_them_is_there_before() -> None:
    prepared: list[str] = []

    async def prepare(person: Person) -> None:
        prepared.append(person.user)
        await trio.lowlevel.checkpoint()

    async with rig() as at:
        doors = DoorTable(at.running.gateway, "1.0", prepare)
        people = (OPERATOR, Person(user="ana"), Person(user="ben", role="auditor"), Person(user="ana"))
        whole, *theirs = [await doors.find_for(person, "") for person in people]
        assert prepared == ["ana", "ben", "ana"]
        assert {id(door) for door in theirs} == {id(theirs[0])} != {id(whole)}


async def test_doors_of_those_who_came_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "MAX_REALMS", 2)
    async with rig() as at:
        doors, found = DoorTable(at.running.gateway, "1.0"), dict[str, list[Door]]()
        for user in ("ana", "ben", "ana", "cem", "ana", "ben"):
            person = Person(user=user, rights=Rights(user=user))
            found.setdefault(user, []).append(await doors.find_for(person, "", "work"))
        assert [each is found["ana"][0] for each in found["ana"]] == [True] * 3
        assert found["ben"][0] is not found["ben"][1]


class Watches(Plugin[PluginOptions]):
    """Hides nothing; `viewers` are those whom it was asked about."""

    def __init__(self, options: PluginOptions) -> None:
        super().__init__(options)
        self.viewers: set[Viewer] = set()

    async def hide_tool(self, tool: ToolDefinition, viewer: Viewer) -> Rejection | None:
        self.viewers.add(viewer)
        return None


async def test_a_plugin_hears_the_profile_that_somebody_has_and_none_that_there_is_not() -> None:
    async def refuse(person: Person) -> None:
        raise AssertionError(f"nothing is started for {person}")

    entries = [ServerConfig(name=name, command="x") for name in TOOLS]
    async with rig(profile="work", entries=entries) as at:
        plugin, table = Watches(PluginOptions()), at.running.gateway.parts.plugin_table
        table.use([RunningPlugin("p", PluginPackage(Watches, "p", "1"), plugin, {}, table, threads=1)], Settings())
        doors = DoorTable(at.running.gateway, "1.0", refuse)
        await doors.find_for(OPERATOR, "")
        assert {viewer.profile for viewer in plugin.viewers} == {"work"}
        plugin.viewers.clear()
        with pytest.raises(UnknownDoor):
            await doors.find_for(OPERATOR, "", "made up")
        assert {viewer.profile for viewer in plugin.viewers} == {""}


async def test_a_server_that_turns_out_to_have_nothing_of_a_profile_is_not_waited_for() -> None:
    async with rig(also_servers={"late": ["something"]}, undiscovered=["late"]) as at:
        with trio.fail_after(10):
            told = await at.execute("late:nothing", profile="odd")
            assert told["structuredContent"]["error"]["type"] == "not_found"
            one = await at.ask("tools/call", {"name": "nothing"}, door="servers/late", profile="odd")
            assert "nothing of server 'late'" in json.dumps(one)
            assert "error" in await at.ask("tools/list", door="servers/late", profile="odd")
        assert await at.paths("*", "odd") == set()


async def test_status_of_servers_that_are_not_in_it_is_not_told() -> None:
    async with rig() as at:
        at.running.report("shop", State.FAILED, reason="it is broken")
        await at.running.registry.address.ask(AwaitShown(server="shop"))
        await trio.testing.wait_all_tasks_blocked()
        visible = at.doors.find("", "work").service.view.visible  # type: ignore[attr-defined]  # of the gateway
        assert set(visible.statuses) == {"files", "mail"}
        assert visible.statuses is visible.statuses
        assert "broken" not in json.dumps(await at.discover("buy in the shop"))
        assert "broken" in json.dumps(await at.discover("shop:buy", ""))


async def test_the_first_look_at_a_profile_is_taken_in_a_thread_before_anybody_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on_loop: list[ViewProfile] = []
    made: list[ProfileView] = []

    def watched(whole: Catalogue, profile: ViewProfile, before: ProfileView | None) -> ProfileView:
        looks_at_all = before is None or before.profile is not profile
        if looks_at_all and threading.current_thread() is threading.main_thread():
            on_loop.append(profile)
        return view(whole, profile, before)

    async def counted(work: Callable[[], ProfileView]) -> ProfileView:
        made.append(await beside(work))  # whoever waited for it takes it in the same turn
        return made[-1]

    monkeypatch.setattr(visible, "view", watched)
    monkeypatch.setattr(visible, "beside", counted)
    async with rig() as at, trio.open_nursery() as nursery:
        nursery.start_soon(at.doors.run)
        while len(made) < len(PROFILES):  # noqa: ASYNC110 - a thread of the service makes them
            await trio.sleep(0.01)
        assert await at.paths("*") == {"files:read", "mail:read_mail"}
        at.configure(profiles={**PROFILES, "work": ViewProfile(servers=("shop",))})
        while len(made) == len(PROFILES):  # noqa: ASYNC110 - the same
            await trio.sleep(0.01)
        assert await at.paths("*") == {"shop:buy"}
        assert on_loop == []
        nursery.cancel_scope.cancel()
