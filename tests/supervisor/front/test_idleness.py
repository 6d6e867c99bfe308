"""A daemon without clients ends, if it is to."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from supervisor.front.edge.wire import ConnectionCounters
from supervisor.front.idleness import LOOKS, end_when_idle

IDLE_S = 60.0


async def test_it_ends_a_while_after_the_last_client_has_left(autojump_clock: MockClock) -> None:
    counters, closing = ConnectionCounters(open=1, accepted=1), trio.Event()
    with trio.fail_after(1000):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(end_when_idle, counters, IDLE_S, closing)
            await trio.sleep(10 * IDLE_S)
            assert not closing.is_set()
            counters.open = 0
            left = trio.current_time()
            await closing.wait()
    assert IDLE_S * (1 - 1 / LOOKS) <= trio.current_time() - left <= IDLE_S * (1 + 1 / LOOKS)


async def test_whoever_comes_and_goes_in_between_counts(autojump_clock: MockClock) -> None:
    counters, closing = ConnectionCounters(), trio.Event()
    with trio.fail_after(1000):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(end_when_idle, counters, IDLE_S, closing)
            for _ in range(10):
                await trio.sleep(IDLE_S / 2)
                counters.accepted += 1
            assert not closing.is_set()
            await closing.wait()


async def test_others_go_on_for_ever(autojump_clock: MockClock) -> None:
    closing = trio.Event()
    await end_when_idle(ConnectionCounters(), 0.0, closing)
    assert not closing.is_set()
