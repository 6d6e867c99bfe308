"""A server that refuses what comes too often has done nothing of it: it is asked again, later."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from actors.errors import ServerError, TooManyCalls
from actors.kit import Reply
from actors.life.policy import RestartPolicy
from actors.life.states import State
from actors.messages import Result, ServerListed
from actors.protocol.wire.peer import Failure
from actors.server import ServerSettings
from actors.server.calls.queue import MAX_PUT_OFF
from actors.server.inbox import Received
from tests.actors.server.rig import Rig, content, running_server
from tests.fakes.mcp_server import FakeServer

AWAKE = ServerSettings(idle_timeout_s=0)


async def refuse(rig: Rig, method: str = "tools/call", **how: Any) -> None:
    """Refuse the newest request of a method, as by HTTP 429."""
    id_ = json.dumps(next(each["id"] for each in reversed(rig.fake.messages) if each.get("method") == method)).encode()
    settings = {"cause": "overloaded", "reason": "it is asked too often (HTTP 429)", "sent": False, **how}
    await rig.actor.address.tell(Received(rig.actor.life.incarnation, (), failure=Failure(id=id_, **settings)))


async def asked(rig: Rig, times: int, method: str = "tools/call") -> None:
    """Wait until the server was asked so often."""
    while rig.fake.count(method) < times:  # noqa: ASYNC110  (on a virtual clock)
        await trio.sleep(0.1)


async def begun(rig: Rig, **how: Any) -> Reply[Result]:
    """Begin a call that its server does not answer."""
    rig.fake.silent_at = {"tools/call"}
    reply, before = rig.submit("echo", **how, n=1), rig.fake.count("tools/call")
    await asked(rig, before + 1)
    return reply


async def test_a_call_that_came_too_often_is_sent_again_when_its_server_says(autojump_clock: MockClock) -> None:
    async with running_server(settings=AWAKE) as rig:
        await rig.wake()
        reply = await begun(rig)
        rig.fake.silent_at = set()
        began = trio.current_time()
        await refuse(rig, retry_after_s=20.0)
        assert await content(reply) == {"n": 1}
        assert 20.0 <= trio.current_time() - began <= 22.0
        assert rig.fake.count("tools/call") == 2


async def test_a_call_that_waits_as_it_came_too_often_keeps_no_place_from_others(autojump_clock: MockClock) -> None:
    async with running_server(settings=ServerSettings(idle_timeout_s=0, max_in_flight=1)) as rig:
        await rig.wake()
        reply = await begun(rig)
        rig.fake.silent_at = set()
        await refuse(rig, retry_after_s=20.0)
        before = trio.current_time()
        assert await rig.call(n=2) == {"n": 2}
        assert trio.current_time() == before
        assert not reply.settled
        await reply.wait()


async def test_a_call_that_comes_too_often_again_and_again_is_refused_and_was_not_sent(
    autojump_clock: MockClock,
) -> None:
    async with running_server(settings=AWAKE) as rig:
        await rig.wake()
        for _ in range(6):  # more than open a breaker
            reply = await begun(rig)
            for again in range(MAX_PUT_OFF + 1):
                await asked(rig, rig.fake.count("tools/call") + (again > 0))
                await refuse(rig)
            with pytest.raises(TooManyCalls, match="it is asked too often") as raised:
                await reply.wait()
            assert raised.value.outcome == "not_sent"
            assert rig.actor.status().breakers == ()


async def test_a_call_whose_server_says_to_come_after_its_deadline_does_not_wait(autojump_clock: MockClock) -> None:
    async with running_server(settings=AWAKE) as rig:
        await rig.wake()
        reply = await begun(rig, deadline_s=10.0)
        began = trio.current_time()
        await refuse(rig, retry_after_s=20.0)
        with pytest.raises(TooManyCalls) as raised:
            await reply.wait()
        assert (raised.value.outcome, raised.value.retry_after_s) == ("not_sent", 20.0)
        assert trio.current_time() == began


async def test_a_call_of_a_server_that_says_when_it_is_back_may_have_run_and_opens_no_breaker(
    autojump_clock: MockClock,
) -> None:
    async with running_server(settings=AWAKE) as rig:
        await rig.wake()
        for _ in range(6):
            reply = await begun(rig)
            await refuse(rig, cause="unavailable", sent=True, retry_after_s=2.0)
            with pytest.raises(ServerError) as raised:
                await reply.wait()
            assert (raised.value.outcome, raised.value.retry_after_s) == ("unknown", 2.0)
        assert rig.fake.count("tools/call") == 6
        assert rig.actor.status().breakers == ()


async def test_lists_that_are_asked_for_too_often_are_read_when_their_server_says(autojump_clock: MockClock) -> None:
    fake = FakeServer()
    fake.silent_at = {"tools/list"}
    async with running_server(fake, settings=AWAKE, policy=RestartPolicy()) as rig:
        with trio.move_on_after(1):
            await rig.wake()
        for times, waits_s in ((1, 7.0), (2, 20.0)):
            began = trio.current_time()
            await refuse(rig, "tools/list", retry_after_s=waits_s)
            await asked(rig, times + 1, "tools/list")
            assert waits_s <= trio.current_time() - began <= waits_s + 2
            assert rig.actor.life.state is State.READY
        fake.silent_at = set()
        await refuse(rig, "tools/list")
        await trio.sleep(10)
        assert [entry.name for entry in rig.of(ServerListed)[-1].offer.tools] == ["echo"]
