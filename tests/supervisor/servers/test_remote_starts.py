"""How many servers may start at once: processes by a rate, remote servers as fast as they answer."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from actors.kit import Starts
from actors.kit.fairness.starts import Turn
from supervisor.config import Settings
from supervisor.servers.reach import reached_of, starts_of

SETTINGS = Settings(cold_starts=4, cold_connects=8, starts_per_s=10.0, spawn_slot_s=1.0)


async def started_s(starts: Starts, count: int, *, answer: bool) -> float:
    """Start servers that answer at once, or never; return the seconds until the last one has its place."""
    spoken = trio.Event()
    if answer:
        spoken.set()
    placed = [trio.Event() for _ in range(count)]
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        for each in placed:
            nursery.start_soon(starts.spawn, Turn(), each, spoken)
        for each in placed:
            await each.wait()
        took_s = trio.current_time() - began
        nursery.cancel_scope.cancel()
    return took_s


async def test_remote_servers_do_not_wait_for_the_rate_of_processes(autojump_clock: MockClock) -> None:
    del autojump_clock
    assert await started_s(starts_of(SETTINGS), 100, answer=True) > 8
    assert await started_s(reached_of(SETTINGS), 100, answer=True) < 1


async def test_so_many_remote_servers_may_be_silent_at_once(autojump_clock: MockClock) -> None:
    del autojump_clock
    took_s = await started_s(reached_of(SETTINGS), 14, answer=False)
    assert 0.9 < took_s < 1.5  # the eighth place is kept for one that is called
