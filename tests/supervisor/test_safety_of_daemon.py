"""Levels of safety at every door of a daemon: what is not exposed is not there, and cannot be called by guessing."""

from __future__ import annotations

import json
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import trio

from supervisor.host.datadir import DataDir
from tests.fakes.whole_server import WholeServer
from tests.scenario.daemon import A, World, world

TOOLS: list[dict[str, Any]] = [
    {"name": "read_note", "description": "Reads a note.", "inputSchema": {"type": "object"}},
    {"name": "write_note", "description": "Writes a note.", "inputSchema": {"type": "object"}},
    {"name": "erase_notes", "description": "Erases all notes.", "inputSchema": {"type": "object"}},
]
NAMES = {"/mcp/servers/one": "{}", "/mcp/all": "one__{}", "/mcp": "one:{}"}


def leveled(
    directory: Path, data: DataDir, entry: dict[str, Any] | None = None, **settings: Any
) -> AbstractAsyncContextManager[World]:
    return world(directory, data, {"one": {**A, **(entry or {})}}, {"one": WholeServer(tools=TOOLS)}, **settings)


async def call(at: World, door: str, tool: str) -> str:
    return json.dumps(await at.at(door).call(NAMES[door].format(tool)))


async def found(at: World, query: str, **more: Any) -> dict[str, Any]:
    """The tools of one discover, and what each row says of a confirmation."""
    return {row["tool_path"]: row.get("requires_confirmation") for row in await at.search(query, **more)}


async def test_what_is_above_the_level_is_in_no_list_and_runs_at_no_door(tmp_path: Path, data: DataDir) -> None:
    async with leveled(tmp_path, data, expose="moderate") as at:
        server = at.fakes["one"]
        listed = {
            door: [tool["name"] for tool in (await at.at(door).rpc("tools/list"))["result"]["tools"]]
            for door in ("/mcp/servers/one", "/mcp/all")
        }
        assert listed == {
            "/mcp/servers/one": ["read_note", "write_note"],
            "/mcp/all": ["one__read_note", "one__write_note"],
        }
        for query in ("*", "erase all notes", "one:erase_notes"):
            assert "one:erase_notes" not in await at.discover(query)
        for door in NAMES:
            assert "setting 'expose'" in await call(at, door, "erase_notes"), door
        assert "has no tool" in await call(at, "/mcp/servers/one", "a_tool_that_it_never_listed")
        assert "tools/call" not in server.methods()
        rows = (await at.page("/api/tools"))["tools"]
        assert {row["name"]: row["exposed"] for row in rows} == {
            "read_note": True,
            "write_note": True,
            "erase_notes": False,
        }
        assert "content" in await call(at, "/mcp", "write_note")
        assert server.methods().count("tools/call") == 1


async def test_a_level_that_changes_takes_effect_at_once_and_no_server_notices(tmp_path: Path, data: DataDir) -> None:
    names = [tool["name"] for tool in TOOLS]

    async def refused() -> list[str]:
        return [name for name in names if "'expose'" in await call(at, "/mcp/all", name)]

    async with leveled(tmp_path, data) as at:
        for level, allowed in (("moderate", 2), ("safe", 1), ("dangerous", 3)):
            at.write({"one": A}, expose=level)
            assert (await at.reload())["outcome"] == "applied"
            assert {*names[allowed:]} <= {*await refused()}, "from that moment on, whatever is listed still"
            while len(await at.tools()) != allowed:
                await trio.lowlevel.checkpoint()
            assert await refused() == names[allowed:]
        assert at.fakes["one"].starts == 1


async def test_a_name_that_an_operator_gave_a_tool_makes_it_neither_safer_nor_allowed(
    tmp_path: Path, data: DataDir
) -> None:
    entry = {
        "confirm_except": ["write_*"],
        "tools": {"rename": {"erase_notes": "read_all", "write_note": "jot"}, "describe": {"erase_notes": "Reads."}},
    }
    async with leveled(tmp_path, data, entry, confirm="moderate") as at:
        server = at.fakes["one"]
        for door in NAMES:
            assert "runs only after its user has said yes" in await call(at, door, "read_all"), door
            assert '"content"' in await call(at, door, "jot")
        assert await found(at, "one:*") == {"one:jot": None, "one:read_all": True, "one:read_note": None}
        assert server.methods().count("tools/call") == len(NAMES)
    async with leveled(tmp_path, data, entry, expose="moderate") as at:
        for door in NAMES:
            assert "setting 'expose'" in await call(at, door, "read_all"), door


@pytest.mark.case("X04")
async def test_one_setting_makes_dangerous_tools_ask_for_a_yes(tmp_path: Path, data: DataDir) -> None:
    async with leveled(tmp_path, data, confirm="dangerous") as at:
        server = at.fakes["one"]
        for door in NAMES:
            assert "runs only after its user has said yes" in await call(at, door, "erase_notes"), door
        assert "tools/call" not in server.methods()
        asking = await at.page("/api/tools?requires_confirmation=true")
        assert [row["path"] for row in asking["tools"]] == ["one:erase_notes"]
        assert await found(at, "notes") == {
            "one:erase_notes": True,
            "one:read_note": None,
            "one:write_note": None,
        }
        assert await found(at, "one:*", requires_confirmation=True) == {"one:erase_notes": True}
        assert await found(at, "erase a note", requires_confirmation=False) == {
            "one:read_note": None,
            "one:write_note": None,
        }
        for door in NAMES:
            assert '"content"' in await call(at, door, "write_note")
        assert server.methods().count("tools/call") == len(NAMES)
