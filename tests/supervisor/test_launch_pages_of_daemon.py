"""What pages show of servers that are started by the values of each user: one's own tools, and for whom they run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from actors.launch import server_of
from supervisor.host.datadir import DataDir, open_data_dir
from tests.fakes.page_figures import Element, read
from tests.supervisor.test_identity_of_daemon import Doorway
from tests.supervisor.test_launches_of_daemon import IDENTITY, Processes, until_seen
from tests.supervisor.test_launches_of_daemon import doorway as launches_doorway

USERS = IDENTITY["users"]
ROLES: dict[str, str] = {"ana": "admin", "ben": "auditor", "cem": "auditor", "dan": "member"}
OF_ROLES: dict[str, Any] = {**IDENTITY, "users": {user: {**USERS[user], "role": ROLES[user]} for user in USERS}}
OF_ANA, OF_BEN = "as_canary_ana_1_beta", "as_canary_ben_1_beta"
"""A tool of the launch of each; the real server would not say their secrets."""


@pytest.fixture
def data(tmp_path: Path) -> Any:
    with open_data_dir(tmp_path / "data", {}) as directory:
        yield directory


@asynccontextmanager
async def doorway(directory: Path, data: DataDir) -> AsyncIterator[Doorway]:
    async with launches_doorway(directory, data, Processes(), OF_ROLES) as at:
        for user, role in ROLES.items():
            await at.admit(user, role=role)
        yield at


async def tools(at: Doorway, who: str, **query: str) -> dict[str, Any]:
    answer = await at.ask(who, "GET", "/api/tools", params={"limit": "500", **query})
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    assert told["total"] == len(told["tools"]) == sum(told["by_safety"].values())
    return {row["path"]: row for row in told["tools"]}


async def page(at: Doorway, who: str, path: str) -> Element:
    answer = await at.ask(who, "GET", path)
    assert answer.status_code == 200, (path, answer.text)
    return read(answer.text)


async def launch(at: Doorway, user: str, server: str) -> str:
    rows = (await at.ask("operator", "GET", "/api/status")).json()["servers"]
    (name,) = (row["server"] for row in rows if user in row.get("users", ()) and server_of(row["server"]) == server)
    return str(name)


def section(shown: Element, name: str) -> Element:
    return shown.one("section", id=name)


async def test_whoever_asks_has_the_tools_of_their_own_launches_and_of_no_others(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data) as at:
        for who in ("ana", "ben"):
            await until_seen(at, who, "forge__use_forge")
        await until_seen(at, "ben", "look__as___mode_dark")
        common = {"clock:as_anybody", "clock:use_clock"}
        plain, dark = {"look:as___mode_plain", "look:use_look"}, {"look:as___mode_dark", "look:use_look"}
        assert (await tools(at, "operator")).keys() == common | plain, "what all share"
        assert (await tools(at, "cem")).keys() == common | dark, "as he has a value"
        assert (await tools(at, "ana")).keys() == common | plain | {f"forge:{OF_ANA}", "forge:use_forge"}
        assert (await tools(at, "ben")).keys() == common | dark | {f"forge:{OF_BEN}", "forge:use_forge"}
        assert (await tools(at, "ben", servers="forge")).keys() == {f"forge:{OF_BEN}", "forge:use_forge"}
        assert await tools(at, "cem", servers="forge") == {}
        assert (await tools(at, "ana"))["forge:use_forge"]["calls"] == 0
        await at.call("ana", "execute_mcp_tool", tool_path="forge:use_forge", arguments={})
        assert (await tools(at, "ana"))["forge:use_forge"]["calls"] == 1
        for who in ("ana", "ben", "operator"):
            named = await at.ask(who, "GET", "/api/tools", params={"servers": await launch(at, "ana", "forge")})
            assert (named.status_code, "did you mean 'forge'?" in named.text) == (400, True), "none would be an answer"
        assert (await at.ask("dan", "GET", "/api/tools")).status_code == 404


async def test_the_page_of_ones_own_tool_is_there_and_it_can_be_tried(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data) as at:
        for who in ("ana", "ben"):
            await until_seen(at, who, "forge__use_forge")
        listed = section(await page(at, "ana", "/ui/tools?servers=forge"), "tools")
        assert listed.one("h2").text == "2 tools"
        links = [each.attributes["href"] for each in listed.one("tbody").all("a")]
        assert links == [f"/ui/tool?path=forge%3A{OF_ANA}", "/ui/tool?path=forge%3Ause_forge"]
        shown = await page(at, "ana", links[0])
        assert section(shown, "try").one("button").text == "Call"
        assert shown.one("h1").text == OF_ANA
        form = {"token": section(shown, "try").one("input", name="token").attributes["value"]}
        tried = await at.ask("ana", "POST", links[0], data=form)
        assert tried.status_code == 200
        assert section(read(tried.text), "try").one("h3").text.startswith("Answer, ")
        for who in ("ben", "cem", "operator"):
            assert (await at.ask(who, "GET", links[0])).status_code == 404
