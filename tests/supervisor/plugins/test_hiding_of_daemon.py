"""A whole daemon with a plugin that hides tools by who asks: at each door, across reloads, and when it fails."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from supervisor.host.datadir import DataDir
from tests.fakes.failures import failure
from tests.fakes.plugins import install
from tests.scenario.daemon import World, configuration
from tests.supervisor.plugins.test_plugins_of_daemon import SERVERS, SETTINGS, described, plugged, reload

SOURCE = """
from supervisor.plugins.contract import *

class O(PluginOptions, frozen=True, kw_only=True):
    of_members: tuple[str, ...] = ()
    of_team: str = ""
    of_profile: str = ""
    fails: bool = False

class Shy(Plugin[O]):
    options_type = O
    guards = True

    def hide_tool(self, tool, viewer):
        if self.options.fails:
            raise ValueError("secret")
        if viewer.role == "member" and tool.name in self.options.of_members:
            return Rejection("not for members")
        if self.options.of_team in viewer.teams or (viewer.profile and viewer.profile == self.options.of_profile):
            return Rejection("only what is safe") if tool.safety != "safe" else None
"""
IDENTITY = {"users": {"ana": {"role": "admin"}, "ben": {}, "cem": {}}, "teams": {"ops": {"members": ["cem"]}}}
DOORS = {"/mcp/servers/a": "", "/mcp/all": "a__"}


@pytest.fixture(autouse=True)
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    install(tmp_path / "site", "plug_hiding", SOURCE, {"shy": "Shy"})
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    yield
    sys.modules.pop("plug_hiding", None)


def people(directory: Path, data: DataDir, **shy: Any) -> AbstractAsyncContextManager[World]:
    admitted = {"ana": {"role": "admin"}, "ben": {"role": "member"}, "cem": {"role": "member"}}
    return plugged(directory, data, {"people": admitted, "auth": "tokens", "identity": IDENTITY}, shy=shy)


async def test_a_tool_is_as_if_it_were_not_there_for_those_whom_a_plugin_hides_it_from(
    tmp_path: Path, data: DataDir
) -> None:
    async with people(tmp_path, data, of_members=["hang", "none"]) as at:
        for who, sees in (("ana", {"echo", "hang", "refuse"}), ("ben", {"echo", "refuse"})):
            for door, prefix in DOORS.items():
                listed = (await at[who].at(door).rpc("tools/list"))["result"]["tools"]
                names = {each["name"] for each in listed if each["name"].startswith(prefix)}
                assert {name.removeprefix(prefix) for name in names if "b__" not in name} == sees
            assert {*await at[who].discover("a:*")} == {f"a:{name}" for name in sees}
        for door, prefix in DOORS.items():
            said = {}
            for name in ("hang", "none"):
                said[name] = json.dumps(await at["ben"].at(door).call(f"{prefix}{name}")).replace("hang", "none")
            assert said["hang"] == said["none"]
            assert "not for members" not in said["hang"]
        hidden, unknown = [await at["ben"].executed(f"a:{name}") for name in ("hang", "none")]
        assert json.dumps(hidden).replace("hang", "none") == json.dumps(unknown)
        assert (await at["ana"].executed("a:echo", n=1))["structuredContent"]


async def test_a_plugin_hides_by_team_and_by_what_the_tool_is_taken_for(tmp_path: Path, data: DataDir) -> None:
    async with people(tmp_path, data, of_team="ops") as at:
        assert await at["cem"].tools() == []
        assert len(await at["ben"].tools()) == 6
        mine = (await at["cem"].page("/api/me"))["servers"]
        assert [(row["server"], row["tools"]) for row in mine] == [("a", 0), ("b", 0)]


async def test_where_nobody_has_to_say_who_they_are_a_plugin_hides_by_profile(tmp_path: Path, data: DataDir) -> None:
    async with plugged(tmp_path, data) as at:
        await at.edit(SERVERS, plugins={"shy": {"of_profile": "small"}}, profiles={"small": {}}, **SETTINGS)
        assert await described(at, "a?profile=small") == {}
        assert (await described(at)).keys() == {"echo", "hang", "refuse"}
        assert (await at.executed("a:echo", n=1))["structuredContent"] == {"n": 1}


async def test_nobody_sees_a_tool_that_the_plugin_could_not_judge_until_it_can(tmp_path: Path, data: DataDir) -> None:
    async with plugged(tmp_path, data, shy={"fails": True}) as at:
        assert await described(at) == {}
        assert failure(await at.execute("a:echo"))["data"]["type"] == "not_found"
        assert "raised ValueError" in (await at.status())["plugins"][0]["failures"]["hide_tool"]
        await reload(at, shy={})
        assert (await described(at)).keys() == {"echo", "hang", "refuse"}
        await reload(at, shy={"fails": True})
        assert await described(at) == {}
        await reload(at)
        assert (await described(at)).keys() == {"echo", "hang", "refuse"}


def test_a_plugin_that_hides_and_does_not_guard_is_refused(tmp_path: Path) -> None:
    install(tmp_path / "site", "plug_open", SOURCE.replace("guards = True", ""), {"open": "Shy"})
    with pytest.raises(Exception, match="hides tools, and does not guard: it needs guards = True"):
        configuration(tmp_path, SERVERS, plugins={"open": {}})
