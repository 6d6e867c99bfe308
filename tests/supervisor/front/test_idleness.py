"""A daemon hears that it has had no clients for long, and when it has one again."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from supervisor.front.edge.wire import ConnectionCounters
from supervisor.front.wiring import LOOKS, watch_idleness

IDLE_S = 60.0


async def test_it_is_idle_a_while_after_the_last_client_has_left_and_until_the_next(autojump_clock: MockClock) -> None:
    counters, told = ConnectionCounters(open=1, accepted=1), list[tuple[bool, float]]()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch_idleness, counters, IDLE_S, lambda idle: told.append((idle, trio.current_time())))
        await trio.sleep(10 * IDLE_S)
        assert told == []
        counters.open = 0
        left = trio.current_time()
        await trio.sleep(3 * IDLE_S)
        counters.open = 1
        came = trio.current_time()
        await trio.sleep(IDLE_S)
        nursery.cancel_scope.cancel()
    (first, idle_at), (second, busy_at) = told
    assert (first, second) == (True, False)
    assert IDLE_S * (1 - 1 / LOOKS) <= idle_at - left <= IDLE_S * (1 + 1 / LOOKS)
    assert busy_at - came <= IDLE_S / LOOKS


async def test_whoever_comes_and_goes_in_between_counts(autojump_clock: MockClock) -> None:
    counters, told = ConnectionCounters(), list[bool]()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch_idleness, counters, IDLE_S, told.append)
        for _ in range(10):
            await trio.sleep(IDLE_S / 2)
            counters.accepted += 1
        assert told == []
        await trio.sleep(2 * IDLE_S)
        assert told == [True]
        counters.accepted += 1
        await trio.sleep(IDLE_S / 2)
        assert told == [True, False]
        nursery.cancel_scope.cancel()


async def test_without_a_time_nobody_is_told(autojump_clock: MockClock) -> None:
    told = list[bool]()
    await watch_idleness(ConnectionCounters(), 0.0, told.append)
    assert told == []
