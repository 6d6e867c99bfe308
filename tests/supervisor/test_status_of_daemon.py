"""What a running daemon says of its servers and tools: for how long, when to come back, and how long calls take."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio

from supervisor.host.datadir import DataDir
from tests.fakes.failures import failure
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.memory import MemoryTransport
from tests.fakes.want import no_threads
from tests.scenario.client import Client
from tests.scenario.daemon import configuration, running
from tests.supervisor.test_daemon import settled

LATEST_S = 600.0
"""No test takes as long, and every wrong figure is further off."""


class SetClock:
    """The clock on the wall, which somebody sets."""

    ahead_s = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead_s


async def called(client: httpx2.AsyncClient, name: str, **arguments: Any) -> Any:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    return (await client.post("/mcp", json=message)).json()


async def status(client: httpx2.AsyncClient) -> Any:
    return (await client.get("/api/status")).json()


async def until(client: httpx2.AsyncClient, state: str) -> Any:
    """Poll until the only server is in a state, and return its row."""
    while True:
        (row,) = (await status(client))["servers"]
        if row["state"] == state:
            return row
        await trio.sleep(0.02)


@pytest.mark.parametrize("set_s", [-7200.0, 7200.0])
async def test_how_long_servers_are_in_a_state_is_right_after_the_clock_was_set(
    tmp_path: Path, data: DataDir, set_s: float
) -> None:
    clock = SetClock()
    config = configuration(tmp_path, {"desk": {"command": "x"}})
    connect = MemoryTransport(FakeServer().serve)
    async with running(config, data, clock=clock, connect=lambda _: connect) as client:
        await Client(client).ready()
        clock.ahead_s = set_s
        page = await status(client)
        (row,) = page["servers"]
        ages = [page["uptime_s"], row["since_s"], clock() - row["since"]]
        assert [age for age in ages if not 0 <= age < LATEST_S] == []


@pytest.mark.parametrize("set_s", [-7200.0, 7200.0])
async def test_how_long_something_is_degraded_is_right_after_the_clock_was_set(
    tmp_path: Path, data: DataDir, set_s: float
) -> None:
    clock = SetClock()
    config = configuration(tmp_path, {"desk": {"command": "x"}}, tokenizer_timeout_s=0)
    connect = MemoryTransport(FakeServer().serve)
    async with running(config, data, clock=clock, connect=lambda _: connect) as client:
        with no_threads():
            while not (await status(client))["degraded"]:
                pass
            clock.ahead_s = set_s
            rows = (await status(client))["degraded"]
            assert [row for row in rows if not 0 <= clock() - row["since"] < LATEST_S] == []
        await Client(client).ready()
        assert await settled(client) == []


async def test_a_call_says_when_to_come_back_to_a_server_that_crashes_and_a_search_that_it_is_down(
    tmp_path: Path, data: DataDir
) -> None:
    fake = FakeServer(tools=[tool("crash", "Crashes the desk.")])
    config = configuration(tmp_path, {"desk": {"command": "x", "backoff_initial_s": 1000, "backoff_max_s": 1000}})
    connect = MemoryTransport(fake.serve)
    async with running(config, data, connect=lambda _: connect) as client:
        await Client(client).ready()
        fake.exits_at = "initialize"
        await called(client, "execute_mcp_tool", tool_path="desk:crash", arguments={})
        row = await until(client, "respawning")
        error = failure(await called(client, "execute_mcp_tool", tool_path="desk:crash", arguments={}))
        found = (await called(client, "discover_mcp_tools", query="crash the desk"))["result"]["structuredContent"]
        assert row["retry_at"] - row["since"] == pytest.approx(error["data"]["retry_after_ms"] / 1000, abs=1)
        assert found["tools"] == []
        assert "desk fails and is started again" in json.dumps(found)


async def test_how_long_a_tool_takes_does_not_count_how_long_its_server_took_to_wake(
    tmp_path: Path, data: DataDir
) -> None:
    fake = FakeServer()
    config = configuration(tmp_path, {"desk": {"command": "x"}})
    connect = MemoryTransport(fake.serve)
    async with running(config, data, connect=lambda _: connect) as client:
        await Client(client).ready()
        assert (await client.post("/api/servers/desk/sleep")).status_code == 200
        await until(client, "dormant")
        fake.start_s = 2.0
        await called(client, "execute_mcp_tool", tool_path="desk:echo", arguments={})
        (row,) = (await client.get("/api/tools")).json()["tools"]
        assert row["calls"] == 1
        assert row["avg_ms"] < 1000 * fake.start_s
        assert row["avg_wait_ms"] >= 1000 * fake.start_s


async def test_what_failed_is_the_same_in_usage_on_the_tools_page_and_among_calls(
    tmp_path: Path, data: DataDir
) -> None:
    """A result that says that it failed did; what was refused before it ran did not."""
    fake = FakeServer(tools=[tool("fail"), tool("echo", inputSchema={"type": "object", "required": ["a"]})])
    config = configuration(tmp_path, {"desk": {"command": "x"}})
    async with running(config, data, connect=lambda _: MemoryTransport(fake.serve)) as client:
        await Client(client).ready()
        for path in ("desk:fail", "desk:fail", "desk:echo"):
            await called(client, "execute_mcp_tool", tool_path=path, arguments={})
        await called(client, "execute_mcp_tool", tool_path="desk:echo", arguments={"a": 1})
        usage = (await client.get("/api/usage?by=tool")).json()["rows"]
        by_usage = {row["tool"]: (row["calls"], row["failed"]) for row in usage if row["server"]}
        rows = (await client.get("/api/tools")).json()["tools"]
        failed = (await client.get("/api/calls?outcome=failed")).json()["calls"]
        assert by_usage == {"fail": (2, 2), "echo": (2, 0)}
        assert {row["name"]: (row["failures"], row["success_rate"]) for row in rows} == {
            "fail": (2, 0.0),
            "echo": (0, 1.0),
        }
        assert [row["tool"] for row in failed] == ["fail", "fail"]
