"""A timer of one stage of a server's life never acts in another: what is due then is due no more."""

from __future__ import annotations

import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.errors import CallTimedOut, ServerExited, ServerGaveUp, ServerStarting
from actors.life.policy import RestartPolicy
from actors.life.states import State
from actors.server import ServerSettings
from tests.actors.server.rig import running_server
from tests.fakes.mcp_server import FakeServer

CHANGED = "notifications/tools/list_changed"
NEVER_IDLE = ServerSettings(idle_timeout_s=0)


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
    async with running_server() as rig:
        await rig.wake()
        call = rig.submit("hang")
        await rig.fake.notify(CHANGED)
        await wait_all_tasks_blocked()
        await rig.sleep()  # which waits for the call, longer than until the lists were to be read
        await wait_all_tasks_blocked()
        assert isinstance(call.failure, ServerExited)
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
