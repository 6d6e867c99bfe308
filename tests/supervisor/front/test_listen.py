"""What a stream is told of changes: not too often, nothing twice, and never without the last one."""

from __future__ import annotations

import random
from contextlib import ExitStack
from itertools import pairwise

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.errors import TooManyCalls
from actors.principal import Principal
from supervisor.front.listen import NOTHING_TOLD, Change, ChangePace, StreamLimit, Watch
from supervisor.host.pauses import PER_TURN
from supervisor.service.port import Revisions
from tests.fakes.service import FakeService

Told = list[tuple[float, tuple[Change, ...], Revisions]]


class Listener:
    """A watch in a task of its own; `told` has the moment since the start, the kinds, and what is known then."""

    def __init__(self, watch: Watch, nursery: trio.Nursery) -> None:
        self.told: Told = []
        self._watch = watch
        self._start = trio.current_time()
        nursery.start_soon(self._listen)

    async def _listen(self) -> None:
        while True:
            kinds = await self._watch.next()
            self.told.append((trio.current_time() - self._start, kinds, self._watch.told))

    @property
    def moments(self) -> list[float]:
        return [round(moment, 6) for moment, _, _ in self.told]


async def test_a_change_is_told_at_once_and_those_that_follow_together(autojump_clock: MockClock) -> None:
    service = FakeService()
    async with trio.open_nursery() as nursery:
        listener = Listener(Watch(service), nursery)
        await trio.sleep(10)
        for number in range(1, 5):
            service.change(tools=number)
            await trio.sleep(0.05)
        await trio.sleep(10)
        nursery.cancel_scope.cancel()
    assert listener.moments == [10, 11]
    assert [revisions for _, _, revisions in listener.told] == [Revisions(tools=1), Revisions(tools=4)]


@pytest.mark.case("L06")
async def test_a_storm_is_told_once_per_interval_and_its_last_change_is_not_lost(autojump_clock: MockClock) -> None:
    service = FakeService()
    async with trio.open_nursery() as nursery:
        listener = Listener(Watch(service, pace=ChangePace(min_interval_s=1.0)), nursery)
        await wait_all_tasks_blocked()
        for number in range(1, 1001):
            service.change(tools=number)
            await trio.sleep(0.01)
        await trio.sleep(5)
        nursery.cancel_scope.cancel()
    gaps = [later - earlier for earlier, later in pairwise(listener.moments)]
    assert min(gaps) >= 1.0
    assert len(listener.told) == 11
    assert listener.told[-1][2].tools == 1000


@pytest.mark.parametrize("seed", range(20))
async def test_in_any_order_the_end_is_known_and_nothing_is_told_too_often(
    seed: int, autojump_clock: MockClock
) -> None:
    chance = random.Random(seed)
    service = FakeService()
    async with trio.open_nursery() as nursery:
        listener = Listener(Watch(service, pace=ChangePace(min_interval_s=1.0)), nursery)
        for number in range(1, 60):
            service.change(**{chance.choice(("tools", "resources", "prompts")): number})
            await trio.sleep(chance.choice((0, 0.01, 0.2, 0.3, 1.0, 2.5)))
        await trio.sleep(5)
        nursery.cancel_scope.cancel()
    assert listener.told[-1][2] == service.current
    for kind in ("tools", "resources", "prompts"):
        moments = [moment for moment, kinds, _ in listener.told if kind in kinds]
        assert all(later - earlier >= 0.999 for earlier, later in pairwise(moments))


async def test_only_the_kinds_asked_for_are_told(autojump_clock: MockClock) -> None:
    service = FakeService()
    async with trio.open_nursery() as nursery:
        listener = Listener(Watch(service, ("prompts",)), nursery)
        await wait_all_tasks_blocked()
        service.change(tools=1, resources=1)
        await trio.sleep(10)
        assert listener.told == []
        service.change(prompts=1)
        await trio.sleep(10)
        nursery.cancel_scope.cancel()
    assert [kinds for _, kinds, _ in listener.told] == [("prompts",)]


async def test_what_was_told_before_is_where_a_watch_begins(autojump_clock: MockClock) -> None:
    service = FakeService()
    service.change(tools=3, prompts=2)
    assert await Watch(service, told=Revisions(tools=3)).next() == ("prompts",)
    assert set(await Watch(service, told=NOTHING_TOLD).next()) == {"tools", "resources", "prompts"}
    with trio.move_on_after(10) as waited:
        await Watch(service).next()
    assert waited.cancelled_caught


async def test_a_change_that_others_cannot_see_wakes_but_tells_nothing(autojump_clock: MockClock) -> None:
    service = FakeService()
    with trio.move_on_after(10) as waited:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(Watch(service).next)
            await wait_all_tasks_blocked()
            service.change()
    assert waited.cancelled_caught


async def test_cancelling_the_wait_loses_nothing(autojump_clock: MockClock) -> None:
    service = FakeService()
    watch = Watch(service)
    service.change(tools=1)
    assert await watch.next() == ("tools",)
    service.change(tools=2)
    found: tuple[Change, ...] = ()
    rounds = 0
    while not found:
        rounds += 1
        with trio.move_on_after(0.3):
            found = await watch.next()
    assert (found, rounds) == (("tools",), 4)


async def test_watching_always_lets_others_run() -> None:
    service = FakeService()
    watch = Watch(service, told=NOTHING_TOLD)
    with trio.CancelScope() as scope:
        scope.cancel()
        await watch.next()
    assert scope.cancelled_caught
    assert watch.told == NOTHING_TOLD


@pytest.mark.case("I23")
def test_nobody_has_more_subscriptions_than_are_left_for_others() -> None:
    limit, ana = StreamLimit(4), Principal("user:ana")
    with ExitStack() as open_ones:
        for principal in (ana, ana, Principal("user:ben")):
            open_ones.enter_context(limit.place(principal))
        with pytest.raises(TooManyCalls, match="2 subscriptions of yours"), limit.place(ana):
            pass


@pytest.mark.case("W01")
async def test_many_streams_are_told_of_a_change_a_few_at_a_time() -> None:
    service, many = FakeService(), PER_TURN * 5
    told = 0

    async def listen() -> None:
        nonlocal told
        await Watch(service).next()
        told += 1

    async with trio.open_nursery() as nursery:
        for _ in range(many):
            nursery.start_soon(listen)
        await wait_all_tasks_blocked()
        service.change(tools=1)
        steps = [told]
        while told < many:
            await trio.lowlevel.checkpoint()
            steps.append(told)
    assert steps[0] == 0
    assert max(after - before for before, after in pairwise(steps)) <= 2 * PER_TURN


async def test_a_stream_that_nothing_is_due_on_looks_up_when_it_shall(autojump_clock: MockClock) -> None:
    service = FakeService()
    watch, begin = Watch(service), trio.current_time()
    moments: list[float] = []

    async def next_by(seconds: float) -> tuple[Change, ...]:
        due = await watch.next(begin + seconds)
        moments.append(trio.current_time() - begin)
        return due

    service.change(tools=1)
    assert await next_by(15) == ("tools",)
    service.change(tools=2)
    assert await next_by(0.5) == (), "not yet due"
    assert await next_by(30) == ("tools",)
    assert await next_by(31) == ()
    assert moments == pytest.approx([0, 0.5, 1, 31])
