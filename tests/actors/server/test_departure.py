"""A server that leaves while the daemon goes on: what ends there, what its successor gets, and what nobody can have."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.errors import ServerExited, ServerGaveUp, ServerStarting, SupervisorError, UnknownServer
from actors.kit import Reply, Starts
from actors.life.states import State
from actors.messages import CallServer, RefreshServer, RestartServer, SleepServer, StopServer, WakeServer
from actors.protocol.tasks import UnknownTask
from actors.server.settings import DRAIN_S
from tests.actors.server.rig import Rig, content, running_server
from tests.actors.server.test_dialogue import Caller
from tests.actors.server.test_legacy_session import begin, calls, remote
from tests.fakes.mcp_server import FakeServer


@asynccontextmanager
async def two(old: FakeServer | None = None, **more: Any) -> AsyncIterator[tuple[Rig, Rig, trio.Event]]:
    """Two servers of one name; the second one may start a process once the event is set."""
    gone = trio.Event()
    async with running_server(old, **more) as first, running_server(predecessor=gone) as second:
        yield first, second, gone


async def test_calls_that_wait_are_passed_on_with_what_is_left_of_their_time(autojump_clock: MockClock) -> None:
    async with two(FakeServer(start_s=1000)) as (old, new, gone):
        short, long = old.submit(deadline_s=20), old.submit(deadline_s=50, n=1)
        await trio.sleep(5)
        left = old.leave(new)
        await left.wait()
        assert old.actor.life.state is State.STOPPED
        with pytest.raises(ServerStarting) as late:
            await short.wait()
        assert 20 <= trio.current_time() < 25
        assert late.value.outcome == "not_sent"
        gone.set()
        assert await content(long) == {"n": 1}


async def test_what_takes_longer_than_its_time_to_drain_is_cut_off_with_the_reason(autojump_clock: MockClock) -> None:
    async with two() as (old, new, _):
        await old.wake()
        in_flight = old.submit("hang", deadline_s=500)
        await wait_all_tasks_blocked()
        left = old.leave(new, "its configuration has changed", 40)
        with pytest.raises(ServerExited, match="its configuration has changed") as cut:
            await in_flight.wait()
        assert cut.value.outcome == "unknown"
        assert 40 <= trio.current_time() < 45
        await left.wait()
        assert any("1 calls in flight have 40 s to end" in line for line in old.story)


async def test_a_plain_stop_makes_a_long_drain_short(autojump_clock: MockClock) -> None:
    async with two() as (old, new, _):
        await old.wake()
        in_flight = old.submit("hang", deadline_s=5000)
        await wait_all_tasks_blocked()
        left = old.leave(new, drain_s=3000)
        await trio.sleep(100)
        stopped = trio.current_time()
        await old.stop()
        assert DRAIN_S <= trio.current_time() - stopped < DRAIN_S + 5
        assert isinstance(in_flight.failure, ServerExited)
        assert left.settled


async def test_nothing_is_reported_any_more(autojump_clock: MockClock) -> None:
    async with two() as (old, new, gone):
        await old.wake()
        in_flight = old.submit("sleep", s=10)
        await wait_all_tasks_blocked()
        facts = len(old.facts)
        left = old.leave(new)
        await old.fake.notify("notifications/tools/list_changed")
        await in_flight.wait()
        await left.wait()
        await wait_all_tasks_blocked()
        assert old.facts[facts:] == []
        gone.set()


ORDERS: list[Any] = [
    WakeServer(server="s"),
    WakeServer(server="s", operator=True),
    RestartServer(server="s"),
    RefreshServer(server="s"),
    RefreshServer(server="s", operator=False),
    SleepServer(server="s"),
]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("order", ORDERS)
async def test_orders_are_those_of_the_successor(autojump_clock: MockClock, order: Any, late: bool) -> None:
    async with two(FakeServer(silent_at={"initialize"})) as (old, new, gone):
        waking = old.actor.address.request(WakeServer(server="s"))
        await wait_all_tasks_blocked()
        if late:
            old.leave(new)
        ordered: Reply[Any] = old.actor.address.request(order)
        await wait_all_tasks_blocked()
        if not late:
            old.leave(new)
        await wait_all_tasks_blocked()
        gone.set()
        await ordered.wait()
        with suppress(SupervisorError):  # sent to sleep before it was awake
            await waking.wait()
        assert old.actor.life.state is State.STOPPED
        assert new.actor.life.state in (State.READY, State.DORMANT)
        assert new.fake.starts + isinstance(order, SleepServer) >= 1


async def test_without_a_successor_everybody_is_told_that_it_is_gone_and_why(autojump_clock: MockClock) -> None:
    gone = "server 's' is gone: it is not in the configuration any more"
    async with running_server(FakeServer(start_s=1000)) as rig:
        waiting: list[Reply[Any]] = [rig.submit(n=1), rig.actor.address.request(WakeServer(server="s"))]
        await wait_all_tasks_blocked()
        rig.leave(None, "it is not in the configuration any more")
        waiting += [rig.submit(n=2), *(rig.actor.address.request(order) for order in ORDERS[2:5])]
        for reply in waiting:
            with pytest.raises(UnknownServer) as refused:
                await reply.wait()
            assert refused.value.message == gone
            assert refused.value.outcome == "not_sent"


async def test_one_that_waits_for_its_turn_leaves_at_once(autojump_clock: MockClock) -> None:
    starts = Starts(1, slot_s=1000)
    slow = FakeServer(silent_at={"initialize"})
    async with running_server(slow, starts=starts) as first, running_server(starts=starts) as rig:
        first.actor.address.request(WakeServer(server="s", urgent=False))
        await wait_all_tasks_blocked()
        waiting = rig.submit(n=1)
        await wait_all_tasks_blocked()
        began = trio.current_time()
        async with running_server() as new:
            await rig.leave(new).wait()
            assert trio.current_time() == began
            assert await content(waiting) == {"n": 1}
        assert rig.fake.starts == 0


async def test_one_that_waits_for_its_predecessor_leaves_at_once(autojump_clock: MockClock) -> None:
    async with two() as (_, second, gone), running_server(predecessor=gone) as third:
        waiting = second.submit(deadline_s=2000, n=1)
        await trio.sleep(1000)
        assert (second.fake.starts, waiting.settled) == (0, False)
        second.leave(third)
        await wait_all_tasks_blocked()
        assert second.actor.life.state is State.STOPPED
        gone.set()
        assert await content(waiting) == {"n": 1}
        assert (second.fake.starts, third.fake.starts) == (0, 1)


async def test_a_task_of_the_one_before_is_not_looked_for_at_the_successor(autojump_clock: MockClock) -> None:
    async with two() as (old, new, gone):
        await old.wake()
        run = old.actor._server.processes.run
        in_flight = old.submit("sleep", s=10)
        await wait_all_tasks_blocked()
        old.leave(new)
        message = CallServer(server="s", method="tasks/get", members=b'"taskId":"1"', run=run)
        replies = [address.request(message) for address in (old.actor.address, new.actor.address)]
        gone.set()
        for reply in replies:
            with pytest.raises(UnknownTask):
                await reply.wait()
        await in_flight.wait()
        await new.wake()
        assert new.actor._server.processes.run != run
        with pytest.raises(UnknownTask):
            await new.actor.address.ask(message)
        assert "tasks/get" not in [method for asked in (*new.fake.asked, *old.fake.asked) for method in asked]


async def test_a_legacy_session_leaves_with_the_conversation_beside_it(autojump_clock: MockClock) -> None:
    fake = FakeServer(probe="both")
    async with remote(fake) as old, remote(FakeServer(probe="both")) as new:
        modern = old.submit("sleep", s=10)
        legacy = begin(old, "sleep", Caller(), s=20)
        await wait_all_tasks_blocked()
        await trio.sleep(1)
        assert sorted(calls(fake)) == [("sleep", "legacy"), ("sleep", "modern")]
        left = old.leave(new, drain_s=100)
        late = begin(old, "echo", Caller(), n=1)
        assert await content(late) == {"n": 1}
        assert await content(modern) == {"s": 10}
        assert not legacy.settled
        assert await content(legacy) == {"s": 20}
        await left.wait()
        await wait_all_tasks_blocked()
        assert fake.starts == fake.exits


async def test_a_call_that_waits_for_a_legacy_session_is_passed_on(autojump_clock: MockClock) -> None:
    fake = FakeServer(probe="both")
    async with remote(fake) as old, remote(FakeServer(probe="both")) as new:
        fake.start_s = 1000
        waiting = begin(old, "echo", Caller(), n=1)
        await trio.sleep(1)
        left = old.leave(new)
        assert await content(waiting) == {"n": 1}
        await left.wait()
        await trio.sleep(DRAIN_S)
        assert fake.starts == fake.exits


async def test_a_call_that_waited_for_a_legacy_session_gets_the_error_of_the_successor(
    autojump_clock: MockClock,
) -> None:
    fake = FakeServer(probe="both")
    async with remote(fake) as old, running_server(FakeServer(exits_at="initialize")) as new:
        fake.start_s = 1000
        waiting = begin(old, "echo", Caller(), n=1)
        await trio.sleep(1)
        await old.leave(new).wait()
        await trio.sleep(DRAIN_S)
        with pytest.raises((ServerGaveUp, ServerStarting), match="s' ") as refused:
            await waiting.wait()
        assert refused.value.outcome == "not_sent"


@given(
    st.lists(
        st.sampled_from(["echo", "sleep", "hang", "crash", "refuse", "leave", "stop", "gone", "pass", "abandon"]),
        max_size=25,
    )
)
def test_every_call_settles_once_whatever_happens_in_whatever_order(steps: list[str]) -> None:
    async def play() -> None:
        settled: list[int] = []
        replies: list[Reply[Any]] = []
        async with two() as (old, new, gone):
            leaving: list[Reply[None]] = []
            for step in steps:
                if step == "leave" and not leaving:
                    leaving.append(old.leave(new, drain_s=5))
                elif step == "stop" and leaving and not leaving[0].settled:
                    old.actor.address.request(StopServer())
                elif step == "gone" and leaving and leaving[0].settled:
                    gone.set()
                elif step == "pass":
                    await trio.sleep(2)
                elif step == "abandon" and replies:
                    replies[-1].abandon()
                elif step in ("echo", "sleep", "hang", "crash", "refuse"):
                    target = new if leaving and leaving[0].settled else old
                    number = len(replies)
                    replies.append(target.submit(step, deadline_s=30, s=3, n=number))
                    replies[-1].on_settled(partial(settled.append, number))
                await wait_all_tasks_blocked()
            await (leaving or [old.leave(new, drain_s=5)])[0].wait()
            gone.set()
            await trio.sleep(120)
            assert sorted(settled) == list(range(len(replies)))
            assert not any(isinstance(reply.failure, UnknownServer) for reply in replies)
            assert old.fake.starts == old.fake.exits

    trio.run(play, clock=MockClock(autojump_threshold=0))
