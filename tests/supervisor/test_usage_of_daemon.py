"""What pages say of calls is what was called: by everybody for an auditor, by themselves for a member."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import trio

from supervisor.host.datadir import DataDir
from tests.fakes.mcp_server import FakeServer, tool
from tests.scenario.daemon import World, world

IDENTITY: dict[str, Any] = {"users": {"ana": {}, "ben": {}, "cem": {"role": "auditor"}}}
SERVERS: dict[str, Any] = {"desk": {"command": "x", "call_timeout_s": 0.2}, "shop": {"command": "x"}}


def daemon(directory: Path, data: DataDir) -> AbstractAsyncContextManager[World]:
    fakes = {name: FakeServer(tools=[tool(each) for each in ("echo", "refuse", "hang", "odd")]) for name in SERVERS}
    people = {user: {"role": "auditor"} for user in IDENTITY["users"]}
    return world(directory, data, SERVERS, fakes, people=people, auth="tokens", identity=IDENTITY)


async def sums(at: World, who: str, by: str, **wanted: Any) -> dict[tuple[str, ...], tuple[int, int]]:
    """Return calls and failures for each row."""
    told = await at[who].page("/api/usage", by=by, **wanted)
    names = {"tool": ("server", "tool"), "server": ("server",), "client": ("client",), "user": ("user",)}[by]
    found = {tuple(row[name] for name in names): (row["calls"], row["failed"]) for row in told["rows"]}
    assert sum(calls for calls, _ in found.values()) == told["total"]["calls"]
    return found


async def test_every_figure_is_that_of_the_calls_that_were_made(tmp_path: Path, data: DataDir) -> None:
    async with daemon(tmp_path, data) as at:
        for _ in range(5):
            await at["ana"].execute("desk:echo", text="canary of ana")
        for _ in range(2):
            await at["ana"].execute("desk:refuse")
        await at["ana"].execute("desk:hang")
        await at["ana"].execute("desk:none")
        for _ in range(3):
            await at["ben"].execute("shop:echo")
        await at["ben"].search("echo")
        await at["ben"].tools()
        await at["ben"].send("tools/list")

        of_ana = {("desk", "echo"): (5, 0), ("desk", "refuse"): (2, 2), ("desk", "hang"): (1, 1)}
        of_ana["desk", "_unknown"] = (1, 0)
        assert await sums(at, "ana", "tool") == of_ana
        assert await sums(at, "ben", "tool") == {("shop", "echo"): (3, 0)}
        assert await sums(at, "cem", "tool") == {**of_ana, ("shop", "echo"): (3, 0)}
        assert await sums(at, "cem", "server") == {("desk",): (9, 3), ("shop",): (3, 0)}
        assert await sums(at, "cem", "user") == {("ana",): (9, 3), ("ben",): (3, 0)}
        assert await sums(at, "ana", "user") == {("ana",): (9, 3)}
        assert await sums(at, "cem", "tool", user="ben") == {("shop", "echo"): (3, 0)}
        assert await sums(at, "ana", "tool", user="ben") == {}, "nobody sees what another one called"
        assert await sums(at, "cem", "tool", server="shop") == {("shop", "echo"): (3, 0)}
        with_meta = await sums(at, "ben", "tool", meta_tools=True)
        assert with_meta == {("shop", "echo"): (3, 0), ("", "discover_mcp_tools"): (1, 0), ("", "tools/list"): (1, 0)}

        told = await at["cem"].page("/api/usage", by="tool", server="desk", tool="hang")
        (row,) = told["rows"]
        assert row["outcomes"] == {"timeout": 1}
        assert row["took_ms"]["p50"] == pytest.approx(200, rel=0.5)
        for window, bucket_s in (("1h", 60), ("24h", 900), ("7d", 7200), ("30d", 86_400)):
            line = await at["cem"].page("/api/usage/timeline", window=window)
            assert (line["bucket_s"], sum(each["calls"] for each in line["buckets"])) == (bucket_s, 12)
            assert line["buckets"][-1]["start"] <= line["to"] < line["buckets"][-1]["start"] + bucket_s
        text = (await at["cem"].ask("GET", "/api/calls")).text
        assert "canary" not in text


async def test_the_newest_calls_are_listed_page_by_page_and_by_what_they_were(tmp_path: Path, data: DataDir) -> None:
    async with daemon(tmp_path, data) as at:
        for number in range(5):
            await at["ana"].execute("desk:echo", text="x" * number)
        await at["ben"].execute("shop:refuse")
        first = await at["cem"].page("/api/calls", limit=4)
        assert [(row["user"], row["server"], row["outcome"]) for row in first["calls"]] == [
            ("ben", "shop", "error"),
            *[("ana", "desk", "ok")] * 3,
        ]
        rest = await at["cem"].page("/api/calls", limit=4, before=first["next"])
        assert (len(rest["calls"]), rest["next"]) == (2, None)
        sizes = [row["bytes_in"] for row in first["calls"][1:] + rest["calls"]]
        assert sizes == sorted(sizes, reverse=True)
        assert [row["server"] for row in (await at["cem"].page("/api/calls", outcome="failed"))["calls"]] == ["shop"]
        assert (await at["cem"].page("/api/calls", slower_than_ms=60_000))["calls"] == []
        assert {row["user"] for row in (await at["ana"].page("/api/calls"))["calls"]} == {"ana"}
        assert (await at["ana"].page("/api/calls", user="ben"))["calls"] == []
        for path in ("/api/usage?window=2h", "/api/calls?outcome=x", "/api/calls?limit=0", "/api/usage?by=x"):
            assert (await at["cem"].ask("GET", path)).status_code == 400


async def test_what_was_called_is_known_after_a_restart(tmp_path: Path, data: DataDir) -> None:
    async with daemon(tmp_path, data) as at:
        await at.operator.execute("desk:echo")
        before = await at.operator.page("/api/calls")
    async with daemon(tmp_path, data) as at:
        with trio.fail_after(30):
            after = await at.operator.until("/api/calls", lambda page: page["newest"])
        assert after["calls"] == before["calls"]
        await at.operator.execute("desk:echo")
        assert await sums(at, "operator", "tool", window="24h") == {("desk", "echo"): (2, 0)}
