"""Wakes that take turns with everybody else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from itertools import pairwise

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.kit import Latest
from supervisor.host import pauses as module
from supervisor.host.pauses import MANY, PER_TURN, Bell, DebouncedSignal, Wakes

SOME = PER_TURN * 5 + 3
AT_MOST = 2 * PER_TURN
"""Between two turns of somebody else: the tasks of one turn run in any order."""


async def steps(woken: list[int]) -> int:
    """How many were woken at most between two turns of somebody else, until all were."""
    seen = [len(woken)]
    while len(woken) < SOME:
        await trio.lowlevel.checkpoint()
        seen.append(len(woken))
    return max(after - before for before, after in pairwise(seen))


async def test_many_are_woken_in_their_order_and_others_have_turns_in_between() -> None:
    woken: list[int] = []
    wakes = Wakes()
    for number in range(SOME):
        wakes.soon(partial(woken.append, number))
    assert woken == []
    assert await steps(woken) <= AT_MOST
    assert woken == list(range(SOME))


async def test_who_is_asked_for_during_a_wake_and_after_the_last_one_is_woken_as_well() -> None:
    woken: list[str] = []
    wakes = Wakes()

    def first() -> None:
        woken.append("first")
        wakes.soon(partial(woken.append, "second"))

    wakes.soon(first)
    await wait_all_tasks_blocked()
    wakes.soon(partial(woken.append, "third"))
    await wait_all_tasks_blocked()
    assert woken == ["first", "second", "third"]


async def test_moments_come_in_their_order_whichever_was_asked_for_first(autojump_clock: MockClock) -> None:
    woken: list[tuple[str, float]] = []
    wakes, begin = Wakes(), trio.current_time()

    def wake(name: str) -> None:
        woken.append((name, trio.current_time() - begin))

    for name, seconds in (("second", 2.0), ("first", 1.0), ("third", 3.0), ("second, too", 2.0)):
        wakes.at(begin + seconds, partial(wake, name))
    await trio.sleep(10)
    wakes.at(begin + 11, partial(wake, "fourth"))
    wakes.at(begin, partial(wake, "past"))
    await trio.sleep(10)
    assert woken == [("first", 1), ("second", 2), ("second, too", 2), ("third", 3), ("past", 10), ("fourth", 11)]


@pytest.mark.parametrize("alarm", [False, True], ids=["rung for", "at one moment"])
async def test_of_many_tasks_that_wait_a_few_at_a_time_go_on(alarm: bool, mock_clock: MockClock) -> None:
    bells = [Bell() for _ in range(SOME)]
    through: list[int] = []

    async def wait(number: int) -> None:
        await bells[number].rings(trio.current_time() + 5 if alarm else float("inf"))
        through.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(SOME):
            nursery.start_soon(wait, number)
        await wait_all_tasks_blocked()
        assert through == []
        if alarm:
            mock_clock.jump(5)
        else:
            for bell in bells:
                bell.ring()
        assert await steps(through) <= AT_MOST
    assert sorted(through) == list(range(SOME))


@pytest.mark.parametrize("count", [MANY - 1, MANY, 2 * MANY + 1])
async def test_what_many_wakes_in_a_row_leave_is_kept_out_of_searches_for_garbage(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[int] = []
    woken: list[int] = []
    monkeypatch.setattr(module, "keep_many", lambda: kept.append(len(woken)))
    wakes = Wakes()
    for _ in range(3):  # few at a time do not add up
        wakes.soon(partial(woken.append, 0))
        await wait_all_tasks_blocked()
    woken.clear()
    for number in range(count):
        wakes.soon(partial(woken.append, number))
    await wait_all_tasks_blocked()
    assert len(woken) == count
    assert kept == [MANY * (n + 1) for n in range(count // MANY)]


async def ended(wait: Callable[[], Awaitable[None]], within_s: float) -> bool:
    with trio.move_on_after(within_s) as scope:
        await wait()
    return not scope.cancelled_caught


async def test_a_bell_that_was_rung_before_ends_the_next_wait_and_no_other(autojump_clock: MockClock) -> None:
    bell = Bell()
    bell.ring()
    bell.ring()
    assert await ended(bell.rings, 1)
    assert not await ended(bell.rings, 1), "rung once"
    bell.ring()
    await wait_all_tasks_blocked()
    assert await ended(bell.rings, 1), "rung while nobody waited"


async def test_who_gave_up_waiting_is_not_woken_and_may_wait_again(autojump_clock: MockClock) -> None:
    bell = Bell()
    assert not await ended(bell.rings, 1)
    bell.ring()
    await trio.sleep(1)  # were it woken, this would break off
    assert await ended(bell.rings, 1)


async def test_a_wait_ends_about_when_it_shall_and_asks_for_few_moments(autojump_clock: MockClock) -> None:
    bell, begin = Bell(), trio.current_time()
    for _ in range(100):  # looks long before the moment that it waits for, as streams do
        bell.ring()
        await bell.rings(trio.current_time() + 15)
        await ended(partial(bell.rings, trio.current_time() + 15), 0.1)
    wakes = 0
    while trio.current_time() < begin + 60:
        await bell.rings(begin + 60)
        wakes += 1
    assert trio.current_time() == pytest.approx(begin + 60)
    assert wakes <= 3


async def test_what_changes_together_wakes_once_after_a_moment(autojump_clock: MockClock) -> None:
    cell, woken = Latest(0), list[tuple[float, int]]()
    signal, begin = DebouncedSignal(cell, lambda: 0.25), trio.current_time()

    def note(reader: int) -> None:
        woken.append((round(trio.current_time() - begin, 3), reader))

    with signal.on_set(partial(note, 1)):
        with signal.on_set(partial(note, 2)):
            for number in range(4):
                cell.set(number)
                await trio.sleep(0.05)
            await trio.sleep(1)
        cell.set(5)
        await trio.sleep(1)
    cell.set(6)
    await trio.sleep(1)
    assert woken == [(0.25, 1), (0.25, 2), (1.45, 1)]


async def test_who_comes_while_changes_are_waited_for_is_woken_with_the_others(autojump_clock: MockClock) -> None:
    cell, woken = Latest(0), list[str]()
    signal = DebouncedSignal(cell, lambda: 0.25)
    with signal.on_set(partial(woken.append, "who goes")):
        cell.set(1)
    with signal.on_set(partial(woken.append, "who comes")):
        await trio.sleep(1)
        cell.set(2)
        await trio.sleep(1)
    assert woken == ["who comes", "who comes"]
