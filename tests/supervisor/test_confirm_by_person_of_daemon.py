"""A daemon that asks one person about a tool and not another: what each sees, calls, and what a change does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import trio

from supervisor.host.datadir import open_data_dir
from tests.fakes.memory import MemoryTransport
from tests.fakes.whole_server import WholeServer
from tests.scenario.daemon import World, configuration, running
from tests.supervisor.test_safety_of_daemon import TOOLS

USERS: dict[str, Any] = {
    "ana": {},
    "ben": {"role": "admin"},
    "nightly": {"confirm": "none"},
    "batch": {"confirm": "refuse"},
    "cem": {"confirm": ["one:read_*"]},
}
TEAMS = {"interns": {"members": ["ana"], "confirm": "moderate"}}
CALLED = [each["name"] for each in TOOLS]


async def outcome(at: World, user: str, tool: str) -> str:
    """What becomes of a call: it `runs`, its user is `asked`, or it is `refused`."""
    result = await at[user].result("execute_mcp_tool", tool_path=f"one:{tool}", arguments={})
    if result.get("isError"):
        assert "the operator has that refused for this user" in result["content"][0]["text"]
        return "refused"
    asked = (result.get("structuredContent") or {}).get("status") == "input_required"
    return "asked" if asked else "runs"


async def outcomes(at: World, user: str) -> list[str]:
    return [await outcome(at, user, tool) for tool in CALLED]


async def asking(at: World, user: str) -> list[str]:
    """The tools of which a search, and the page of tools, say to somebody that they ask first."""
    found = await at[user].result("discover_mcp_tools", query="one:*", requires_confirmation=True)
    told = sorted(row["tool_path"] for row in found["structuredContent"]["tools"])
    page = (await at[user].ask("GET", "/api/tools?requires_confirmation=true")).json()
    if "tools" in page:  # of those who may see that page
        assert sorted(row["path"] for row in page["tools"]) == told
    return told


async def test_each_person_is_asked_by_their_own_rules_and_told_so(tmp_path: Path) -> None:
    server, asks = WholeServer(tools=TOOLS), ["runs", "runs", "asked"]
    settings = {"auth": "tokens", "identity": {"users": USERS, "teams": TEAMS}, "reload_on_change": False}
    with open_data_dir(tmp_path / "data", {}) as data:
        config = configuration(tmp_path, {"one": {"command": "x"}}, confirm="dangerous", **settings)
        async with running(config, data, connect=lambda _: MemoryTransport(server.serve)) as client:
            at = World(client, data)
            await at.operator.ready()
            for user in USERS:
                await at.admit(user, role="admin")
            assert await outcomes(at, "ana") == ["runs", "asked", "asked"]
            assert await outcomes(at, "ben") == await outcomes(at, "operator") == asks
            assert await outcomes(at, "nightly") == ["runs", "runs", "runs"]
            assert await outcomes(at, "batch") == ["runs", "runs", "refused"]
            assert await outcomes(at, "cem") == ["asked", "runs", "asked"]
            assert await asking(at, "ana") == ["one:erase_notes", "one:write_note"]
            assert await asking(at, "ben") == ["one:erase_notes"]
            assert await asking(at, "nightly") == []
            assert await asking(at, "cem") == ["one:erase_notes", "one:read_note"]
            mine = {user: (await at[user].ask("GET", "/api/me")).json()["confirm"] for user in ("ana", "ben", "batch")}
            assert mine == {
                "ana": {"level": "moderate", "tools": [], "mode": "ask"},
                "ben": {"level": None, "tools": [], "mode": "ask"},
                "batch": {"level": None, "tools": [], "mode": "refuse"},
            }


async def test_a_change_of_a_rule_holds_from_the_next_call_on(tmp_path: Path) -> None:
    server = WholeServer(tools=TOOLS)

    def file(confirm: str | list[str]) -> dict[str, Any]:
        people = {"users": {"ana": {"confirm": confirm}}}
        return {"auth": "tokens", "identity": people, "reload_on_change": False}

    entries = {"one": {"command": "x"}}
    with open_data_dir(tmp_path / "data", {}) as data:
        config = configuration(tmp_path, entries, **file("moderate"))
        async with running(config, data, connect=lambda _: MemoryTransport(server.serve)) as client:
            at = World(client, data)
            await at.operator.ready()
            await at.admit("ana")
            assert await outcome(at, "ana", "write_note") == "asked"
            for confirm, expected in (("dangerous", "runs"), ("safe", "asked"), ("none", "runs"), (["one:*"], "asked")):
                written = json.dumps({"mcpServers": entries, "supervisor": file(confirm)})
                await trio.Path(tmp_path / "mcp.json").write_text(written)
                answer = await at.operator.ask("POST", "/api/reload")
                assert answer.json()["outcome"] == "applied", answer.text
                assert await outcome(at, "ana", "write_note") == expected
    assert server.starts == 1
