"""A thread gives way: it goes on when the loop has had its turn, however long that takes."""

from __future__ import annotations

import threading
import time
from functools import partial

import trio

from actors.kit.decoding import TURN_S, GivesWay, free_in_turns

DEADLINE_S = 10.0


async def test_a_thread_that_gives_way_waits_until_the_loop_has_had_a_turn() -> None:
    for abandoned in (False, True):
        order: list[str] = []
        begun, due = trio.Event(), threading.Event()

        def work(order: list[str] = order, begun: trio.Event = begun, due: threading.Event = due) -> None:
            trio.from_thread.run_sync(begun.set)
            turns = GivesWay()
            time.sleep(TURN_S)  # noqa: TID251  (in a thread)
            due.set()
            turns.between()
            order.append("thread")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(trio.to_thread.run_sync, work, abandon_on_cancel=abandoned))
            await begun.wait()
            assert due.wait(DEADLINE_S)
            time.sleep(0.02)  # noqa: ASYNC251, TID251  (a turn that takes longer than a pause of the thread)
            order.append("loop")
        assert order == ["loop", "thread"]


async def test_what_the_loop_does_itself_gives_way_to_nobody() -> None:
    turns = GivesWay()
    time.sleep(TURN_S)  # noqa: ASYNC251, TID251
    turns.between()


class _Heavy:
    """Takes as long to be freed as a thread may go on."""

    def __del__(self) -> None:
        time.sleep(TURN_S / 8)  # noqa: TID251  (in a thread)


async def test_the_loop_has_turns_while_a_long_list_is_freed() -> None:
    things = [_Heavy() for _ in range(200)]
    turns = 0

    async def go_on() -> None:
        nonlocal turns
        while things:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(go_on)
        await trio.to_thread.run_sync(free_in_turns, things)
    assert not things
    assert turns > 10
