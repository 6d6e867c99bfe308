"""What pages show of servers that are started by the values of each user: one's own tools, and for whom they run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from supervisor.host.datadir import DataDir
from tests.fakes.page_figures import Element, figures_of, read
from tests.scenario.daemon import World
from tests.supervisor.test_launches_of_daemon import IDENTITY, Processes
from tests.supervisor.test_launches_of_daemon import doorway as launches_doorway

USERS = IDENTITY["users"]
ROLES: dict[str, str] = {"ana": "admin", "ben": "auditor", "cem": "auditor", "dan": "member"}
OF_ROLES: dict[str, Any] = {**IDENTITY, "users": {user: {**USERS[user], "role": ROLES[user]} for user in USERS}}
OF_ANA, OF_BEN = "as_canary_ana_1_beta", "as_canary_ben_1_beta"
"""A tool of the launch of each; the real server would not say their secrets."""


@asynccontextmanager
async def doorway(directory: Path, data: DataDir, *users: str) -> AsyncIterator[World]:
    """Run a daemon until the launches of the forge are ready that these users have."""
    people = {user: {"role": role} for user, role in ROLES.items()}
    async with launches_doorway(directory, data, Processes(), OF_ROLES, people=people) as at:
        for user in users:
            await at[user].until_tool("forge__use_forge")
        yield at


async def tools(at: World, who: str, **query: str) -> dict[str, Any]:
    told = await at[who].page("/api/tools", limit=500, **query)
    assert told["total"] == len(told["tools"]) == sum(told["by_safety"].values())
    return {row["path"]: row for row in told["tools"]}


async def page(at: World, who: str, path: str) -> Element:
    return read(await at[who].text(path))


async def launch(at: World, user: str, server: str) -> str:
    (name,) = (row["server"] for row in await at.launches(server) if user in row["users"])
    return str(name)


def section(shown: Element, name: str) -> Element:
    return shown.one("section", id=name)


async def test_whoever_asks_has_the_tools_of_their_own_launches_and_of_no_others(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, "ana", "ben") as at:
        await at["ben"].until_tool("look__as___mode_dark")
        common = {"clock:as_anybody", "clock:use_clock"}
        plain, dark = {"look:as___mode_plain", "look:use_look"}, {"look:as___mode_dark", "look:use_look"}
        assert (await tools(at, "operator")).keys() == common | plain, "what all share"
        assert (await tools(at, "cem")).keys() == common | dark, "as he has a value"
        assert (await tools(at, "ana")).keys() == common | plain | {f"forge:{OF_ANA}", "forge:use_forge"}
        assert (await tools(at, "ben")).keys() == common | dark | {f"forge:{OF_BEN}", "forge:use_forge"}
        assert (await tools(at, "ben", servers="forge")).keys() == {f"forge:{OF_BEN}", "forge:use_forge"}
        assert await tools(at, "cem", servers="forge") == {}
        assert (await tools(at, "ana"))["forge:use_forge"]["calls"] == 0
        await at["ana"].executed("forge:use_forge")
        assert (await tools(at, "ana"))["forge:use_forge"]["calls"] == 1
        for who in ("ana", "ben", "operator"):
            named = await at[who].ask("GET", "/api/tools", params={"servers": await launch(at, "ana", "forge")})
            assert (named.status_code, "did you mean 'forge'?" in named.text) == (400, True), "none would be an answer"
        assert (await at["dan"].ask("GET", "/api/tools")).status_code == 404


async def test_the_page_of_ones_own_tool_is_there_and_it_can_be_tried(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, "ana", "ben") as at:
        listed = section(await page(at, "ana", "/ui/tools?servers=forge"), "tools")
        assert listed.one("h2").text == "2 tools"
        links = [each.attributes["href"] for each in listed.one("tbody").all("a")]
        assert links == [f"/ui/tool?path=forge%3A{OF_ANA}", "/ui/tool?path=forge%3Ause_forge"]
        shown = await page(at, "ana", links[0])
        assert section(shown, "try").one("button").text == "Call"
        assert shown.one("h1").text == OF_ANA
        form = {"token": section(shown, "try").one("input", name="token").attributes["value"]}
        tried = await at["ana"].ask("POST", links[0], data=form)
        assert tried.status_code == 200
        assert section(read(tried.text), "try").one("h3").text.startswith("Answer, ")
        for who in ("ben", "cem", "operator"):
            assert (await at[who].ask("GET", links[0])).status_code == 404


async def test_the_page_of_a_launch_says_for_whom_it_is_and_what_it_offers(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, "ana", "ben") as at:
        await at["ana"].executed("forge:use_forge")
        of_ana, of_ben = await launch(at, "ana", "forge"), await launch(at, "ben", "forge")
        own = await page(at, "ana", f"/ui/servers/{of_ana}")
        assert own.one("h1").text == "forge, for ana"
        assert own.one("head").one("title").text == "forge, for ana · mcpvisor"
        tiles = {each.children[0].text: each.children[1] for each in own.one("dl").children}
        assert tiles["Tools"].text == str(len(section(own, "tools").one("tbody").children)) == "2"
        assert tiles["Tools"].one("a").attributes["href"] == "#tools"
        assert tiles["Calls, last hour"].text == "1 0 failed, 0 not sent"
        assert len(section(own, "calls").one("tbody").children) == 1
        orders = [each.text for each in section(own, "state").all("button")]
        assert orders == ["Restart", "Sleep", "Refresh"], "a launch is not switched off, but its server"
        foreign = await page(at, "ana", f"/ui/servers/{of_ben}")
        assert foreign.one("h1").text == "forge, for ben"
        assert sorted(each.text for each in section(foreign, "tools").all("code")) == [OF_BEN, "use_forge"]
        assert not section(foreign, "tools").all("a")
        tiles = {each.children[0].text: each.children[1] for each in foreign.one("dl").children}
        assert (tiles["Tools"].text, tiles["Calls, last hour"].text) == ("2", "0 0 failed, 0 not sent")
        assert "%" not in tiles["Tokens"].text, "it has no part of what all share"
        row = await at["cem"].row(of_ben)
        assert row["tool_names"] == ["use_forge", OF_BEN]
        assert "tool_names" not in await at["cem"].row("clock")
        names = [each.text for each in (await page(at, "ana", "/ui/servers")).one("tbody").all("a")]
        assert {"forge", "forge, for ana", "forge, for ben"} <= {*names}


async def test_the_page_of_a_server_says_for_whom_it_runs_and_whose_values_are_missing(
    tmp_path: Path, data: DataDir
) -> None:
    async with doorway(tmp_path, data) as at:
        before = await page(at, "ana", "/ui/servers/forge")
        assert "Missing: TOKEN of cem, dan" in section(before, "people").text
        for who in ("ana", "ben"):
            await at[who].until_tool("forge__use_forge")
        shown = await page(at, "ana", "/ui/servers/forge")
        assert shown.one("h1").text == "forge"
        assert section(shown, "state").one("p").text.startswith("▲ per user")
        assert [each.text for each in section(shown, "state").all("button")] == ["Disable"]
        assert not shown.all("blockquote")
        people = section(shown, "people")
        links = {each.text: each.attributes["href"] for each in people.all("a")}
        assert [*links] == ["ana", "ben"]
        assert links == {who: f"/ui/servers/{await launch(at, who, 'forge')}" for who in ("ana", "ben")}
        assert "not shown" not in people.text
        form = people.one("form")
        assert [each.attributes["value"] for each in form.all("option")] == [
            "user:cem",
            "user:dan",
            "user:ana",
            "user:ben",
        ]
        fields = {each.attributes["name"]: each.attributes.get("value", "") for each in form.all("input")}
        given = await at["ana"].ask("POST", "/ui/values", data={**fields, "owner": "user:cem", "value": "canary-cem-1"})
        assert given.status_code == 200, given.text
        shown = await page(at, "ana", "/ui/servers/forge")
        assert "Missing: TOKEN of dan" in section(shown, "people").text
        assert "These are the tools of your own launch." in section(shown, "tools").text
        assert len(section(shown, "tools").one("tbody").children) == 2


async def test_who_may_not_give_for_others_is_asked_for_what_is_their_own(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, "ben") as at:
        people = section(await page(at, "cem", "/ui/servers/forge"), "people")
        assert "Missing: your TOKEN" in people.text
        assert "dan" not in people.text, "an auditor is not told who lacks what"
        assert [each.text for each in people.all("a")] == ["ben"]
        assert not people.all("select")
        assert "Each launch has its own." in section(await page(at, "cem", "/ui/servers/forge"), "tools").text
        assert not section(await page(at, "ben", "/ui/servers/forge"), "people").all("form")


async def test_launches_that_are_not_listed_are_counted(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("supervisor.front.ui.pages.MAX_NAMES", 1)
    async with doorway(tmp_path, data, "ana", "ben") as at:
        people = section(await page(at, "ana", "/ui/servers/forge"), "people")
        assert len(people.all("a")) == 1
        assert [each.text for each in figures_of(people) if each.place.endswith("p")] == [
            ". 1 more launch is not shown: one that sleeps is here again once it is called."
        ]


async def test_a_server_that_some_share_and_others_have_by_their_values_says_both(
    tmp_path: Path, data: DataDir
) -> None:
    async with doorway(tmp_path, data) as at:
        for who in ("ben", "cem"):
            await at[who].until_tool("look__as___mode_dark")
        shown = await page(at, "ana", "/ui/servers/look")
        people = section(shown, "people").text
        assert people.startswith("For whom It is started for some by their values: ben, cem ")
        assert "Wake" in section(shown, "state").text or "Sleep" in section(shown, "state").text
        rows = section(shown, "tools").one("tbody").children
        assert [row.children[0].text for row in rows] == ["as___mode_plain", "use_look"], "those that all share"
        assert "your own" not in section(shown, "tools").text
        of_ben = section(await page(at, "ben", "/ui/servers/look"), "tools")
        assert [row.children[0].text for row in of_ben.one("tbody").children] == ["as___mode_dark", "use_look"]
        assert "These are the tools of your own launch." in of_ben.text


async def test_a_member_is_told_what_waits_for_them_and_what_only_an_admin_gives(tmp_path: Path, data: DataDir) -> None:
    of_team = {"command": "x", "env": {"HOST": "${team:HOST}"}}
    servers = {"forge": {"command": "x", "env": {"TOKEN": "${user:TOKEN}"}}, "wiki": of_team, "clock": {"command": "x"}}
    identity: dict[str, Any] = {"users": {"ben": {"values": {"forge": {"TOKEN": "canary-ben-1"}}}, "dan": {}}}
    identity["teams"] = {"core": {"members": ["ben", "dan"]}}
    async with launches_doorway(tmp_path, data, Processes(), identity, servers) as at:
        of_ben, of_dan = await page(at, "ben", "/ui"), await page(at, "dan", "/ui")
        assert of_ben.one("h1").text == "1 of 3 servers waits for a value that an admin gives."
        assert of_dan.one("h1").text == "1 of 3 servers waits for you."
        for shown in (of_ben, of_dan):
            told = section(shown, "awaits")
            assert told.one("li").text == "wiki needs HOST of your team, which an admin gives"
            assert not told.all("form")
        assert [each.attributes.get("id") for each in of_ben.all("section")][:1] == ["awaits"], "nothing needs ben"
        assert section(of_dan, "needs").one("button").text == "Give"
