"""The tasks of one server have one turn together, and others have several passes of the loop between two of them."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
import trio

from actors.kit.fairness import share as module
from actors.kit.fairness.share import ALL_OWN_S, IDLE_PASSES, OWN_S, PASSES, TURN_S, LoopShare, pass_counter, share_of


class Clock:
    """Goes on by what is computed, and not otherwise."""

    now = 0.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


async def passes(out: list[int]) -> None:
    """Count the passes of the loop."""
    while True:
        out[0] += 1
        await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("tasks", [1, 20])
async def test_others_have_their_passes_between_two_turns_however_many_tasks_a_server_has(
    clock: Clock, tasks: int
) -> None:
    share, count, turns = LoopShare(), [0], []

    async def reading() -> None:
        for _ in range(5):
            clock.now += 2 * TURN_S
            turns.append(count[0])
            await share.turn()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(passes, count)
        async with trio.open_nursery() as server:
            for _ in range(tasks):
                server.start_soon(share.run, reading)
        nursery.cancel_scope.cancel()
    later = turns[tasks:]  # each has begun once before it could be told to wait
    assert len(later) == 4 * tasks
    assert all(after - before >= PASSES - 1 for before, after in pairwise(later))


async def test_where_nobody_else_has_anything_to_do_the_next_turn_comes_soon(clock: Clock) -> None:
    share, count = LoopShare(), pass_counter()
    turns: list[int] = []

    async def reading() -> None:
        for _ in range(5):
            clock.now += 2 * TURN_S
            turns.append(count())
            await share.turn()

    await share.run(reading)
    assert {after - before for before, after in pairwise(turns)} <= set(range(IDLE_PASSES, PASSES - 3))


async def test_who_computes_little_never_waits(clock: Clock) -> None:
    share, count = LoopShare(), [0]

    async def reading() -> int:
        for _ in range(10 * PASSES):
            clock.now += 0.9 * TURN_S / PASSES
            await share.turn()
            await trio.lowlevel.checkpoint()  # as one that waits for its socket
        return count[0]

    async with trio.open_nursery() as nursery:
        nursery.start_soon(passes, count)
        assert await share.run(reading) <= 10 * PASSES + 2
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("tasks", [int(ALL_OWN_S / OWN_S), 100])
async def test_calls_at_once_that_compute_little_do_not_wait_for_each_other_up_to_what_others_can_spare(
    clock: Clock, tasks: int
) -> None:
    share, count, computed = LoopShare(), [0], Counter[int]()

    async def call() -> None:
        for _ in range(3):  # its request, the head and the body of its answer
            clock.now += 0.3 * OWN_S
            computed[count[0]] += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(passes, count)
        async with trio.open_nursery() as server:
            for _ in range(tasks):
                server.start_soon(share.run, call)
        took = count[0]
        nursery.cancel_scope.cancel()
    assert sum(computed.values()) == 3 * tasks
    if tasks * OWN_S <= ALL_OWN_S:
        assert took <= 5, "no pass is waited for"
    later = [
        number for number in computed if number > 1
    ]  # in the first pass each begins before it could be told to wait
    most = max(sum(computed[at] for at in range(first, first + PASSES)) for first in later)
    assert most * 0.3 * OWN_S <= 2 * (TURN_S + ALL_OWN_S), "any eight passes have parts of two turns at most"


async def test_what_comes_of_the_work_and_of_its_waits_is_what_it_would_be_without_turns(clock: Clock) -> None:
    async def work(fails: bool) -> str:
        clock.now += 2 * TURN_S
        with pytest.raises(trio.TooSlowError):
            with trio.fail_after(0.001):
                await trio.sleep_forever()
        if fails:
            raise ZeroDivisionError
        return "done"

    share = LoopShare()
    assert await share.run(work, fails=False) == "done"
    with pytest.raises(ZeroDivisionError):
        await share.run(work, True)
    with trio.move_on_after(0.001) as scope:
        await share.run(trio.sleep_forever)
    assert scope.cancelled_caught


async def test_a_server_has_one_share_as_long_as_anything_is_done_for_it() -> None:
    share = share_of("http://a")
    assert share_of("http://a") is share
    assert share_of("http://b") is not share
