"""Servers that share less memory than all of them take (`memory.limit_mib`): they take turns, and calls succeed.

Their processes are real; what each of them takes is made up, so that nothing depends on the machine.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.transport.stdio.resources.allotment import ProcessFigures
from actors.transport.stdio.resources.room import UNKNOWN_BYTES
from supervisor import house
from supervisor.host.datadir import DataDir
from supervisor.servers import capacity
from tests.e2e.daemons import stand_in
from tests.scenario.daemon import World, world

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


@pytest.fixture(autouse=True)
def figures(monkeypatch: pytest.MonkeyPatch) -> None:
    assert UNKNOWN_BYTES == EACH << 20
    monkeypatch.setattr(house, "Figures", MadeUpFigures)
    monkeypatch.setattr(capacity, "MEMORY_LOOK_S", 0.02)


def servers_in_turns(directory: Path, data: DataDir, count: int, limit_mib: int) -> AbstractAsyncContextManager[World]:
    entries = {f"server{number}": stand_in("growing") for number in range(count)}
    memory = {"limit_mib": limit_mib, "reserve_mib": 0, "pressure_percent": 0}
    real: dict[str, Any] = {"connect": None}
    return world(directory, data, entries, daemon=real, memory=memory, starts_per_s=1000, cold_starts=16)


async def echoed(at: World, server: str) -> Any:
    return (await at.executed(f"{server}:echo", text=server))["content"][0]["text"]


async def states(at: World) -> dict[str, str]:
    return {server: row["state"] for server, row in (await at.rows()).items()}


async def test_a_call_that_lacks_ten_mib_has_one_of_nine_idle_servers_sleep_and_succeeds(
    tmp_path: Path, data: DataDir
) -> None:
    async with servers_in_turns(tmp_path, data, 10, 10 * EACH - 10) as at:
        while list((before := await states(at)).values()).count("ready") < 9:  # noqa: ASYNC110 - polled over HTTP
            await trio.sleep(0.02)
        [asleep] = [server for server, state in before.items() if state != "ready"]
        assert await echoed(at, asleep) == asleep
        after = await states(at)
        assert after[asleep] == "ready"
        assert list(after.values()).count("ready") == 9, "one would do"


async def test_four_servers_of_which_three_fit_answer_all_calls_in_turns(tmp_path: Path, data: DataDir) -> None:
    async with servers_in_turns(tmp_path, data, 4, 264) as at:
        for number in range(8):
            server = f"server{number % 4}"
            assert await echoed(at, server) == server
            assert list((await states(at)).values()).count("ready") == 3
