"""What a running daemon says of its servers and tools: for how long, when to come back, and how long calls take."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from supervisor.host.datadir import DataDir
from tests.fakes.failures import failure
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.want import no_threads
from tests.scenario.daemon import A, world

LATEST_S = 600.0
"""No test takes as long, and every wrong figure is further off."""


class SetClock:
    """The clock on the wall, which somebody sets."""

    ahead_s = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead_s


async def test_how_long_servers_are_in_a_state_is_right_after_the_clock_was_set(tmp_path: Path, data: DataDir) -> None:
    clock = SetClock()
    async with world(tmp_path, data, {"desk": A}, daemon={"clock": clock}) as at:
        for clock.ahead_s in (-7200.0, 7200.0):
            page = await at.status()
            (row,) = page["servers"]
            ages = [page["uptime_s"], row["since_s"], clock() - row["since"]]
            assert [age for age in ages if not 0 <= age < LATEST_S] == [], clock.ahead_s


async def test_how_long_something_is_degraded_is_right_after_the_clock_was_set(tmp_path: Path, data: DataDir) -> None:
    clock = SetClock()
    more: dict[str, Any] = {"daemon": {"clock": clock}, "waits": False, "tokenizer_timeout_s": 0}
    async with world(tmp_path, data, {"desk": A}, **more) as at:
        with no_threads():
            while not (await at.status())["degraded"]:
                pass
            for clock.ahead_s in (-7200.0, 7200.0):
                rows = (await at.status())["degraded"]
                assert [row for row in rows if not 0 <= clock() - row["since"] < LATEST_S] == [], clock.ahead_s
        await at.ready()
        await at.until("/api/status", lambda page: not page["degraded"])


async def test_a_call_says_when_to_come_back_to_a_server_that_crashes_and_a_search_that_it_is_down(
    tmp_path: Path, data: DataDir
) -> None:
    fake = FakeServer(tools=[tool("crash", "Crashes the desk.")])
    entry = {"command": "x", "backoff_initial_s": 1000, "backoff_max_s": 1000}
    async with world(tmp_path, data, {"desk": entry}, {"desk": fake}) as at:
        fake.exits_at = "initialize"
        await at.execute("desk:crash")
        row = await at.until_state("desk", "respawning")
        error = failure(await at.execute("desk:crash"))
        found = (await at.result("discover_mcp_tools", query="crash the desk"))["structuredContent"]
        assert row["retry_at"] - row["since"] == pytest.approx(error["data"]["retry_after_ms"] / 1000, abs=1)
        assert found["tools"] == []
        assert "desk fails and is started again" in json.dumps(found)


async def test_how_long_a_tool_takes_does_not_count_how_long_its_server_took_to_wake(
    tmp_path: Path, data: DataDir
) -> None:
    fake = FakeServer()
    async with world(tmp_path, data, {"desk": A}, {"desk": fake}) as at:
        await at.ordered("desk", "sleep")
        await at.until_state("desk", "dormant")
        fake.start_s = 2.0
        await at.execute("desk:echo")
        (row,) = (await at.page("/api/tools"))["tools"]
        assert row["calls"] == 1
        assert row["avg_ms"] < 1000 * fake.start_s
        assert row["avg_wait_ms"] >= 1000 * fake.start_s


async def test_what_failed_is_the_same_in_usage_on_the_tools_page_and_among_calls(
    tmp_path: Path, data: DataDir
) -> None:
    """A result that says that it failed did; what was refused before it ran did not."""
    fake = FakeServer(tools=[tool("fail"), tool("echo", inputSchema={"type": "object", "required": ["a"]})])
    async with world(tmp_path, data, {"desk": A}, {"desk": fake}) as at:
        for path in ("desk:fail", "desk:fail", "desk:echo"):
            await at.execute(path)
        await at.execute("desk:echo", a=1)
        usage = (await at.page("/api/usage?by=tool"))["rows"]
        by_usage = {row["tool"]: (row["calls"], row["failed"]) for row in usage if row["server"]}
        rows = (await at.page("/api/tools"))["tools"]
        failed = (await at.page("/api/calls?outcome=failed"))["calls"]
        assert by_usage == {"fail": (2, 2), "echo": (2, 0)}
        assert {row["name"]: (row["failures"], row["success_rate"]) for row in rows} == {
            "fail": (2, 0.0),
            "echo": (0, 1.0),
        }
        assert [row["tool"] for row in failed] == ["fail", "fail"]
