"""Two tools that a search finds equal: whoever has used one sees it first, where that is configured; nobody else."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from supervisor.host.datadir import DataDir
from tests.fakes.mcp_server import FakeServer, tool
from tests.scenario.client import Client
from tests.scenario.daemon import A, World, world
from tests.supervisor.test_identity_of_daemon import without_time

SERVERS: dict[str, Any] = {"east": A, "west": A}
SETTINGS: dict[str, Any] = {"auth": "tokens", "identity": {"users": {"ana": {}, "ben": {}}}}
QUERY = "tell the time"


def tied(directory: Path, data: DataDir, **settings: Any) -> AbstractAsyncContextManager[World]:
    fakes = {name: FakeServer(tools=[tool("tell_time")]) for name in SERVERS}
    return world(directory, data, SERVERS, fakes, people={"ana": {}, "ben": {}}, **SETTINGS, **settings)


async def found(who: Client) -> str:
    """Return all that a search answers, but for how long it took."""
    answer = await who.send("tools/call", name="discover_mcp_tools", arguments={"query": QUERY})
    return without_time(answer.text)


async def use(who: Client, tool: str) -> None:
    called = await who.executed(tool)
    assert not called.get("isError"), called


async def test_what_one_has_used_is_first_among_equals(tmp_path: Path, data: DataDir) -> None:
    async with tied(tmp_path, data, rank_by_use=True) as at:
        assert await at["ben"].discover(QUERY) == ["east:tell_time", "west:tell_time"]
        await use(at["ben"], "west:tell_time")
        assert await at["ben"].discover(QUERY) == ["west:tell_time", "east:tell_time"]
        for _ in range(2):
            await use(at["ben"], "east:tell_time")
        assert await at["ben"].discover(QUERY) == ["east:tell_time", "west:tell_time"]


async def test_by_default_use_changes_nothing_and_a_reload_is_enough_to_change_that(
    tmp_path: Path, data: DataDir
) -> None:
    async with tied(tmp_path, data) as at:
        before = await found(at["ben"])
        await use(at["ben"], "west:tell_time")
        assert await found(at["ben"]) == before
        await at.edit(SERVERS, rank_by_use=True, **SETTINGS)
        assert await at["ben"].discover(QUERY) == ["west:tell_time", "east:tell_time"]


async def test_what_others_use_is_not_to_be_seen_in_an_order(tmp_path: Path, data: DataDir) -> None:
    async with tied(tmp_path, data, rank_by_use=True) as at:
        before = await found(at["ben"])
        for _ in range(3):
            await use(at["ana"], "west:tell_time")
            await use(at.operator, "west:tell_time")
        assert await found(at["ben"]) == before
        assert await at["ana"].discover(QUERY) == ["west:tell_time", "east:tell_time"]
