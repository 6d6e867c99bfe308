"""Servers that share less memory than all of them take (`memory.limit_mib`): they take turns, and calls succeed.

Their processes are real; what each of them takes is made up, so that nothing depends on the machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio

from actors.transport.stdio.resources.allotment import ProcessFigures
from actors.transport.stdio.resources.room import UNKNOWN_BYTES
from supervisor import house
from supervisor.host.datadir import DataDir, open_data_dir
from supervisor.servers import capacity
from tests.e2e.daemons import stand_in
from tests.scenario.client import Client
from tests.scenario.daemon import configuration, running

EACH = 80
"""MiB that each of them takes: what is expected of one that nobody has seen."""


class EachTakesAsMuch(dict[int, ProcessFigures]):
    """The figures of all processes that there are."""

    def get(self, key: int, default: Any = None) -> Any:
        del key, default
        return ProcessFigures(UNKNOWN_BYTES, 0.0, 0.0)


class MadeUpFigures:
    def __init__(self, now: Any) -> None:
        del now

    async def get(self) -> EachTakesAsMuch:
        await trio.lowlevel.checkpoint()
        return EachTakesAsMuch()


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    assert UNKNOWN_BYTES == EACH << 20
    monkeypatch.setattr(house, "Figures", MadeUpFigures)
    monkeypatch.setattr(capacity, "MEMORY_LOOK_S", 0.02)
    with open_data_dir(tmp_path / "data", {}) as directory:
        yield directory


def servers_in_turns(directory: Path, count: int, limit_mib: int) -> Any:
    entries = {f"server{number}": stand_in("growing") for number in range(count)}
    memory = {"limit_mib": limit_mib, "reserve_mib": 0, "pressure_percent": 0}
    return configuration(directory, entries, memory=memory, starts_per_s=1000, cold_starts=16)


async def echoed(client: httpx2.AsyncClient, server: str) -> Any:
    params = {"name": "execute_mcp_tool", "arguments": {"tool_path": f"{server}:echo", "arguments": {"text": server}}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    result = (await client.post("/mcp", json=body, timeout=90)).json()["result"]
    return result["content"][0]["text"]


async def states(client: httpx2.AsyncClient) -> dict[str, str]:
    return {row["server"]: row["state"] for row in (await client.get("/api/status")).json()["servers"]}


async def test_a_call_that_lacks_ten_mib_has_one_of_nine_idle_servers_sleep_and_succeeds(
    tmp_path: Path, data: DataDir
) -> None:
    async with running(servers_in_turns(tmp_path, 10, 10 * EACH - 10), data) as client:
        await Client(client).ready()
        while list((before := await states(client)).values()).count("ready") < 9:  # noqa: ASYNC110 - polled over HTTP
            await trio.sleep(0.02)
        [asleep] = [server for server, state in before.items() if state != "ready"]
        assert await echoed(client, asleep) == asleep
        after = await states(client)
        assert after[asleep] == "ready"
        assert list(after.values()).count("ready") == 9, "one would do"


async def test_four_servers_of_which_three_fit_answer_all_calls_in_turns(tmp_path: Path, data: DataDir) -> None:
    async with running(servers_in_turns(tmp_path, 4, 264), data) as client:
        await Client(client).ready()
        for number in range(8):
            server = f"server{number % 4}"
            assert await echoed(client, server) == server
            assert list((await states(client)).values()).count("ready") == 3
