"""A configuration that changes all the time, under load: see `benchmarks.edits` for what is edited and judged."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from benchmarks.edits import Walk
from tests.e2e.daemons import end, start

pytestmark = pytest.mark.e2e

EDITS = 40
CLIENTS = 4
SETTINGS = {"starts_per_s": 1000, "cold_starts": 16, "reload_drain_s": 20}


@pytest.mark.case("D05", "Q07")
@pytest.mark.parametrize("seed", [1])
async def test_what_runs_is_what_the_file_says_whatever_is_edited_and_no_call_is_lost(
    tmp_path: Path, seed: int
) -> None:
    walk = Walk(tmp_path / "mcp.json", SETTINGS, seed)
    walk.begin()
    daemon = start(tmp_path)
    try:
        walk.url = daemon.url
        async with walk, trio.open_nursery() as load:
            await walk.settle()
            for client in range(CLIENTS):
                load.start_soon(walk.call_for_ever, client)
            for _ in range(EDITS):
                await walk.step()
            load.cancel_scope.cancel()
        assert walk.wrong == []
        assert walk.counts["calls judged"] > walk.counts["calls"] / 2 > EDITS
    finally:
        end(daemon)
    assert walk.processes() == set()
