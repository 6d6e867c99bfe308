"""What an operator orders of a server: restart and refresh in every state, and the story that is told of it."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.errors import ServerError, ServerExited, ServerGaveUp, ServerStarting, ShuttingDown
from actors.life.policy import RestartPolicy
from actors.life.states import State
from actors.messages import RefreshServer, RestartServer
from actors.server import ServerSettings
from tests.actors.server.rig import content, running_server
from tests.actors.server.test_life import Unstartable
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.memory import MemoryPeer

# Restart --------------------------------------------------------------------------------------------------------------


async def test_restart_of_a_ready_server_gives_a_fresh_process_and_costs_no_restart(autojump_clock: MockClock) -> None:
    async with running_server() as rig:
        await rig.wake()
        await rig.restart()
        assert (rig.actor.life.state, rig.actor.life.incarnation) == (State.READY, 2)
        assert (rig.fake.starts, rig.fake.exits, rig.restarts.total) == (2, 1, 0)
        assert await rig.call(a=1) == {"a": 1}


async def test_restart_lets_a_call_in_flight_end_and_sends_those_that_come_to_the_fresh_process(
    autojump_clock: MockClock,
) -> None:
    async with running_server() as rig:
        await rig.wake()
        in_flight = rig.submit("sleep", s=2)
        await wait_all_tasks_blocked()
        rig.actor.address.request(RestartServer(server="s"))
        await wait_all_tasks_blocked()
        assert rig.actor.life.state is State.DRAINING
        assert await rig.call("sleep", s=0) == {"s": 0}
        assert await content(in_flight) == {"s": 2}
        assert rig.fake.starts == 2


async def test_restart_brings_back_a_server_that_failed_for_good_and_was_never_listed(
    autojump_clock: MockClock,
) -> None:
    async with running_server(transport=Unstartable(permanent=True, failures=1)) as rig:
        with pytest.raises(ServerGaveUp):
            await rig.wake()
        assert rig.actor.life.permanent
        await rig.restart()
        assert rig.actor.life.state is State.READY
        await wait_all_tasks_blocked()
        assert rig.listed == [["echo"]]


async def test_restart_of_a_server_that_fails_again_says_why_at_its_first_failure(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(exits_at="initialize")) as rig:
        before = trio.current_time()
        with pytest.raises(ServerStarting, match="exit code 1; it is tried again"):
            await rig.restart()
        assert trio.current_time() - before < 1


@pytest.mark.parametrize("at", ["initialize", "tools/list"])
async def test_restart_of_a_server_that_hangs_while_it_starts_begins_afresh(at: str, autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(silent_at={at}, ignores_eof=True)) as rig:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rig.wake)
            await wait_all_tasks_blocked()
            rig.fake.silent_at.clear()
            await rig.restart()
        assert (rig.fake.starts, rig.restarts.total) == (2, 0)


async def test_a_server_that_is_being_stopped_takes_no_order_and_no_call(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(ignores_eof=True)) as rig:
        await rig.wake()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rig.stop)
            await wait_all_tasks_blocked()
            for ask in (rig.restart, rig.refresh, rig.wake, rig.call):
                with pytest.raises(ShuttingDown):
                    await ask()


# Refresh --------------------------------------------------------------------------------------------------------------


async def test_refresh_says_which_tools_came_went_and_changed(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(tools=[tool("a"), tool("b"), tool("c")])) as rig:
        await rig.wake()
        rig.fake.tools = [tool("b"), tool("c", "does something else"), tool("d", "is new")]
        found = await rig.refresh()
        assert (found.tools, found.added, found.removed, found.changed) == (3, ("d",), ("a",), ("c",))
        assert found.renamed == {}
        rig.fake.tools[-1] = tool("e", "is new")
        found = await rig.refresh()
        assert (found.added, found.removed, found.renamed) == (("e",), ("d",), {"d": "e"})
        assert rig.story[-1] == "its tools changed: renamed: 1 (d -> e); 3 now"
        await wait_all_tasks_blocked()
        assert rig.listed[-1] == ["b", "c", "e"]
        assert rig.fake.starts == 1


async def test_refresh_wakes_a_sleeping_server_which_sleeps_again_by_itself(autojump_clock: MockClock) -> None:
    async with running_server(settings=ServerSettings(idle_timeout_s=10)) as rig:
        await rig.wake()
        await rig.sleep()
        rig.fake.tools.append(tool("new"))
        assert (await rig.refresh()).added == ("new",)
        await trio.sleep(60)
        assert rig.actor.life.state is State.DORMANT


class Held(FakeServer):
    """Lists its tools when it is let."""

    let = trio.Event()

    async def _on_message(self, peer: MemoryPeer, message: dict[str, Any], nursery: trio.Nursery) -> None:
        if message.get("method") == "tools/list":
            await self.let.wait()
        await super()._on_message(peer, message, nursery)


async def test_refresh_during_a_reading_is_answered_by_one_that_begins_afterwards(autojump_clock: MockClock) -> None:
    fake = Held()
    fake.let.set()
    async with running_server(fake) as rig:
        await rig.wake()
        fake.let = trio.Event()
        orders = []
        for _ in range(2):
            orders.append(rig.actor.address.request(RefreshServer(server="s")))
            await wait_all_tasks_blocked()
        assert fake.count("tools/list") == 1
        assert not any(order.settled for order in orders)
        fake.let.set()
        for order in orders:
            await order.wait()
        assert fake.count("tools/list") == 3


@pytest.mark.case("L05")
async def test_refresh_of_a_server_that_does_not_list_in_time_fails_and_keeps_what_is_known(
    autojump_clock: MockClock,
) -> None:
    async with running_server() as rig:
        await rig.wake()
        rig.fake.silent_at = {"tools/list"}
        with pytest.raises(ServerError, match="could not be read in time"):
            await rig.refresh()
        assert rig.actor.life.state is State.READY


async def test_refresh_of_a_server_that_dies_meanwhile_fails(autojump_clock: MockClock) -> None:
    async with running_server() as rig:
        await rig.wake()
        rig.fake.exits_at = "tools/list"
        with pytest.raises(ServerError, match="exit code 1"):
            await rig.refresh()


# The story ------------------------------------------------------------------------------------------------------------


async def test_the_story_of_a_good_day(autojump_clock: MockClock) -> None:
    async with running_server(settings=ServerSettings(idle_timeout_s=10)) as rig:
        await rig.wake()
        rig.fake.tools = [tool("echo"), tool("new")]
        await rig.fake.notify("notifications/tools/list_changed")
        await trio.sleep(60)
        await rig.call()
    assert rig.story[:8] == [
        "woken",
        "started",
        "ready after 0.0 s: 1 tools, protocol 2025-11-25",
        "its tools changed: +1 (new); 2 now",
        "asleep; a call wakes it",
        "woken by a call",
        "started",
        "ready after 0.0 s: 2 tools, protocol 2025-11-25",
    ]


@pytest.mark.case("X12")
async def test_a_server_that_comes_back_with_another_version_is_told_of(autojump_clock: MockClock) -> None:
    """A package without a fixed version may be another one at each start."""
    async with running_server() as rig:
        await rig.wake()
        assert (await rig.status()).server_version == "1"
        for rig.fake.version in ("1", "2", "", "3"):
            await rig.restart()
            await trio.sleep(1)  # its lists are read meanwhile
        assert (await rig.status()).server_version == "3"
        told = [line for line in rig.story if "version" in line]
        assert told == ["it is version 2 now, it was 1", "it is version 3 now, it was 2"]


async def test_the_story_of_a_crash_loop_names_exit_last_words_back_off_end_and_what_to_do(
    autojump_clock: MockClock,
) -> None:
    async with running_server(FakeServer(exits_at="initialize"), policy=RestartPolicy(max_restarts=1)) as rig:
        with pytest.raises(ServerGaveUp):
            await rig.wake()
        assert rig.story == [
            "woken",
            "started",
            "died while handshaking: exit code 1; last words: last words",
            "started again in 1.0 s",
            "started",
            "died while handshaking: exit code 1; last words: last words",
            "failed too often; it is tried again in 300 s, at once: mcpvisor restart s",
        ]
        rig.fake.exits_at = None
        await rig.restart()
        assert rig.story[-1] == "recovered, ready after 0.0 s: 1 tools, protocol 2025-11-25"


async def test_the_story_tells_what_an_operator_orders(autojump_clock: MockClock) -> None:
    async with running_server() as rig:
        await rig.wake()
        await rig.restart()
        await rig.refresh()
        orders = [line for line in rig.story if line.endswith("ordered")]
        assert orders == ["restart ordered", "refresh ordered"]
        assert rig.story.index("restart ordered") < len(rig.story) - 1


async def test_a_recovered_server_has_no_last_error_and_its_log_keeps_it(autojump_clock: MockClock) -> None:
    async with running_server() as rig:
        await rig.wake()
        with pytest.raises(ServerExited):
            await rig.call("crash")
        failed = await rig.status()
        assert (failed.last_error, failed.last_error_at) == ("exit code 3", 0.0)
        assert (failed.reason, failed.exit_code, failed.signal) == ("exit code 3", 3, None)
        await rig.call()
        recovered = await rig.status()
        assert (recovered.last_error, recovered.last_error_at, recovered.exit_code) == (None, None, None)
        assert "died while ready: exit code 3; 1 calls in flight failed" in rig.story


async def test_what_a_server_wrote_in_earlier_incarnations_is_kept(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(exits_at="initialize")) as rig:
        with pytest.raises(ServerStarting):
            await rig.restart()
        rig.fake.exits_at = None
        await rig.restart()
        await rig.fake.write(b"Welcome to the server!\n")
        await wait_all_tasks_blocked()
        lines = [(line.source, line.text) for line in rig.journal.render(rig.journal.last(100))]
        assert ("stderr", "last words") in lines
        assert ("stdout", "Welcome to the server!") in lines


async def test_why_a_server_is_given_up_stands_in_one_line_of_its_log(autojump_clock: MockClock) -> None:
    fake = FakeServer(errors_at={"initialize": {"code": -32602, "message": "no such vault"}})
    async with running_server(fake) as rig:
        with pytest.raises(ServerGaveUp):
            await rig.wake()
        (line,) = [line for line in rig.story if "no such vault" in line]
        assert line.startswith("cannot be started: ")
        assert line.endswith("at once: mcpvisor restart s")
