"""What is ready at once is taken a few in each turn. Real sockets, as it is the kernel that hands them out."""

from __future__ import annotations

import socket
from types import SimpleNamespace

import pytest
import trio
from trio._core import _run

from supervisor.host.pauses import _MANY_READY, READY_PER_TURN, few_at_once
from supervisor.host.turns import LoopTurns
from tests.fakes.ready import in_turns, pairs, woken

pytestmark = in_turns


def no_search() -> None:
    """Leave the garbage alone."""


async def test_many_that_are_ready_at_the_same_moment_are_woken_a_few_in_each_turn_and_all_of_them() -> None:
    few_at_once(no_search, LoopTurns())
    in_turn = await woken(10 * READY_PER_TURN)
    assert (max(in_turn.values()), in_turn.total()) == (READY_PER_TURN, 10 * READY_PER_TURN)


async def test_garbage_is_searched_for_when_many_come_in_a_row() -> None:
    searches: list[None] = []
    few_at_once(lambda: searches.append(None), LoopTurns())
    for _ in range(2 * _MANY_READY // READY_PER_TURN):
        await woken(READY_PER_TURN - 1)
    assert not searches
    await woken(_MANY_READY + READY_PER_TURN)
    assert len(searches) == 1


async def test_who_comes_last_does_not_wait_until_the_others_have_nothing_more_to_do() -> None:
    few_at_once(no_search, LoopTurns())
    passed = 0

    async def go_on(end: socket.socket) -> None:
        nonlocal passed
        while True:
            await trio.lowlevel.wait_writable(end)
            passed += 1

    with pairs(10 * READY_PER_TURN) as busy, pairs(1) as [(mine, other)], trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            for end, _ in busy:
                nursery.start_soon(go_on, end)
            while passed < len(busy):
                await trio.lowlevel.checkpoint()
            before = passed
            other.close()
            await trio.lowlevel.wait_readable(mine)
            nursery.cancel_scope.cancel()
    assert passed - before <= len(busy) + 2 * READY_PER_TURN


async def test_a_trio_that_asks_in_another_way_goes_on_as_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as changed:
        changed.setattr(_run, "GLOBAL_RUN_CONTEXT", SimpleNamespace())
        few_at_once(no_search, LoopTurns())
    assert max((await woken(10 * READY_PER_TURN)).values()) == 10 * READY_PER_TURN
