"""Levels of safety at every door of a daemon: what is not exposed is not there, and cannot be called by guessing."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio

from supervisor.daemon import Daemon
from supervisor.front.edge.listening import open_sockets
from supervisor.host.datadir import open_data_dir
from tests.fakes.http_client import JSON_HEADERS
from tests.fakes.memory import MemoryTransport
from tests.fakes.whole_server import WholeServer
from tests.scenario.client import Client
from tests.scenario.daemon import configuration, running

TOOLS: list[dict[str, Any]] = [
    {"name": "read_note", "description": "Reads a note.", "inputSchema": {"type": "object"}},
    {"name": "write_note", "description": "Writes a note.", "inputSchema": {"type": "object"}},
    {"name": "erase_notes", "description": "Erases all notes.", "inputSchema": {"type": "object"}},
]
NAMES = {"/mcp/servers/one": "{}", "/mcp/all": "one__{}", "/mcp": "one:{}"}


@asynccontextmanager
async def leveled(
    tmp_path: Path, entry: dict[str, Any] | None = None, **settings: Any
) -> AsyncIterator[tuple[httpx2.AsyncClient, WholeServer]]:
    server = WholeServer(tools=TOOLS)
    with open_data_dir(tmp_path / "data", {}) as data:
        config = configuration(tmp_path, {"one": {"command": "x", **(entry or {})}}, **settings)
        async with running(config, data, connect=lambda _: MemoryTransport(server.serve)) as client:
            await Client(client).ready()
            yield client, server


async def ask(client: httpx2.AsyncClient, door: str, method: str, params: dict[str, Any]) -> Any:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return (await client.post(door, headers=JSON_HEADERS, content=json.dumps(message))).json()


async def call(client: httpx2.AsyncClient, door: str, tool: str) -> str:
    return json.dumps(await ask(client, door, "tools/call", {"name": NAMES[door].format(tool), "arguments": {}}))


async def found(client: httpx2.AsyncClient, **arguments: Any) -> dict[str, Any]:
    """The tools of one discover, and what each row says of a confirmation."""
    answer = await ask(client, "/mcp", "tools/call", {"name": "discover_mcp_tools", "arguments": arguments})
    rows = answer["result"]["structuredContent"]["tools"]
    return {
        row["tool_path"]: row.get("requires_confirmation") for row in sorted(rows, key=lambda row: row["tool_path"])
    }


async def test_what_is_above_the_level_is_in_no_list_and_runs_at_no_door(tmp_path: Path) -> None:
    async with leveled(tmp_path, expose="moderate") as (client, server):
        listed = {
            door: [tool["name"] for tool in (await ask(client, door, "tools/list", {}))["result"]["tools"]]
            for door in ("/mcp/servers/one", "/mcp/all")
        }
        assert listed == {
            "/mcp/servers/one": ["read_note", "write_note"],
            "/mcp/all": ["one__read_note", "one__write_note"],
        }
        for query in ("*", "erase all notes", "one:erase_notes"):
            params = {"name": "discover_mcp_tools", "arguments": {"query": query}}
            rows = (await ask(client, "/mcp", "tools/call", params))["result"]["structuredContent"]["tools"]
            assert "one:erase_notes" not in {row["tool_path"] for row in rows}
        for door in NAMES:
            assert "setting 'expose'" in await call(client, door, "erase_notes"), door
        assert "has no tool" in await call(client, "/mcp/servers/one", "a_tool_that_it_never_listed")
        assert "tools/call" not in server.methods()
        rows = (await client.get("/api/tools")).json()["tools"]
        assert {row["name"]: row["exposed"] for row in rows} == {
            "read_note": True,
            "write_note": True,
            "erase_notes": False,
        }
        assert "content" in await call(client, "/mcp", "write_note")
        assert server.methods().count("tools/call") == 1


async def test_a_level_that_changes_takes_effect_at_once_and_no_server_notices(tmp_path: Path) -> None:
    server = WholeServer(tools=TOOLS)
    levels, names = iter(("moderate", "safe", "dangerous")), [tool["name"] for tool in TOOLS]
    # It reads the file by order alone: each reading here writes it, which it would take for another change.
    entries, settings = {"one": {"command": "x"}}, {"reload_on_change": False}

    async def refuses(client: httpx2.AsyncClient, name: str) -> bool:
        return "'expose'" in await call(client, "/mcp/all", name)

    with open_data_dir(tmp_path / "data", {}) as data:
        config = configuration(tmp_path, entries, **settings)
        daemon = Daemon(config, data, open_sockets("127.0.0.1:0", 5.0), connect=lambda _: MemoryTransport(server.serve))
        daemon.read = lambda path, change: configuration(tmp_path, entries, expose=next(levels), **settings)
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                (url,) = await nursery.start(daemon.run)
                async with httpx2.AsyncClient(base_url=url, timeout=30) as client:
                    await Client(client).ready()
                    for allowed in (2, 1, 3):
                        answer = await client.post("/api/reload", headers=JSON_HEADERS)
                        assert answer.json()["outcome"] == "applied", answer.text
                        for name in names[allowed:]:
                            assert await refuses(client, name), "from that moment on, whatever is listed still"
                        while len((await ask(client, "/mcp/all", "tools/list", {}))["result"]["tools"]) != allowed:
                            await trio.lowlevel.checkpoint()
                        assert [name for name in names if await refuses(client, name)] == names[allowed:]
                daemon.closing.set()
    assert server.starts == 1


async def test_a_name_that_an_operator_gave_a_tool_makes_it_neither_safer_nor_allowed(tmp_path: Path) -> None:
    entry = {
        "confirm_except": ["write_*"],
        "tools": {"rename": {"erase_notes": "read_all", "write_note": "jot"}, "describe": {"erase_notes": "Reads."}},
    }
    async with leveled(tmp_path, entry, confirm="moderate") as (client, server):
        for door in NAMES:
            assert "runs only after its user has said yes" in await call(client, door, "read_all"), door
            assert '"content"' in await call(client, door, "jot")
        assert await found(client, query="one:*") == {"one:jot": None, "one:read_all": True, "one:read_note": None}
        assert server.methods().count("tools/call") == len(NAMES)
    async with leveled(tmp_path, entry, expose="moderate") as (client, _):
        for door in NAMES:
            assert "setting 'expose'" in await call(client, door, "read_all"), door


@pytest.mark.case("X04")
async def test_one_setting_makes_dangerous_tools_ask_for_a_yes(tmp_path: Path) -> None:
    async with leveled(tmp_path, confirm="dangerous") as (client, server):
        for door in NAMES:
            assert "runs only after its user has said yes" in await call(client, door, "erase_notes"), door
        assert "tools/call" not in server.methods()
        asking = (await client.get("/api/tools?requires_confirmation=true")).json()
        assert [row["path"] for row in asking["tools"]] == ["one:erase_notes"]
        assert await found(client, query="notes") == {
            "one:erase_notes": True,
            "one:read_note": None,
            "one:write_note": None,
        }
        assert await found(client, query="one:*", requires_confirmation=True) == {"one:erase_notes": True}
        assert await found(client, query="erase a note", requires_confirmation=False) == {
            "one:read_note": None,
            "one:write_note": None,
        }
        for door in NAMES:
            assert '"content"' in await call(client, door, "write_note")
        assert server.methods().count("tools/call") == len(NAMES)
