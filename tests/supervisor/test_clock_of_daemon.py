"""The clock of the wall is set while the daemon runs: only what has a date goes by it, no time shown is negative."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio

from supervisor.host.datadir import DataDir
from tests.fakes.clock import Clock
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.memory import MemoryTransport
from tests.scenario.client import Client
from tests.scenario.daemon import configuration, running

DAY_S = 86_400.0
NOW = 1_800_000_000.0
PAGES = (
    "/api/status",
    "/api/usage",
    "/api/usage?window=24h",
    "/api/calls",
    "/api/audit",
    "/ui",
)


def numbers_in(value: Any) -> Iterator[float]:
    """Yield all numbers but those of tokens: with one tool there is nothing to save."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from () if name.startswith("token") else numbers_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from numbers_in(each)
    elif isinstance(value, int | float):
        yield value


async def asked(client: httpx2.AsyncClient, method: str, params: Any, session: str = "") -> httpx2.Response:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return await client.post("/mcp", json=body, headers={"mcp-session-id": session} if session else {})


async def call(client: httpx2.AsyncClient, name: str, arguments: Any) -> httpx2.Response:
    given = {"tool_path": f"s:{name}", "arguments": arguments}
    return await asked(client, "tools/call", {"name": "execute_mcp_tool", "arguments": given})


async def look(client: httpx2.AsyncClient) -> None:
    """Look at pages that show moments and spans of time."""
    for page in PAGES:
        shown = await client.get(page)
        assert shown.status_code == 200, (page, shown.text)
        if page.startswith("/api"):
            assert min(numbers_in(shown.json()), default=0) >= 0, page


@pytest.mark.case("D14")
@pytest.mark.parametrize("step_s", [DAY_S, -DAY_S])
async def test_a_clock_that_is_set_by_a_day_ends_nothing_early_and_shows_nothing_negative(
    tmp_path: Path, data: DataDir, step_s: float
) -> None:
    fake, clock = FakeServer(tools=[tool("echo"), tool("sleep")]), Clock()
    clock.now = NOW
    config = configuration(tmp_path, {"s": {"command": "x", "call_timeout_s": 600}})
    async with running(config, data, clock=clock, connect=lambda server: MemoryTransport(fake.serve)) as client:
        await Client(client).ready()
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "c", "version": "1"},
        }
        session = (await asked(client, "initialize", hello)).headers["mcp-session-id"]
        assert (await call(client, "echo", {"a": 1})).status_code == 200
        answers: list[httpx2.Response] = []
        async with trio.open_nursery() as nursery:
            fake.called = trio.Event()

            async def wait() -> None:
                answers.append(await call(client, "sleep", {"s": 0.5}))

            nursery.start_soon(wait)
            await fake.called.wait()
            clock.now += step_s
            await look(client)
            assert (await asked(client, "ping", {}, session)).status_code == 200
        assert "error" not in answers[0].json()
        clock.now -= 2 * step_s
        await look(client)
        assert (await asked(client, "ping", {}, session)).status_code == 200
        (row,) = (await client.get("/api/status")).json()["servers"]
        assert (row["state"], row["restarts"], fake.starts) == ("ready", 0, 1)
        assert (await call(client, "echo", {"a": 2})).status_code == 200
