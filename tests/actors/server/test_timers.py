"""A timer of one stage of a server's life never acts in another: what is due then is due no more."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.errors import CallTimedOut, ServerExited, ServerGaveUp, ServerStarting
from actors.life.policy import RestartPolicy
from actors.life.states import State
from actors.server import ServerSettings
from tests.actors.server.rig import running_server
from tests.actors.server.test_calls_of_servers import Outcomes
from tests.fakes.mcp_server import FakeServer

CHANGED = "notifications/tools/list_changed"
NEVER_IDLE = ServerSettings(idle_timeout_s=0)


async def test_the_deadline_of_the_handshake_does_not_end_the_reading_of_the_lists(autojump_clock: MockClock) -> None:
    settings = ServerSettings(start_timeout_s=5, discovery_timeout_s=60)
    async with running_server(FakeServer(silent_at={"tools/list"}), settings=settings) as rig:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rig.wake)
            await rig.reach(State.DISCOVERING)
            await trio.sleep(30)
            assert rig.actor.life.state is State.DISCOVERING
            nursery.cancel_scope.cancel()
        assert rig.fake.starts == 1


async def test_a_server_that_starts_again_is_not_put_to_sleep_for_the_idleness_of_its_last_process(
    autojump_clock: MockClock,
) -> None:
    async with running_server(settings=ServerSettings(idle_timeout_s=25)) as rig:
        await rig.wake()
        await trio.sleep(5)
        rig.fake.start_s = 30  # longer than what is left until it would be idle
        assert rig.fake.peer is not None
        rig.fake.peer.close_output()
        await rig.reach(State.RESPAWNING)
        await trio.sleep(40)
        assert (rig.actor.life.state, rig.fake.starts, State.DORMANT in rig.states) == (State.READY, 2, False)


@pytest.mark.parametrize("state", [State.RESPAWNING, State.FAILED])
async def test_a_server_that_was_started_by_hand_is_not_announced_to_start_later(
    autojump_clock: MockClock, state: State
) -> None:
    policy = RestartPolicy() if state is State.RESPAWNING else RestartPolicy(max_restarts=0)
    async with running_server(FakeServer(exits_at="initialize"), policy=policy, settings=NEVER_IDLE) as rig:
        with pytest.raises((ServerGaveUp, ServerStarting)):
            await rig.wake(urgent=False)
        await rig.reach(state)
        assert (await rig.status()).next_start is not None
        rig.fake.exits_at = None
        await rig.restart()
        await rig.reach(State.READY)
        assert (await rig.status()).next_start is None


async def test_lists_that_changed_are_not_asked_of_a_server_that_is_being_stopped(autojump_clock: MockClock) -> None:
    async with running_server() as rig, trio.open_nursery() as nursery:
        await rig.wake()
        calls = Outcomes(rig, nursery)
        calls.start("hang")
        await rig.fake.notify(CHANGED)
        await wait_all_tasks_blocked()
        await rig.sleep()  # which waits for the call, longer than until the lists were to be read
        await wait_all_tasks_blocked()
        assert [type(error) for error in calls.errors] == [ServerExited]
        assert rig.fake.count("tools/list") == 1


async def test_a_new_process_is_asked_for_a_sign_of_life_while_that_of_the_last_would_be_awaited(
    autojump_clock: MockClock,
) -> None:
    async with running_server(settings=ServerSettings(unresponsive_s=60)) as rig:
        await rig.wake()
        rig.fake.silent_at = {"tools/call", "ping"}
        for process in (1, 2):
            with pytest.raises(CallTimedOut):
                await rig.call(deadline_s=10)
            await wait_all_tasks_blocked()
            assert (rig.fake.starts, rig.fake.count("ping")) == (process, process)
            await rig.restart()


async def test_the_deadline_of_a_reading_does_not_end_the_process_after_that(autojump_clock: MockClock) -> None:
    settings = ServerSettings(start_timeout_s=60, discovery_timeout_s=60)
    async with running_server(FakeServer(silent_at={"tools/list"}), settings=settings) as rig:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rig.wake)
            await rig.reach(State.DISCOVERING)
            await trio.sleep(30)
            rig.fake.silent_at = set()
            rig.fake.start_s = 40
            await rig.restart()
        assert rig.actor.life.state is State.READY
        assert (rig.fake.starts, (await rig.status()).last_error) == (2, None)
