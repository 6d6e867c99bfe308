"""Two tools that a search finds equal: whoever has used one sees it first, where that is configured; nobody else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from supervisor.host.datadir import DataDir
from tests.scenario.daemon import World
from tests.supervisor import test_identity_of_daemon
from tests.supervisor.test_identity_of_daemon import doorway, without_time

SERVERS: dict[str, Any] = {"east": {"command": "x"}, "west": {"command": "x"}}
QUERY = {"query": "tell the time"}


@pytest.fixture(autouse=True)
def same_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_identity_of_daemon, "TOOLS", {server: ["tell_time"] for server in SERVERS})


async def paths(at: World, who: str) -> list[str]:
    found = await at[who].result("discover_mcp_tools", **QUERY)
    return [row["tool_path"] for row in found["structuredContent"]["tools"]]


async def use(at: World, who: str, tool: str) -> None:
    called = await at[who].result("execute_mcp_tool", tool_path=tool, arguments={})
    assert not called.get("isError"), called


async def test_what_one_has_used_is_first_among_equals(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, SERVERS, rank_by_use=True) as at:
        await at.admit("ben")
        assert await paths(at, "ben") == ["east:tell_time", "west:tell_time"]
        await use(at, "ben", "west:tell_time")
        assert await paths(at, "ben") == ["west:tell_time", "east:tell_time"]
        for _ in range(2):
            await use(at, "ben", "east:tell_time")
        assert await paths(at, "ben") == ["east:tell_time", "west:tell_time"]


async def test_by_default_use_changes_nothing_and_a_reload_is_enough_to_change_that(
    tmp_path: Path, data: DataDir
) -> None:
    async with doorway(tmp_path, data, SERVERS) as at:
        await at.admit("ben")
        before = await at["ben"].send("tools/call", name="discover_mcp_tools", arguments=QUERY)
        await use(at, "ben", "west:tell_time")
        after = await at["ben"].send("tools/call", name="discover_mcp_tools", arguments=QUERY)
        assert without_time(after.text) == without_time(before.text)
        file = tmp_path / "mcp.json"
        config = json.loads(file.read_text())
        config["supervisor"]["rank_by_use"] = True
        file.write_text(json.dumps(config))
        assert (await at.operator.ask("POST", "/api/reload")).status_code == 200
        assert await paths(at, "ben") == ["west:tell_time", "east:tell_time"]


async def test_what_others_use_is_not_to_be_seen_in_an_order(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, SERVERS, rank_by_use=True) as at:
        for user in ("ana", "ben"):
            await at.admit(user)
        before = await at["ben"].send("tools/call", name="discover_mcp_tools", arguments=QUERY)
        for _ in range(3):
            await use(at, "ana", "west:tell_time")
            await use(at, "operator", "west:tell_time")
        after = await at["ben"].send("tools/call", name="discover_mcp_tools", arguments=QUERY)
        assert without_time(after.text) == without_time(before.text)
        assert await paths(at, "ana") == ["west:tell_time", "east:tell_time"]
