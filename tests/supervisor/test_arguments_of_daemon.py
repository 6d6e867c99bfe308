"""Arguments of calls: shown nowhere, or where a setting allows it, to whoever called and to admins, without secrets."""

from __future__ import annotations

import json
import logging
import sqlite3
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path
from typing import Any

import pytest

from supervisor.host.datadir import DataDir
from tests.fakes.mcp_server import FakeServer, tool
from tests.scenario.daemon import World, world

CONFIGURED = "canary-6f1c-of-the-shop"
GIVEN = "canary that was typed"
MARKED = "canary that the schema marks"
IDENTITY: dict[str, Any] = {"users": {"ana": {"role": "admin"}, "ben": {}, "cem": {"role": "auditor"}, "dan": {}}}
SCHEMA = {"type": "object", "properties": {"motto": {"type": "string", "writeOnly": True}, "text": {}}}
SERVERS: dict[str, Any] = {
    "desk": {"command": "x"},
    "shop": {"command": "x", "env": {"SHOP_API_KEY": CONFIGURED}},
}
ARGUMENTS = {"text": f"a\u202eb {CONFIGURED}", "password": GIVEN, "motto": MARKED, "n": [1, 2]}
SHOWN = {"text": "a\u202eb ***", "password": "***", "motto": "***", "n": [1, 2]}
KEPT = "Arguments are kept in memory, short and masked"
META = {"meta_tools": "true"}
NOT_KEPT = "Arguments and results are not kept."


def daemon(directory: Path, data: DataDir, **settings: Any) -> AbstractAsyncContextManager[World]:
    fakes = {"desk": FakeServer(tools=[tool("echo", inputSchema=SCHEMA), tool("refuse")])}
    people = {user: {"role": "admin"} for user in IDENTITY["users"]}
    settings = {"auth": "tokens", "identity": IDENTITY, **settings}
    return world(directory, data, SERVERS, fakes, people=people, **settings)


async def arguments(at: World, who: str) -> list[Any]:
    """Return the arguments of the calls that somebody sees, the oldest first."""
    told = await at[who].page("/api/calls", **META)
    return [row["arguments"] for row in reversed(told["calls"])]


async def test_they_are_not_kept_unless_a_setting_says_so(tmp_path: Path, data: DataDir) -> None:
    async with daemon(tmp_path, data) as at:
        await at["ben"].executed("desk:echo", **ARGUMENTS)
        assert await arguments(at, "ben") == await arguments(at, "ana") == [None]
        page = await at["ana"].text("/ui/calls")
        assert NOT_KEPT in page
        assert "<details>" not in page


async def test_whoever_called_and_an_admin_see_them_without_secrets(tmp_path: Path, data: DataDir) -> None:
    async with daemon(tmp_path, data, calls_keep_arguments=True) as at:
        await at["ben"].executed("desk:echo", **ARGUMENTS)
        await at["ben"].result("discover_mcp_tools", query=f"say {CONFIGURED} again")
        await at["ben"].executed("desk:none", **ARGUMENTS)
        await at["ben"].at("/mcp/all").call("desk__echo", **ARGUMENTS)
        await at["ben"].at("/mcp/servers/desk").call("echo", **ARGUMENTS)
        rejected = {**SHOWN, "motto": MARKED}  # no tool, no schema
        told = [SHOWN, {"query": "say *** again"}, rejected, SHOWN, SHOWN]
        assert await arguments(at, "ben") == await arguments(at, "ana") == told
        assert await arguments(at, "cem") == [None] * 5, "an auditor sees that something was called, not with what"
        assert await arguments(at, "dan") == []
        for who, count in (("ben", 4), ("ana", 4), ("cem", 0)):
            page = await at[who].text("/ui/calls")
            assert KEPT in page
            assert page.count("<summary>arguments</summary>") == count
            assert ("a\\u202eb ***" in page) == (count > 0)
            assert "\u202e" not in page
        assert len((await at["dan"].text("/ui/calls")).split("<details>")) == 1


@pytest.mark.case("I15")
async def test_no_secret_and_no_argument_gets_anywhere_else(
    tmp_path: Path, data: DataDir, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with daemon(tmp_path, data, calls_keep_arguments=True, audit_calls=True) as at:
        given = {**ARGUMENTS, "text": "harmless but private", "also": json.dumps({"token": GIVEN})}
        del given["motto"]
        for path in ("desk:echo", "desk:refuse", "desk:none"):
            await at["ben"].executed(path, **given)
        await at["ana"].until("/api/status", lambda told: not told["store"]["pending_writes"])
        paths = ("/api/calls", "/ui/calls", "/ui", "/ui/servers/desk", "/api/usage", "/metrics", "/api/status/debug")
        said = {path: await at["ana"].text(path, **META) for path in paths}
        said["events"] = await at["ana"].text("/api/events/kept")
        said["audit"] = await at["ana"].text("/api/audit")
        assert "harmless but private" in said["/api/calls"]
    said["log"] = caplog.text
    with closing(sqlite3.connect(data.database)) as store:
        said["store"] = "\n".join(map(repr, store.iterdump()))
    files = b"".join(each.read_bytes() for each in data.root.rglob("*") if each.is_file())
    said["files"] = files.decode(errors="replace")
    for place, text in said.items():
        assert GIVEN not in text, place
        assert CONFIGURED not in text, place
        if place not in ("/api/calls", "/ui/calls", "/ui", "/ui/servers/desk"):
            assert "harmless but private" not in text, place


async def test_when_the_setting_goes_they_are_gone(tmp_path: Path, data: DataDir) -> None:
    async with daemon(tmp_path, data, calls_keep_arguments=True) as at:
        await at["ben"].executed("desk:echo", **ARGUMENTS)
        assert await arguments(at, "ben") == [SHOWN]
        for wanted in (False, True):
            await at.edit(SERVERS, auth="tokens", identity=IDENTITY, calls_keep_arguments=wanted)
            assert await arguments(at, "ben") == [None]
            assert (KEPT if wanted else NOT_KEPT) in await at["ben"].text("/ui/calls")
        await at["ben"].executed("desk:echo", **ARGUMENTS)
        assert await arguments(at, "ben") == [None, SHOWN]


async def test_large_arguments_cost_a_call_nothing(tmp_path: Path, data: DataDir) -> None:
    async with daemon(tmp_path, data, calls_keep_arguments=True) as at:
        large = "x" * (4 * 1024 * 1024 - 1000)
        assert "isError" not in await at["ben"].executed("desk:echo", text=large)
        (shown,) = await arguments(at, "ben")
        assert shown["text"].startswith("xxx")
        assert len(json.dumps(shown)) < 2000
