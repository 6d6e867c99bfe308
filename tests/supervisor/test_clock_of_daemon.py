"""The clock of the wall is set while the daemon runs: only what has a date goes by it, no time shown is negative."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from supervisor.host.datadir import DataDir
from tests.fakes.clock import Clock
from tests.scenario.client import Json
from tests.scenario.daemon import World, world

DAY_S = 86_400.0
NOW = 1_800_000_000.0
PAGES = ("/api/status", "/api/usage", "/api/usage?window=24h", "/api/calls", "/api/audit", "/ui")


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


async def look(at: World) -> None:
    """Look at pages that show moments and spans of time."""
    for page in PAGES:
        shown = await at.text(page)
        if page.startswith("/api"):
            assert min(numbers_in(json.loads(shown)), default=0) >= 0, page


@pytest.mark.case("D14")
@pytest.mark.parametrize("step_s", [DAY_S, -DAY_S])
async def test_a_clock_that_is_set_by_a_day_ends_nothing_early_and_shows_nothing_negative(
    tmp_path: Path, data: DataDir, step_s: float
) -> None:
    clock = Clock()
    clock.now = NOW
    servers = {"s": {"command": "x", "call_timeout_s": 600}}
    async with world(tmp_path, data, servers, daemon={"clock": clock}) as at:
        fake = at.fakes["s"]
        session = at.within(await at.session())
        assert (await at.executed("s:echo", a=1))["structuredContent"] == {"a": 1}
        answers: list[Json] = []
        async with trio.open_nursery() as nursery:
            fake.called = trio.Event()

            async def wait() -> None:
                answers.append(await at.execute("s:sleep", s=0.5))

            nursery.start_soon(wait)
            await fake.called.wait()
            clock.now += step_s
            await look(at)
            assert (await session.send("ping")).status_code == 200
        assert "error" not in answers[0]
        clock.now -= 2 * step_s
        await look(at)
        assert (await session.send("ping")).status_code == 200
        row = await at.row("s")
        assert (row["state"], row["restarts"], fake.starts) == ("ready", 0, 1)
        assert (await at.executed("s:echo", a=2))["structuredContent"] == {"a": 2}
