"""A daemon that asks one person about a tool and not another: what each sees, calls, and what a change does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from supervisor.host.datadir import open_data_dir
from tests.fakes.memory import MemoryTransport
from tests.fakes.whole_server import WholeServer
from tests.scenario.daemon import World, world
from tests.supervisor.test_safety_of_daemon import TOOLS

USERS: dict[str, Any] = {
    "ana": {},
    "ben": {"role": "admin"},
    "nightly": {"confirm": "none"},
    "batch": {"confirm": "refuse"},
    "cem": {"confirm": ["one:read_*"]},
}
SERVERS: dict[str, Any] = {"one": {"command": "x"}}
TEAMS = {"interns": {"members": ["ana"], "confirm": "moderate"}}
CALLED = [each["name"] for each in TOOLS]


async def outcome(at: World, user: str, tool: str) -> str:
    """What becomes of a call: it `runs`, its user is `asked`, or it is `refused`."""
    result = await at[user].executed(f"one:{tool}")
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
    page = await at[user].ask("GET", "/api/tools?requires_confirmation=true")
    if page.status_code == 200:  # of those who may see that page
        assert sorted(row["path"] for row in page.json()["tools"]) == told
    return told


@asynccontextmanager
async def scene(
    directory: Path, server: WholeServer, users: dict[str, Any], teams: Any = None, **settings: Any
) -> AsyncIterator[World]:
    people = {user: {"role": "admin"} for user in users}
    given = {"people": people, "auth": "tokens", "identity": {"users": users, "teams": teams or {}}, **settings}
    connect = {"connect": lambda _: MemoryTransport(server.serve)}
    with open_data_dir(directory / "data", {}) as data:
        async with world(directory, data, SERVERS, daemon=connect, **given) as at:
            yield at


async def test_each_person_is_asked_by_their_own_rules_and_told_so(tmp_path: Path) -> None:
    asks = ["runs", "runs", "asked"]
    async with scene(tmp_path, WholeServer(tools=TOOLS), USERS, teams=TEAMS, confirm="dangerous") as at:
        assert await outcomes(at, "ana") == ["runs", "asked", "asked"]
        assert await outcomes(at, "ben") == await outcomes(at, "operator") == asks
        assert await outcomes(at, "nightly") == ["runs", "runs", "runs"]
        assert await outcomes(at, "batch") == ["runs", "runs", "refused"]
        assert await outcomes(at, "cem") == ["asked", "runs", "asked"]
        assert await asking(at, "ana") == ["one:erase_notes", "one:write_note"]
        assert await asking(at, "ben") == ["one:erase_notes"]
        assert await asking(at, "nightly") == []
        assert await asking(at, "cem") == ["one:erase_notes", "one:read_note"]
        mine = {user: (await at[user].page("/api/me"))["confirm"] for user in ("ana", "ben", "batch")}
        assert mine == {
            "ana": {"level": "moderate", "tools": [], "mode": "ask"},
            "ben": {"level": None, "tools": [], "mode": "ask"},
            "batch": {"level": None, "tools": [], "mode": "refuse"},
        }


async def test_a_change_of_a_rule_holds_from_the_next_call_on(tmp_path: Path) -> None:
    server = WholeServer(tools=TOOLS)
    async with scene(tmp_path, server, {"ana": {"confirm": "moderate"}}) as at:
        assert await outcome(at, "ana", "write_note") == "asked"
        for confirm, expected in (("dangerous", "runs"), ("safe", "asked"), ("none", "runs"), (["one:*"], "asked")):
            at.write(SERVERS, auth="tokens", identity={"users": {"ana": {"confirm": confirm}}})
            assert (await at.reload())["outcome"] == "applied"
            assert await outcome(at, "ana", "write_note") == expected
    assert server.starts == 1
