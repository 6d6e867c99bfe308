"""Calls through a server actor: waking, limits, deadlines, crashes, cancellation."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.errors import (
    CallTimedOut,
    MalformedRequest,
    ServerExited,
)
from actors.life.states import State
from actors.messages import CallServer
from actors.server import ServerSettings
from tests.actors.server.rig import content, running_server
from tests.fakes.late_clock import lasting
from tests.fakes.mcp_server import FakeServer


@pytest.mark.case("P13")
async def test_200_calls_to_a_dormant_server_start_one_process(autojump_clock: MockClock) -> None:
    async with running_server() as rig:
        calls = [rig.submit(n=number) for number in range(192)]
        await rig.reach(State.READY)
        calls += [rig.submit(n=number) for number in range(192, 200)]
        assert [(await content(call))["n"] for call in calls] == list(range(200))
        assert rig.fake.starts == 1
        assert (await rig.status()).calls == 200


async def test_a_modern_server_is_called_with_the_envelope(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(probe="modern"), era=None) as rig:
        assert await rig.call(a=1) == {"a": 1}
        sent = next(found for found in rig.fake.messages if found["method"] == "tools/call")
        assert sent["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
        assert "subscriptions/listen" in rig.fake.asked[0]
        assert "initialize" not in rig.fake.asked[0]
        assert (await rig.status()).era == "modern"


async def test_an_idle_server_goes_dormant_and_its_tools_stay(autojump_clock: MockClock) -> None:
    async with running_server() as rig:
        await rig.call()
        before = trio.current_time()
        await rig.reach(State.DORMANT)
        assert 180 <= trio.current_time() - before < 182
        assert rig.listed == [["echo"]]
        assert await rig.call(again=True) == {"again": True}
        assert rig.fake.starts == 2


async def test_a_server_never_goes_dormant_with_a_call_in_flight(autojump_clock: MockClock) -> None:
    async with running_server() as rig:
        assert await rig.call("sleep", deadline_s=3000, s=1000) == {"s": 1000}
        before = trio.current_time()
        await rig.reach(State.DORMANT)
        assert 179 <= trio.current_time() - before <= 361
        assert rig.fake.starts == 1


async def test_a_call_that_takes_too_long_fails_and_is_cancelled_at_the_server(autojump_clock: MockClock) -> None:
    async with running_server() as rig:
        await rig.wake()
        before = trio.current_time()
        with pytest.raises(CallTimedOut) as caught:
            await rig.call("hang")
        assert caught.value.outcome == "unknown"
        assert trio.current_time() - before == lasting(60)
        await wait_all_tasks_blocked()
        sent = next(found for found in rig.fake.messages if found["method"] == "tools/call")
        cancelled = next(found for found in rig.fake.messages if found["method"] == "notifications/cancelled")
        assert cancelled["params"]["requestId"] == sent["id"]
        assert (await rig.status()).in_flight == 0


@pytest.mark.case("S35", "C12")
async def test_an_abandoned_call_is_cancelled_at_the_server_and_frees_its_place(autojump_clock: MockClock) -> None:
    async with running_server(settings=ServerSettings(max_in_flight=1)) as rig:
        await rig.wake()
        call = rig.submit("hang")
        await wait_all_tasks_blocked()
        assert (await rig.status()).in_flight == 1
        call.abandon()
        await wait_all_tasks_blocked()
        assert rig.fake.asked[0][-1] == "notifications/cancelled"
        assert await rig.call(c=3) == {"c": 3}


async def test_a_call_that_was_abandoned_while_it_waited_is_never_sent(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(start_s=10)) as rig:
        call = rig.submit("echo")
        await wait_all_tasks_blocked()
        call.abandon()
        await wait_all_tasks_blocked()
        assert (await rig.status()).waiting == 0
        await rig.wake()
        assert "tools/call" not in rig.fake.asked[0]


async def test_a_call_abandoned_before_its_message_is_read_is_not_admitted(autojump_clock: MockClock) -> None:
    async with running_server() as rig:
        reply = rig.actor.address.request(CallServer(server="s", method="tools/call", members=b'"name":"echo"'))
        reply.abandon()
        await wait_all_tasks_blocked()
        assert rig.fake.starts == 0
        assert (await rig.status()).calls == 0


async def test_a_call_during_the_drain_wakes_the_server_again_and_is_answered(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(ignores_eof=True)) as rig, trio.open_nursery() as nursery:
        await rig.wake()
        errors: list[Exception] = []

        async def send_to_sleep() -> None:
            try:
                await rig.sleep()
            except Exception as error:  # noqa: BLE001 - the test looks at it
                errors.append(error)

        nursery.start_soon(send_to_sleep)
        await wait_all_tasks_blocked()
        assert rig.actor.life.state is State.DRAINING
        assert await rig.call(d=4) == {"d": 4}
        assert rig.fake.starts == 2
        assert State.RESPAWNING not in rig.states
        assert "woken again" in str(errors[0])


async def test_a_call_that_outlasts_the_drain_fails_with_unknown_outcome(autojump_clock: MockClock) -> None:
    async with running_server() as rig:
        await rig.wake()
        call = rig.submit("hang")
        await wait_all_tasks_blocked()
        before = trio.current_time()
        await rig.sleep()
        assert 5 <= trio.current_time() - before < 11
        assert isinstance(call.failure, ServerExited)
        assert call.failure.outcome == "unknown"


def _resuming() -> CallServer:
    members = b'"name":"echo","arguments":{}'
    return CallServer(server="s", method="tools/call", members=members, retry=b'"requestState":"x"', resumes=True)


async def test_a_legacy_server_gets_no_request_that_goes_on_with_one(autojump_clock: MockClock) -> None:
    """It would carry it out once more."""
    async with running_server() as rig:
        with pytest.raises(MalformedRequest, match="requestState: not one that was given here for server 's'"):
            await rig.actor.address.ask(_resuming())
        assert rig.fake.count("tools/call") == 0
        assert await rig.call(a=1) == {"a": 1}


async def test_a_modern_server_gets_the_state_it_may_have_given(autojump_clock: MockClock) -> None:
    async with running_server(FakeServer(probe="modern"), era=None) as rig:
        await rig.actor.address.ask(_resuming())
        sent = next(each for each in rig.fake.messages if each["method"] == "tools/call")
        assert sent["params"]["requestState"] == "x"
