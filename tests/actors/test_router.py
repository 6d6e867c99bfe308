"""The router: admission, lookup, drain. And the directory, and the restarts of crashed actors."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors import router as module
from actors import server
from actors.errors import (
    MailboxFull,
    ServerDisabled,
    ServerGaveUp,
    ServerStarting,
    ShuttingDown,
    Starved,
    TooManyCalls,
    UnknownServer,
    UnknownTool,
    ValuesMissing,
)
from actors.kit import Mailbox, Reply
from actors.kit.directory import Directory
from actors.life.policy import RestartLog, RestartPolicy
from actors.messages import CallServer, RefreshServer, RestartServer, Result, SleepServer, WakeServer
from actors.principal import LOCAL, Principal
from actors.router import NO_SLEEPERS, BeginShutdown, Router
from supervisor.servers.tree import supervise
from tests.fakes.late_clock import lasting


def call(name: str = "s") -> CallServer:
    return CallServer(server=name, method="tools/call", members=b"")


class Rig:
    """A router before one mailbox that nobody empties but the test."""

    def __init__(
        self, max_in_flight: int, capacity: int, sleepers: module.Sleepers, overload: Callable[[], str]
    ) -> None:
        self.directory: Directory[server.ServerMessage] = Directory(lambda name: name == "new")
        self.box: Mailbox[Any] = Mailbox(capacity)
        self.launches: dict[tuple[str, Principal], str] = {}
        self.router = Router(self.directory, max_in_flight, self.launch_of, sleepers, overload)

    def launch_of(self, server: str, principal: Principal) -> str:
        if server == "forge" and (server, principal) not in self.launches:
            raise ValuesMissing("forge waits for values", server=server)
        return self.launches.get((server, principal), server)

    async def taken(self) -> Reply[Any]:
        reply = (await self.box.receive()).reply
        assert reply is not None
        return reply

    async def load(self) -> int:
        await wait_all_tasks_blocked()
        return self.router.in_flight.calls


@asynccontextmanager
async def running(
    max_in_flight: int = 10,
    capacity: int = 10,
    sleepers: module.Sleepers = NO_SLEEPERS,
    overload: Callable[[], str] = str,
) -> AsyncIterator[Rig]:
    rig = Rig(max_in_flight, capacity, sleepers, overload)
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            await nursery.start(rig.router.run)
            with rig.box, rig.directory.register("s", rig.box.address):
                yield rig
            nursery.cancel_scope.cancel()


async def test_a_server_that_is_configured_and_has_not_begun_is_starting_and_no_unknown_one(
    autojump_clock: MockClock,
) -> None:
    async with running() as rig:
        with pytest.raises(ServerStarting) as starting:
            await rig.router.address.ask(call("new"))
        assert starting.value.retryable
        assert starting.value.retry_after_s
        with pytest.raises(UnknownServer):
            await rig.router.address.ask(call("other"))
        rig.directory.explain("new", lambda: ServerGaveUp("it cannot run"))
        with pytest.raises(ServerGaveUp):
            await rig.router.address.ask(call("new"))


async def test_a_call_goes_to_its_server_and_the_answer_back_past_the_router(autojump_clock: MockClock) -> None:
    async with running() as rig:
        reply = rig.router.address.request(call())
        (await rig.taken()).answer(Result(msgspec.Raw(b"{}"), "legacy"))
        assert (await reply.wait()).era == "legacy"
        assert await rig.load() == 0


async def test_what_a_server_means_is_said_by_who_asks(autojump_clock: MockClock) -> None:
    async with running() as rig:
        rig.launches = {("s", LOCAL): "s", ("forge", Principal("user:ana")): "s"}
        for name, principal in rig.launches:
            reply = rig.router.address.request(CallServer(server=name, method="ping", members=b"", principal=principal))
            (await rig.taken()).answer(Result(msgspec.Raw(b"{}"), "legacy"))
            assert (await reply.wait()).era == "legacy"
        with pytest.raises(ValuesMissing, match="forge waits"):
            await rig.router.address.ask(call("forge"))
        assert await rig.load() == 0


@pytest.mark.case("C23")
async def test_nobody_can_take_all_calls_from_others(autojump_clock: MockClock) -> None:
    ana, ben = Principal("user:ana"), Principal("user:ben")
    async with running(max_in_flight=4) as rig:

        def ask(principal: Principal) -> Reply[Any]:
            return rig.router.address.request(CallServer(server="s", method="ping", members=b"", principal=principal))

        kept = [ask(ana) for _ in range(2)]
        with pytest.raises(TooManyCalls, match="2 calls of yours are open"):
            await ask(ana).wait()
        kept.append(ask(ben))
        assert await rig.load() == 3
        for _ in kept:
            (await rig.taken()).answer(Result(msgspec.Raw(b"{}"), "legacy"))
        assert await rig.load() == 0
        assert rig.router.in_flight.shares.amount_of(ana) == 0


class Sleepers:
    """One launch that has no actor until it `may_wake`."""

    def __init__(self) -> None:
        self.called: list[Callable[[], None]] = []

    def has(self, launch: str) -> bool:
        return launch == "asleep"

    def call_up(self, launch: str, then: Callable[[], None]) -> None:
        assert launch == "asleep"
        self.called.append(then)


async def test_who_asks_for_a_launch_without_an_actor_waits_until_it_has_one(autojump_clock: MockClock) -> None:
    sleepers = Sleepers()
    async with running(max_in_flight=3, sleepers=sleepers) as rig:
        replies = [rig.router.address.request(call("asleep")) for _ in range(3)]
        assert await rig.load() == 3
        with pytest.raises(TooManyCalls):
            await rig.router.address.ask(call("asleep"))
        replies[0].abandon()
        gone, first, second = sleepers.called
        with rig.directory.register("asleep", rig.box.address):
            for then in (gone, first):
                then()
            (await rig.taken()).answer(Result(msgspec.Raw(b"{}"), "legacy"))
            assert (await replies[1].wait()).era == "legacy"
        second()
        with pytest.raises(UnknownServer):
            await replies[2].wait()
        assert await rig.load() == 0


@pytest.mark.parametrize("message", [call("t"), WakeServer(server="t"), SleepServer(server="t")])
async def test_a_server_that_is_not_there_is_unknown(autojump_clock: MockClock, message: Any) -> None:
    async with running() as rig:
        with pytest.raises(UnknownServer):
            await rig.router.address.ask(message)


@pytest.mark.parametrize(
    "message", [call("off"), WakeServer(server="off"), RestartServer(server="off"), RefreshServer(server="off")]
)
async def test_who_asks_for_a_server_that_does_not_run_is_told_why(autojump_clock: MockClock, message: Any) -> None:
    async with running() as rig:
        rig.directory.explain("off", lambda: ServerDisabled("it is switched off", server="off"))
        with pytest.raises(ServerDisabled, match="it is switched off"):
            await rig.router.address.ask(message)
        assert await rig.load() == 0
        rig.directory.explain("off", None)
        with pytest.raises(UnknownServer):
            await rig.router.address.ask(message)


async def test_calls_over_the_limit_are_refused_until_others_settle(autojump_clock: MockClock) -> None:
    async with running(max_in_flight=2) as rig:
        first = rig.router.address.request(call())
        second = rig.router.address.request(call())
        with pytest.raises(TooManyCalls):
            await rig.router.address.ask(call())
        first.abandon()
        (await rig.taken()).answer(None)
        (await rig.taken()).fail(UnknownTool("no"))
        with pytest.raises(UnknownTool):
            await second.wait()
        assert await rig.load() == 0


async def test_who_waits_for_a_server_to_wake_takes_a_place_like_a_call(autojump_clock: MockClock) -> None:
    async with running(max_in_flight=1) as rig:
        waking = rig.router.address.request(WakeServer(server="s"))
        with pytest.raises(TooManyCalls):
            await rig.router.address.ask(WakeServer(server="s"))
        waking.abandon()
        assert await rig.load() == 0


async def test_streams_and_what_operators_want_take_no_place_of_a_call(autojump_clock: MockClock) -> None:
    async with running(max_in_flight=1) as rig:
        rig.router.address.request(CallServer(server="s", method="events/stream", members=b"", lasts=True))
        operations: list[Any] = [RestartServer(server="s"), RefreshServer(server="s"), SleepServer(server="s")]
        for message in operations:
            rig.router.address.request(message)
        assert await rig.load() == 0
        reply = rig.router.address.request(call())
        assert await rig.load() == 1
        assert not reply.settled


async def test_who_is_short_of_memory_begins_nothing_and_does_what_operators_want(autojump_clock: MockClock) -> None:
    async with running(overload=lambda: "90 % are used") as rig:
        beginnings: list[Any] = [call(), WakeServer(server="s")]
        for message in beginnings:
            with pytest.raises(Starved, match=r"the daemon is short of memory: 90 % are used") as raised:
                await rig.router.address.ask(message)
            assert raised.value.outcome == "not_sent"
        assert (len(rig.box), await rig.load()) == (0, 0)
        operations: list[Any] = [RestartServer(server="s"), RefreshServer(server="s"), SleepServer(server="s")]
        for operation in operations:
            reply = rig.router.address.request(operation)
            (await rig.taken()).answer(None)
            await reply.wait()


async def test_a_call_abandoned_before_the_router_reads_it_takes_no_place(autojump_clock: MockClock) -> None:
    async with running(max_in_flight=1) as rig:
        rig.router.address.request(call()).abandon()
        await wait_all_tasks_blocked()
        assert await rig.load() == 0
        assert len(rig.box) == 0


async def test_a_full_server_mailbox_refuses_and_frees_the_place(autojump_clock: MockClock) -> None:
    async with running(capacity=1) as rig:
        rig.router.address.request(call())
        with pytest.raises(MailboxFull):
            await rig.router.address.ask(call())
        assert await rig.load() == 1


async def test_shutdown_refuses_new_calls_and_waits_for_those_in_flight(autojump_clock: MockClock) -> None:
    async with running() as rig:
        rig.router.address.request(call())
        drained = rig.router.address.request(BeginShutdown())
        with pytest.raises(ShuttingDown):
            await rig.router.address.ask(call())
        assert not drained.settled
        (await rig.taken()).answer(None)
        await drained.wait()


async def test_shutdown_with_nothing_in_flight_is_drained_at_once(autojump_clock: MockClock) -> None:
    async with running() as rig:
        await rig.router.address.ask(BeginShutdown())


async def test_a_call_settles_in_a_mailbox_that_is_full_and_the_end_is_told_all_the_same(
    autojump_clock: MockClock,
) -> None:
    async with running(max_in_flight=1) as rig:
        rig.router.address.request(call())
        taken = await rig.taken()
        drained = rig.router.address.request(BeginShutdown())
        await wait_all_tasks_blocked()
        refused = list(flood(rig.router))
        taken.answer(None)  # in another task than the router's, which finds no room for it
        assert not drained.settled
        await drained.wait()
        assert rig.router.in_flight.calls == 0
        await wait_all_tasks_blocked()
        assert all(reply.settled for reply in refused)


def flood(router: Router) -> Iterator[Reply[Any]]:
    """Fill the mailbox of a router, which does not have its turn meanwhile."""
    with suppress(MailboxFull):
        while True:
            yield router.address.request(WakeServer(server="nobody"))


async def test_a_call_that_settles_changes_nothing_of_the_router_in_the_task_that_settles_it(
    autojump_clock: MockClock,
) -> None:
    async with running() as rig:
        rig.router.address.request(call())
        taken = await rig.taken()
        first, second = (rig.router.address.request(BeginShutdown()) for _ in range(2))
        await wait_all_tasks_blocked()
        taken.answer(None)
        assert (first.settled, second.settled) == (False, False)
        await first.wait()
        assert second.settled


async def test_a_call_that_settles_after_the_router_ended_harms_nobody(autojump_clock: MockClock) -> None:
    async with running() as rig:
        reply = rig.router.address.request(call())
        taken = await rig.taken()
        rig.router.address.request(BeginShutdown())
        await wait_all_tasks_blocked()
        rig.router.nursery.cancel_scope.cancel()
        await wait_all_tasks_blocked()
        taken.answer(None)
        assert await reply.wait() is None


@pytest.mark.case("D26")
async def test_crashes_are_bounded_by_intensity(autojump_clock: MockClock) -> None:
    runs: list[float] = []

    async def crash() -> None:
        runs.append(trio.current_time())
        await trio.lowlevel.checkpoint()
        raise RuntimeError("bug")

    policy = RestartPolicy(max_restarts=3, period_s=60, backoff_initial_s=0.5)
    assert not await supervise("x", crash, RestartLog(policy, lambda: 1.0))
    pauses = [after - before for before, after in itertools.pairwise(runs)]
    assert pauses == [lasting(0.5), lasting(1.0), lasting(2.0)]


async def test_cancelling_supervision_is_no_crash(autojump_clock: MockClock) -> None:
    log = RestartLog(RestartPolicy(), lambda: 1.0)
    with trio.move_on_after(1) as scope:
        await supervise("x", trio.sleep_forever, log)
    assert scope.cancelled_caught
    assert log.total == 0
