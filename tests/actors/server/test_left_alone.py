"""A server, a tool or lists that keep failing are left alone for a while; then one probe shows how they are."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.catalogue.offer import Offer, Tool
from actors.errors import BreakerTripped, CallTimedOut, ServerExited, ServerGaveUp, ServerStarting, SupervisorError
from actors.kit import Reply
from actors.kit.directory import Directory
from actors.life.policy import RestartPolicy
from actors.life.states import State
from actors.messages import RefreshServer, Result, ServerChanged, WakeServer
from actors.protocol.wire.jsonrpc import RemoteError
from actors.protocol.wire.peer import Failure
from actors.server import ServerSettings
from actors.server.inbox import Received, ServerMessage
from supervisor.servers.reach import close_breakers
from tests.actors.server.rig import Rig, running_server
from tests.actors.server.test_dialogue import ASKING, Caller
from tests.actors.server.test_legacy_session import begin, remote
from tests.fakes.mcp_server import FakeServer, tool

AWAKE = ServerSettings(idle_timeout_s=0, breaker_tool_failures=99)
"""It stays up, and its tools have no breakers that open."""
ALONE = ServerSettings(idle_timeout_s=0)
PAUSE_S = 36.0
"""The first pause, with the most jitter."""
KNOWN = Offer(tools=(Tool(name="echo"),))


async def hang(rig: Rig, times: int = 1, tool: str = "hang", deadline_s: float = 1.0) -> None:
    """Have calls of a tool time out, one after the other."""
    for _ in range(times):
        with pytest.raises(CallTimedOut):
            await rig.submit(tool, deadline_s).wait()


async def refusal_of(rig: Rig, tool: str = "echo") -> BreakerTripped:
    with pytest.raises(BreakerTripped) as caught:
        await rig.call(tool)
    return caught.value


def open_in(rig: Rig) -> list[str]:
    """The breakers that are open."""
    return [each.tool or each.breaker for each in rig.actor.status().breakers]


async def failures_of(replies: Iterable[Reply[Result]]) -> list[type[Exception] | None]:
    """Wait for calls, and return as what they failed."""
    failures: list[type[Exception] | None] = []
    for reply in replies:
        try:
            await reply.wait()
            failures.append(None)
        except (SupervisorError, RemoteError) as error:
            failures.append(type(error))
    return failures


# Servers --------------------------------------------------------------------------------------------------------------


async def test_after_five_timeouts_calls_are_refused_at_once(autojump_clock: MockClock) -> None:
    async with running_server(settings=AWAKE) as rig:
        await failures_of([rig.submit("hang", 1.0) for _ in range(5)])
        before, sent = trio.current_time(), rig.fake.count("tools/call")
        error = await refusal_of(rig)
        assert trio.current_time() == before
        assert rig.fake.count("tools/call") == sent
        assert error.message.startswith(
            "server 's' is left alone for now, as its calls keep failing (the last time: server 's' did not answer "
            "tools/call within 1 s); nothing was sent; call it again in 3"
        )
        data = error.data()
        assert 0 < data.pop("retry_after_ms") <= PAUSE_S * 1000
        expected = {"type": "unavailable", "outcome": "not_sent", "retryable": True, "server": "s", "breaker": "server"}
        assert data == expected
        assert [each.breaker for each in rig.of(ServerChanged)[-1].status.breakers] == ["server"]
        assert "the server is left alone for 36 s, as calls fail: " in rig.story[-1]


async def test_calls_that_wait_for_their_turn_are_refused_when_it_opens(autojump_clock: MockClock) -> None:
    async with running_server(settings=ServerSettings(idle_timeout_s=0, max_in_flight=5)) as rig:
        await rig.wake()
        rig.fake.silent_at = {"tools/call"}
        hanging = [rig.submit(f"hang {number}", 1.0) for number in range(5)]
        waiting = [rig.submit("echo", 60.0) for _ in range(3)]
        await failures_of(hanging)
        before = trio.current_time()
        assert await failures_of(waiting) == [BreakerTripped] * 3
        assert trio.current_time() == before


async def test_calls_that_wait_for_the_next_process_are_refused_when_it_opens(autojump_clock: MockClock) -> None:
    settings = replace(AWAKE, max_in_flight=1)
    async with running_server(settings=settings, policy=RestartPolicy(backoff_initial_s=30)) as rig:
        await hang(rig, 4)
        calls = [rig.submit("crash"), *(rig.submit("echo") for _ in range(3))]
        assert await failures_of(calls) == [ServerExited] + [BreakerTripped] * 3
        assert rig.actor.life.state is State.RESPAWNING


@pytest.mark.parametrize("answers", ["fail", "refuse", "odd"])
async def test_whatever_a_server_answers_is_no_failure(autojump_clock: MockClock, answers: str) -> None:
    async with running_server(settings=ALONE) as rig:
        assert BreakerTripped not in await failures_of([rig.submit(answers) for _ in range(100)])
        assert await rig.call() == {}
        assert (await rig.status()).breakers == ()


async def test_one_of_fifty_calls_is_the_probe_and_its_success_closes(autojump_clock: MockClock) -> None:
    async with running_server(settings=AWAKE) as rig:
        await hang(rig, 5)
        await trio.sleep(PAUSE_S + 1)
        sent = rig.fake.count("tools/call")
        assert await failures_of([rig.submit("echo") for _ in range(50)]) == [None] + [BreakerTripped] * 49
        assert rig.fake.count("tools/call") == sent + 1
        assert await rig.call() == {}
        assert open_in(rig) == []
        assert rig.story[-1] == "the server is used again"


async def test_a_probe_that_nobody_waits_for_gives_its_place_back(autojump_clock: MockClock) -> None:
    async with running_server(settings=AWAKE) as rig:
        await hang(rig, 5)
        await trio.sleep(PAUSE_S + 1)
        probe = rig.submit("hang")
        await wait_all_tasks_blocked()
        assert (await refusal_of(rig)).retry_after_s == 5.0
        probe.abandon()
        await wait_all_tasks_blocked()
        assert await rig.call() == {}


# Tools ----------------------------------------------------------------------------------------------------------------


async def test_a_tool_that_keeps_failing_leaves_the_others_alone(autojump_clock: MockClock) -> None:
    async with running_server(settings=ALONE) as rig:
        await hang(rig, 3)
        error = await refusal_of(rig, "hang")
        assert error.message.startswith(
            "tool 'hang' of server 's' is left alone for now, as its calls keep failing (the last time: server 's' did "
            "not answer tools/call within 1 s); nothing was sent; call it again in 3"
        )
        assert error.message.endswith(", or use another tool: others of this server can be called")
        assert await rig.call() == {}
        assert open_in(rig) == ["hang"]


async def test_a_tool_that_kills_its_server_is_left_alone(autojump_clock: MockClock) -> None:
    async with running_server(settings=ALONE, known=KNOWN) as rig:
        for _ in range(3):
            with pytest.raises(ServerExited):
                await rig.call("crash")
        assert (await refusal_of(rig, "crash")).data()["breaker"] == "tool"
        assert await rig.call() == {}


# What is no failure of the server -------------------------------------------------------------------------------------


async def test_the_end_of_a_process_is_one_failure_however_many_calls_it_took(autojump_clock: MockClock) -> None:
    async with running_server(settings=AWAKE) as rig:
        await rig.wake()
        calls = [*(rig.submit("hang") for _ in range(40)), rig.submit("crash")]
        assert set(await failures_of(calls)) == {ServerExited}
        assert await rig.call() == {}
        assert (await rig.status()).breakers == ()


async def test_what_an_operator_cuts_off_is_no_failure(autojump_clock: MockClock) -> None:
    async with running_server(settings=ServerSettings(idle_timeout_s=0, breaker_failures=1)) as rig:
        cut_off = rig.submit("hang")
        await rig.fake.called.wait()
        await rig.sleep()
        assert await failures_of([cut_off]) == [ServerExited]
        assert await rig.call() == {}


async def test_a_deadline_that_passes_in_the_line_is_no_failure(autojump_clock: MockClock) -> None:
    async with running_server(settings=ServerSettings(idle_timeout_s=0, max_in_flight=1, breaker_failures=1)) as rig:
        first = rig.submit("sleep", 60.0, s=10)
        assert set(await failures_of([rig.submit("echo", 1.0) for _ in range(20)])) == {ServerStarting}
        await first.wait()
        assert await rig.call() == {}


async def test_a_client_that_does_not_answer_is_no_failure_of_the_server(autojump_clock: MockClock) -> None:
    async with running_server(settings=replace(ASKING, idle_timeout_s=0, breaker_failures=1, call_max_s=10)) as rig:
        with pytest.raises(CallTimedOut):
            await rig.call("ask", 5.0, Caller())
        assert await rig.call() == {}


async def test_a_server_that_does_not_start_is_the_business_of_its_restart_policy(autojump_clock: MockClock) -> None:
    policy = RestartPolicy(max_restarts=2, backoff_initial_s=1, backoff_max_s=1)
    async with running_server(FakeServer(exits_at="initialize"), policy=policy, known=KNOWN, settings=ALONE) as rig:
        for _ in range(6):
            with pytest.raises((ServerStarting, ServerGaveUp)):
                await rig.call()
        assert (await rig.status()).breakers == ()


# Other probes, and who closes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["restart", "refresh", "wake"])
async def test_an_operator_closes_all_at_once(autojump_clock: MockClock, order: str) -> None:
    async with running_server(settings=ALONE) as rig:
        await hang(rig, 3)
        rig.fake.silent_at = {"tools/call"}
        await hang(rig, 2, "other")
        rig.fake.silent_at = set()
        assert open_in(rig) == ["server", "hang"]
        match order:
            case "restart":
                await rig.restart()
            case "refresh":
                await rig.refresh()
            case "wake":
                await rig.wake(operator=True)
        assert open_in(rig) == []
        await hang(rig, 2)
        assert await rig.call() == {}


async def test_a_wake_may_be_the_probe_and_proves_that_the_server_starts(autojump_clock: MockClock) -> None:
    async with running_server(settings=AWAKE, known=KNOWN) as rig:
        await hang(rig, 5)
        await rig.sleep()
        with pytest.raises(BreakerTripped):
            await rig.wake()
        with pytest.raises(BreakerTripped):
            await rig.actor.address.ask(RefreshServer(server="s", operator=False))
        assert rig.actor.life.state is State.DORMANT
        await trio.sleep(PAUSE_S + 1)
        rig.fake.start_s = 5.0
        woken = rig.actor.address.request(WakeServer(server="s"))
        await wait_all_tasks_blocked()
        assert (await refusal_of(rig)).retry_after_s == 5.0
        await woken.wait()
        assert await rig.call() == {}


async def test_a_wake_that_fails_opens_it_for_longer(autojump_clock: MockClock) -> None:
    async with running_server(settings=AWAKE, known=KNOWN) as rig:
        await hang(rig, 5)
        await rig.sleep()
        await trio.sleep(PAUSE_S + 1)
        rig.fake.exits_at = "initialize"
        with pytest.raises(ServerStarting):
            await rig.wake(urgent=False)
        assert (await refusal_of(rig)).retry_after_s == pytest.approx(2 * PAUSE_S, abs=2)


async def test_a_sign_of_life_may_be_the_probe(autojump_clock: MockClock) -> None:
    async with running_server(settings=AWAKE) as rig:
        last = rig.submit("hang", PAUSE_S + 20)
        await rig.fake.called.wait()
        id_ = json.dumps(rig.fake.messages[-1]["id"]).encode()
        await hang(rig, 5)
        await trio.sleep(PAUSE_S + 1)
        lost = Failure(id=id_, cause="crashed", reason="the connection to it was lost")
        await rig.actor.address.tell(Received(rig.actor.life.incarnation, (), failure=lost))
        assert await failures_of([last]) == [ServerExited]
        assert open_in(rig) == ["server"]
        await trio.sleep(3)
        assert open_in(rig) == []


async def test_who_has_to_wait_longer_for_the_start_is_told_that(autojump_clock: MockClock) -> None:
    async with running_server(settings=AWAKE, policy=RestartPolicy(max_restarts=0), known=KNOWN) as rig:
        await hang(rig, 4)
        with pytest.raises(ServerExited):
            await rig.call("crash")
        await rig.reach(State.FAILED)
        assert open_in(rig) == ["server"]
        with pytest.raises(ServerGaveUp) as caught:
            await rig.call()
        assert caught.value.retry_after_s is not None
        assert caught.value.retry_after_s > PAUSE_S


# Lists ----------------------------------------------------------------------------------------------------------------


async def test_lists_that_cannot_be_read_are_left_alone(autojump_clock: MockClock) -> None:
    settings = ServerSettings(idle_timeout_s=0, discovery_timeout_s=5, probe_interval_s=1e6)
    async with running_server(settings=settings) as rig:
        await rig.wake()
        rig.fake.silent_at = {"tools/list"}
        asked = rig.fake.count("tools/list")
        for _ in range(2):
            await rig.fake.notify("notifications/tools/list_changed")
            await trio.sleep(10)
        assert open_in(rig) == ["discovery"]
        assert rig.fake.count("tools/list") == asked + 2
        await rig.fake.notify("notifications/tools/list_changed")
        with pytest.raises(BreakerTripped) as caught:
            await rig.actor.address.ask(RefreshServer(server="s", operator=False))
        assert caught.value.data()["breaker"] == "discovery"
        assert await rig.call() == {}
        await trio.sleep(30)
        assert rig.fake.count("tools/list") == asked + 2
        rig.fake.silent_at, rig.fake.tools = set(), [tool("fresh")]
        await trio.sleep(60)
        assert (rig.fake.count("tools/list"), rig.listed[-1]) == (asked + 3, ["fresh"])
        assert open_in(rig) == []


async def test_lists_whose_pages_get_lost_are_left_alone(autojump_clock: MockClock) -> None:
    settings = ServerSettings(idle_timeout_s=0, probe_interval_s=1e6)
    async with running_server(settings=settings) as rig:
        await rig.wake()
        rig.fake.silent_at = {"tools/list"}
        for _ in range(2):
            assert open_in(rig) == []
            await rig.fake.notify("notifications/tools/list_changed")
            await trio.sleep(10)
            request = next(each for each in reversed(rig.fake.messages) if each["method"] == "tools/list")
            failure = Failure(id=json.dumps(request["id"]).encode(), cause="protocol", reason="HTTP 502", sent=True)
            await rig.actor.address.tell(Received(rig.actor.life.incarnation, (), failure=failure))
            await wait_all_tasks_blocked()
        assert open_in(rig) == ["discovery"]


async def test_a_change_of_what_a_call_may_take_closes_all(autojump_clock: MockClock) -> None:
    directory: Directory[ServerMessage] = Directory()
    async with running_server(settings=AWAKE) as rig:
        await hang(rig, 5)
        with directory.register("s~1f", rig.actor.address):
            await close_breakers(directory, ["other"])
            await refusal_of(rig)
            await close_breakers(directory, ["s"])
        assert await rig.call() == {}


async def test_a_session_of_the_legacy_era_has_the_breakers_of_its_server(autojump_clock: MockClock) -> None:
    async with remote(FakeServer(probe="both"), replace(ASKING, idle_timeout_s=0, breaker_failures=2)) as rig:
        failures = await failures_of([begin(rig, "crash", Caller()), begin(rig, "echo", Caller())])
        assert failures[0] is ServerExited
        assert await failures_of([begin(rig, "crash", Caller())]) == [ServerExited]
        assert (await rig.status()).era == "modern"
        assert (await refusal_of(rig)).data()["breaker"] == "server"
        assert await failures_of([begin(rig, "echo", Caller())]) == [BreakerTripped]
