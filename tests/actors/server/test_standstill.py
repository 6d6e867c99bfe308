"""The daemon, or its machine, is stopped and goes on: what servers did in time meanwhile lies there, not yet read."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.errors import CallTimedOut, ServerExited
from actors.life.states import State
from actors.server import ServerSettings
from tests.actors.server.rig import running_server
from tests.fakes.mcp_server import Exits, FakeServer, tool
from tests.fakes.memory import MemoryPeer

LONG_S = 100.0


class Leaving(FakeServer):
    """Closes its output when it is called, and exits five seconds later."""

    async def _call(self, peer: MemoryPeer, message: dict[str, Any]) -> None:
        del message
        peer.log("no disk\n")
        peer.close_output()
        await trio.sleep(5)
        raise Exits(3)


async def stand_still(clock: MockClock, after_s: float = 0.0) -> None:
    """Once everybody waits: nothing is done for long, and then all of it is due at once."""
    await wait_all_tasks_blocked()
    if after_s:
        clock.jump(after_s)
        await wait_all_tasks_blocked()
    clock.jump(LONG_S)
    clock.autojump_threshold = 0


async def test_a_call_that_was_answered_while_the_daemon_stood_still_has_its_answer(mock_clock: MockClock) -> None:
    async with running_server(FakeServer(tools=[tool("sleep")])) as rig:
        await rig.wake()
        reply = rig.submit("sleep", 10, s=5)
        await stand_still(mock_clock)
        assert (await reply.wait()).body
        assert rig.actor.life.state is State.READY


async def test_a_call_that_nobody_answered_fails_after_a_standstill_too(mock_clock: MockClock) -> None:
    async with running_server(FakeServer(tools=[tool("hang")])) as rig:
        await rig.wake()
        reply = rig.submit("hang", 10)
        await stand_still(mock_clock)
        with pytest.raises(CallTimedOut):
            await reply.wait()


@pytest.mark.case("D15")
async def test_a_server_that_was_ready_while_the_daemon_stood_still_is_not_given_up(mock_clock: MockClock) -> None:
    fake = FakeServer(start_s=5)
    async with running_server(fake, settings=ServerSettings(start_timeout_s=10)) as rig:
        reply = rig.submit("echo", 20)
        await stand_still(mock_clock)
        assert (await reply.wait()).body
        assert fake.starts == 1


async def test_a_server_that_exited_while_the_daemon_stood_still_is_logged_with_its_exit_code(
    mock_clock: MockClock,
) -> None:
    async with running_server(Leaving()) as rig:
        await rig.wake()
        reply = rig.submit("echo")
        await stand_still(mock_clock, after_s=0.2)
        with pytest.raises(ServerExited):
            await reply.wait()
        await trio.sleep(20)
        assert "died while ready: exit code 3; last words: no disk" in rig.story
