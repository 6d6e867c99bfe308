"""A server that failed: it is tried again, by itself or on demand, and callers are told why and when."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from actors.catalogue.offer import Offer, Tool
from actors.errors import ServerGaveUp, ServerStarting, Starved
from actors.life.policy import RestartPolicy
from actors.life.states import State
from actors.messages import ServerChanged
from actors.server.parts.recovery import DEMAND_S
from tests.actors.server.rig import Rig, running_server
from tests.actors.server.test_life import Unstartable, outcome
from tests.fakes.late_clock import exact_clock, lasting
from tests.fakes.mcp_server import FakeServer

KNOWN = Offer(tools=(Tool(name="echo"),))
DAY_S = 86400.0


async def gave_up(rig: Rig) -> None:
    await outcome(rig, lambda: rig.wake(urgent=False))
    await rig.reach(State.FAILED)


# Servers never listed -------------------------------------------------------------------------------------------------


@pytest.mark.case("N03")
async def test_a_program_that_is_installed_later_is_found_by_itself(autojump_clock: MockClock) -> None:
    transport = Unstartable(permanent=True, failures=3)
    async with running_server(transport=transport) as rig:
        await gave_up(rig)
        status = await rig.status()
        assert status.last_error == "there is no such program"
        assert status.next_start == pytest.approx(300, abs=1)
        await trio.sleep(3600)
        assert rig.listed == [["echo"]]
        assert (await rig.status()).next_start is None


async def test_a_call_to_a_server_that_was_never_listed_is_a_probe(autojump_clock: MockClock) -> None:
    policy = RestartPolicy(retry_max_s=DAY_S, probe_interval_s=DAY_S)
    async with running_server(FakeServer(exits_at="initialize"), policy=policy) as rig:
        await gave_up(rig)
        rig.fake.exits_at = None
        with pytest.raises(ServerGaveUp) as caught:
            await rig.call()
        assert caught.value.retry_after_s == pytest.approx(DAY_S, rel=0.01)
        assert "exit code 1" in caught.value.message
        assert "mcpvisor restart s" in caught.value.message
        rig.restarts.give_up(trio.current_time() - DAY_S - 1)
        assert await rig.call(a=1) == {"a": 1}


async def test_retries_become_rare_and_never_stop(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(exits_at="initialize")) as rig:
        await gave_up(rig)
        await trio.sleep(DAY_S)
        tries = rig.fake.starts - 6
        assert 48 <= tries <= 52
        assert rig.actor.life.state is State.FAILED
        assert (await rig.status()).restarts == rig.fake.starts


async def test_a_server_whose_tools_are_known_is_tried_on_demand_only(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(exits_at="initialize"), known=KNOWN) as rig:
        await gave_up(rig)
        await trio.sleep(DAY_S)
        assert rig.fake.starts == 5
        assert (await rig.status()).next_start is None


# What callers are told ------------------------------------------------------------------------------------------------


@exact_clock
@pytest.mark.parametrize("idle_s", [1.0, 20.0])
async def test_a_call_brings_the_next_start_of_a_server_forward_that_may_be_mended(
    autojump_clock: MockClock, idle_s: float
) -> None:
    fake = FakeServer(exits_at="initialize")
    async with running_server(fake, policy=RestartPolicy(backoff_initial_s=60)) as rig:
        await outcome(rig, lambda: rig.wake(urgent=False))
        fake.exits_at = None
        await trio.sleep(idle_s)
        before = trio.current_time()
        assert await rig.call("echo", n=1) == {"n": 1}
        assert trio.current_time() - before == pytest.approx(max(0.0, DEMAND_S - idle_s), abs=0.1)


async def test_a_call_in_a_crash_loop_is_told_the_reason_and_when_to_try_again(autojump_clock: MockClock) -> None:
    policy = RestartPolicy(backoff_initial_s=40)
    async with running_server(FakeServer(exits_at="initialize"), policy=policy) as rig:
        await outcome(rig, lambda: rig.wake(urgent=False))
        await trio.sleep(10)
        before, starts = trio.current_time(), rig.fake.starts
        with pytest.raises(
            ServerStarting, match=r"did not start: exit code 1; a call tries it again after 5 s"
        ) as caught:
            await rig.call(deadline_s=60)
        assert trio.current_time() - before == lasting(0.0, wakes=3)  # waiting would have been in vain
        assert rig.fake.starts == starts + 1
        assert caught.value.outcome == "not_sent"
        assert caught.value.retry_after_s == pytest.approx(DEMAND_S, abs=0.3)
        status = await rig.status()
        assert status.next_start is not None
        assert status.next_start - trio.current_time() == pytest.approx(60, abs=0.6)
        assert "exit code 1" in (status.last_error or "")
        told = rig.of(ServerChanged)[-1].status
        assert told.state is State.RESPAWNING


async def test_a_call_whose_deadline_is_before_the_next_start_is_told_so_at_once(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(exits_at="initialize"), policy=RestartPolicy(backoff_initial_s=40)) as rig:
        await outcome(rig, lambda: rig.wake(urgent=False))
        before = trio.current_time()
        with pytest.raises(ServerStarting, match="exit code 1"):
            await rig.call(deadline_s=2)
        assert trio.current_time() == before


async def test_a_call_does_not_wait_for_a_server_that_fails_again_and_again(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(exits_at="initialize"), policy=RestartPolicy(max_restarts=20)) as rig:
        before = trio.current_time()
        with pytest.raises(ServerStarting, match=r"did not start: exit code 1; a call tries it again after 5 s"):
            await rig.call(deadline_s=60)
        assert trio.current_time() - before < 20


# Want of resources ----------------------------------------------------------------------------------------------------


@pytest.mark.case("N05")
async def test_want_of_descriptors_is_waited_out_and_never_gives_up(autojump_clock: MockClock) -> None:
    transport = Unstartable(scarce=True, failures=20)
    async with running_server(transport=transport) as rig:
        error = await outcome(rig, lambda: rig.wake(urgent=False))
        assert isinstance(error, Starved)
        assert (error.kind, error.outcome, error.repeatable) == ("overloaded", "not_sent", True)
        assert error.retry_after_s is not None
        assert rig.actor.life.state is State.RESPAWNING
        await rig.reach(State.READY)
        assert transport.tries == 21
        assert trio.current_time() < 60 * 20
        assert State.FAILED not in rig.states
        assert (await rig.status()).restarts == 0


async def test_a_call_waits_for_want_of_resources_to_end(autojump_clock: MockClock) -> None:
    async with running_server(transport=Unstartable(scarce=True, failures=3), known=KNOWN) as rig:
        assert await rig.call(a=1) == {"a": 1}
        assert trio.current_time() == lasting(1 + 2 + 2, wakes=3)


# Waking ---------------------------------------------------------------------------------------------------------------


async def test_a_server_that_dies_of_its_lists_after_a_wake_is_restarted_within_its_budget(
    autojump_clock: MockClock,
) -> None:
    async with running_server(FakeServer(exits_at="tools/list"), known=KNOWN) as rig:
        await rig.wake()
        await rig.reach(State.FAILED)
        assert rig.fake.starts == 5
