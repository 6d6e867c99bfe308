"""Realms follow the catalogue and the configuration, and none is kept for rights that nobody has any more."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
from msgspec.structs import replace

from actors.catalogue.snapshot import Catalogue
from actors.catalogue.views import RealmView, narrow
from actors.kit import Latest
from supervisor.config import ServerConfig, Settings
from supervisor.config.given import RestingServer
from supervisor.identity.people import People, Rights, Team, Viewer
from supervisor.plugins.contract import Plugin, PluginOptions, Rejection, ToolDefinition
from supervisor.plugins.hooks import PluginTable
from supervisor.plugins.loading import PluginPackage
from supervisor.plugins.running import RunningPlugin
from supervisor.servers.deployment import Deployment
from supervisor.service import realms
from supervisor.service.realms import Realms, first_revision, servers_by
from tests.fakes.deployments import deployment
from tests.fakes.tool_catalogue import CATALOGUE, FILES, entry

PEOPLE = People(
    teams={
        "data": Team(members=("ana", "ben"), servers=("shop",)),
        "web": Team(members=("ana",), servers=("gone",)),
        "idle": Team(members=("cem",)),
    }
)
SERVERS = (
    ServerConfig(name="files", command="files"),
    ServerConfig(name="shop", command="shop"),
    ServerConfig(name="gone", command="gone"),
    ServerConfig(name="diary", command="diary", users=("cem",)),
)


def rights(user: str, team: str = "") -> Rights:
    found = PEOPLE.person(user, team=team, named=("cem",))
    assert found is not None
    return found.rights


class Rig:
    def __init__(self) -> None:
        self.whole = Latest(CATALOGUE)
        self.deployment: Latest[Deployment] = deployment(*SERVERS, identity=PEOPLE)
        self.plugins = PluginTable()
        self.realms = Realms(self.whole, self.deployment, plugins=self.plugins)

    def configure(self, people: People) -> None:
        now = self.deployment.value
        self.deployment.set(replace(now, settings=replace(now.settings, identity=people)))

    async def seen(self, user: str, team: str = "") -> list[str]:
        return sorted((await self.realms.of(rights(user, team))).catalogue.value.entries)


@asynccontextmanager
async def rig() -> AsyncIterator[Rig]:
    made = Rig()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(made.realms.run)
        yield made
        nursery.cancel_scope.cancel()


async def test_each_sees_what_is_everybodys_and_their_own() -> None:
    async with rig() as made:
        assert await made.seen("ana") == ["files", "gone", "shop"]
        assert await made.seen("ana", "web") == ["files", "gone"]
        assert await made.seen("ben") == ["files", "shop"]
        assert await made.seen("cem") == await made.seen("dan") == ["files"]
        assert (await made.realms.of(rights("cem"))).servers == {"files", "diary"}


async def test_people_with_the_same_rights_share_a_realm_whatever_teams_without_servers_they_are_in() -> None:
    async with rig() as made:
        assert await made.realms.of(rights("ben")) is await made.realms.of(rights("ana", "data"))
        assert rights("eve") == Rights()
        assert rights("cem") == Rights(user="cem")


@pytest.mark.case("I06")
async def test_a_realm_is_told_of_its_own_servers_alone_while_nobody_asks() -> None:
    async with rig() as made:
        realm = await made.realms.of(rights("ben"))
        version = realm.catalogue.version
        grown = entry("gone", {"name": "haunt"})
        made.whole.set(replace(made.whole.value, entries={**made.whole.value.entries, "gone": grown}))
        await trio.testing.wait_all_tasks_blocked()
        assert realm.catalogue.version == version
        less = entry("files", {"name": "read_file"})
        made.whole.set(replace(made.whole.value, entries={**made.whole.value.entries, "files": less}))
        assert await realm.catalogue.wait_newer(version) == version + 1
        assert [*realm.catalogue.value.entries["files"].tools] == ["read_file"]


class Hides(Plugin[PluginOptions]):
    """Hides what begins with `new`, and fails at what is `odd`. `asked` are the tools that it was asked about."""

    guards = True

    def __init__(self, options: PluginOptions) -> None:
        super().__init__(options)
        self.asked: list[str] = []

    async def hide_tool(self, tool: ToolDefinition, viewer: Viewer) -> Rejection | None:
        self.asked.append(tool.name)
        if tool.name == "odd" and self.asked.count("odd") == 1:
            raise ValueError
        return Rejection("not yet") if tool.name.startswith("new") else None


async def test_a_tool_is_judged_once_before_it_is_seen_and_again_where_that_failed(
    mock_clock: trio.testing.MockClock,
) -> None:
    async with rig() as made:
        hides = Hides(PluginOptions())
        table = made.plugins
        package = PluginPackage(Hides, "hides", "1")
        table.use([RunningPlugin("hides", package, hides, {}, table, threads=1)], Settings())
        realm = await made.realms.of(replace(rights("ben"), viewer=Viewer(user="ben")))
        whole, hides.asked = made.whole.value, []
        listed = [{"name": name} for name in ("newest", "old", "odd")]
        made.whole.set(replace(whole, entries={**whole.entries, "files": entry("files", *listed)}))
        await realm.catalogue.wait_newer(realm.catalogue.version)
        assert (sorted(hides.asked), [*realm.catalogue.value.entries["files"].tools]) == (
            ["newest", "odd", "old"],
            ["old"],
        )
        why = realm.catalogue.value.entries["files"].hidden_tools
        assert why["newest"] == "hidden by plugin hides: not yet"
        assert why["odd"].startswith("hidden by plugin hides: it guards this, and failed (hide_tool raised ValueError")
        mock_clock.jump(60)
        assert await made.realms.of(realm.rights) is realm
        assert [*realm.catalogue.value.entries["files"].tools] == ["old", "odd"]
        count = len(hides.asked)
        await made.realms.of(realm.rights)
        assert len(hides.asked) == count


async def test_who_came_before_there_was_a_plugin_that_hides_sees_nothing_until_they_come_again() -> None:
    async with rig() as made:
        realm = await made.realms.of(rights("ben"))
        kept, package = made.deployment.value, PluginPackage(Hides, "hides", "1")
        hides = RunningPlugin("hides", package, Hides(PluginOptions()), {}, made.plugins, threads=1)
        made.plugins.use([hides], Settings())
        made.deployment.set(replace(kept))
        await realm.catalogue.wait_newer(realm.catalogue.version)
        assert [len(each.tools) for each in realm.catalogue.value.entries.values()] == [0, 0]
        again = await made.realms.of(replace(realm.rights, viewer=Viewer(user="ben")))
        assert all(each.tools for each in again.catalogue.value.entries.values())


@pytest.mark.case("I17")
async def test_a_realm_changes_with_the_configuration_while_nobody_asks() -> None:
    async with rig() as made:
        realm = await made.realms.of(rights("ben"))
        before = realm.catalogue.value.revision
        web, data = PEOPLE.teams["web"], replace(PEOPLE.teams["data"], servers=("gone",))
        made.configure(replace(PEOPLE, teams={"data": data, "web": replace(web, servers=("shop",))}))
        await realm.catalogue.wait_newer(realm.catalogue.version)
        assert sorted(realm.catalogue.value.entries) == ["files", "gone"]
        assert realm.catalogue.value.revision > before
        assert await made.realms.of(rights("ben")) is realm


async def test_a_realm_is_kept_up_while_it_is_held_and_let_go_then() -> None:
    async with rig() as made:
        held = [await made.realms.of(rights(user)) for user in ("ana", "ben", "cem")]
        assert (await made.realms.of(rights("cem"))).servers == {"files", "diary"}
        assert len(made.realms) == 3
        version = held[2].catalogue.version
        made.deployment.set(replace(made.deployment.value, users={"diary": ("dan",)}))
        await held[2].catalogue.wait_newer(version)
        await trio.testing.wait_all_tasks_blocked()
        assert held[2].servers == {"files"}, "who holds it has lost what was lost"
        held.clear()
        gc.collect()
        assert len(made.realms) == 0


async def test_a_realm_that_was_made_of_an_older_catalogue_is_followed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async with rig() as made:
        await trio.testing.wait_all_tasks_blocked()

        def slow(whole: Catalogue, *rest: Any) -> RealmView:
            if whole is CATALOGUE:
                trio.from_thread.run_sync(made.whole.set, replace(CATALOGUE, entries={"files": FILES}))
                trio.from_thread.run(trio.testing.wait_all_tasks_blocked)
            return narrow(whole, *rest)

        monkeypatch.setattr(realms, "narrow", slow)
        assert await made.seen("ana") == ["files"]


async def test_only_those_searched_last_keep_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(realms, "MAX_JOINED", 1)
    async with rig() as made:
        one, other = await made.realms.of(rights("ana")), await made.realms.of(rights("ben"))
        await one.join()
        await other.join()
        assert not one.view.joined
        assert other.view.joined
        made.whole.set(replace(CATALOGUE, entries={"files": entry("files", {"name": "read_file"})}))
        await trio.testing.wait_all_tasks_blocked()
        assert not one.view.joined
        assert other.view.joined
        await one.join()
        assert one.view.joined


async def test_realms_begin_their_revisions_elsewhere() -> None:
    all_rights = {rights(*each) for each in (("ana",), ("ana", "web"), ("ben",), ("cem",), ("dan",))}
    assert len({*map(first_revision, all_rights)}) == len(all_rights) == 5
    async with rig() as made:
        one, other = await made.realms.of(rights("ana")), await made.realms.of(rights("ben"))
        assert one.catalogue.value.revisions != other.catalogue.value.revisions


def test_a_server_that_cannot_be_read_is_for_its_teams_alone() -> None:
    """Whom its own entry is for cannot be read either."""
    broken = tuple(RestingServer(name=name, reason="no command") for name in ("gone", "vault"))
    now = replace(deployment(*SERVERS[:2], identity=PEOPLE).value, resting=broken)
    assert servers_by(Rights(), now) == {"files"}
    assert servers_by(Rights(frozenset({"web"})), now) == {"files", "gone"}
