"""Wakes that take turns with everybody else."""

from __future__ import annotations

from functools import partial

import trio
from trio.testing import wait_all_tasks_blocked

from supervisor.service.updates import Updates
from supervisor.service.wakes import PER_TURN, wake_in_turn

MANY = PER_TURN * 5 + 3
AT_MOST = 2 * PER_TURN
"""Between two turns of somebody else: the tasks of one turn run in any order."""


async def test_many_are_woken_in_their_order_and_others_have_turns_in_between() -> None:
    woken: list[int] = []
    seen: list[int] = []
    for number in range(MANY):
        wake_in_turn(partial(woken.append, number))
    assert woken == []
    while len(woken) < MANY:
        await trio.lowlevel.checkpoint()
        seen.append(len(woken))
    assert woken == list(range(MANY))
    assert max(after - before for before, after in zip([0, *seen], seen, strict=False)) <= AT_MOST


async def test_who_is_asked_for_during_a_wake_and_after_the_last_one_is_woken_as_well() -> None:
    woken: list[str] = []

    def first() -> None:
        woken.append("first")
        wake_in_turn(partial(woken.append, "second"))

    wake_in_turn(first)
    await wait_all_tasks_blocked()
    wake_in_turn(partial(woken.append, "third"))
    await wait_all_tasks_blocked()
    assert woken == ["first", "second", "third"]


async def test_of_many_streams_that_are_owed_the_same_a_few_at_a_time_go_on() -> None:
    streams = [Updates() for _ in range(MANY)]
    through: list[int] = []

    async def stream(number: int) -> None:
        with streams[number].interrupting():
            await trio.sleep(1000)
        through.append(number)

    seen: list[int] = []
    async with trio.open_nursery() as nursery:
        for number in range(MANY):
            nursery.start_soon(stream, number)
        await wait_all_tasks_blocked()
        for updates in streams:
            updates.note("a")
        while len(through) < MANY:
            await trio.lowlevel.checkpoint()
            seen.append(len(through))
    assert sorted(through) == list(range(MANY))
    assert (
        max(after - before for before, after in zip([0, *seen], seen, strict=False)) <= 2 * PER_TURN
    )  # tasks of one turn run in any order
