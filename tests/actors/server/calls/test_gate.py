"""A call of a tool is sent only to what is approved as its server defines it now; until that is known it waits."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.catalogue.marks import digest_of
from actors.catalogue.trust import Pins, Trust
from actors.errors import ServerStarting, ToolHeld
from actors.kit import Reply
from actors.life.states import State
from actors.messages import CallServer, Result, ServerListed
from actors.registry.pinning import Pinning
from actors.server import ServerSettings
from tests.actors.server.rig import Rig, running_server
from tests.fakes.mcp_server import FakeServer, tool

GOOD, EVIL = tool("echo", "Says it again."), tool("echo", "Says it to everybody.")
CHANGED = "notifications/tools/list_changed"


class Strict(Pinning):
    """Pins that approve `GOOD`; `trust` may be changed."""

    def __init__(self, trust: Trust = "strict") -> None:
        self.trust = trust
        super().__init__(lambda server: self.trust, known={"s": Pins({"echo": (digest_of(GOOD),)})})


@asynccontextmanager
async def strict(keeper: Strict | None = None, **more: Any) -> AsyncIterator[Rig]:
    """A server that was listed with `GOOD`, and is ready."""
    async with running_server(FakeServer(tools=[GOOD]), keeper=keeper or Strict(), **more) as rig:
        await rig.wake()
        await rig.until_listed(1)
        yield rig


async def reason_of(reply: Reply[Result]) -> str:
    with pytest.raises(ToolHeld) as caught:
        await reply.wait()
    assert caught.value.details is not None
    return str(caught.value.details["reason"])


@pytest.mark.case("X01")
async def test_a_change_that_was_told_of_is_read_before_anything_is_called(autojump_clock: MockClock) -> None:
    async with strict() as rig:
        rig.fake.tools = [EVIL]
        await rig.fake.notify(CHANGED)
        await wait_all_tasks_blocked()
        reply = rig.submit()
        await wait_all_tasks_blocked()
        assert not reply.settled
        assert await reason_of(reply) == "changed"
        rig.fake.tools = [GOOD]
        await rig.fake.notify(CHANGED)
        await wait_all_tasks_blocked()
        assert await rig.call() == {}
        assert rig.fake.count("tools/call") == 1


@pytest.mark.case("X01")
async def test_after_its_end_a_server_is_listed_before_anything_is_called(autojump_clock: MockClock) -> None:
    async with strict() as rig:
        rig.fake.tools = [EVIL]
        dying = rig.submit("echo")
        await dying.wait()
        await rig.restart()
        assert await reason_of(rig.submit()) == "changed"
        assert rig.fake.asked[-1].count("tools/call") == 0
        await rig.sleep()
        assert await reason_of(rig.submit()) == "changed"  # it wakes it, and waits
        rig.fake.tools = [GOOD]
        await rig.sleep()
        assert await rig.call() == {}
        assert rig.fake.asked[-1].index("tools/list") < rig.fake.asked[-1].index("tools/call")


async def test_calls_wait_while_a_list_is_read_and_others_do_not(autojump_clock: MockClock) -> None:
    async with strict(settings=ServerSettings(discovery_timeout_s=20.0)) as rig:
        rig.fake.silent_at = {"tools/list"}
        refreshed = trio.Event()

        async def refresh() -> None:
            with pytest.raises(Exception, match="could not be read in time"):
                await rig.refresh()
            refreshed.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(refresh)
            await wait_all_tasks_blocked()
            reply = rig.submit()
            prompt = rig.actor.address.request(
                CallServer(server="s", method="prompts/get", members=b'"name":"x"', name="x")
            )
            with pytest.raises(Exception, match="unknown method"):
                await prompt.wait()
            assert not reply.settled
            await refreshed.wait()
        assert await reason_of(reply) == "unlisted"
        rig.fake.silent_at = set()
        await rig.refresh()
        assert await rig.call() == {}
        assert rig.fake.count("tools/call") == 1


async def test_a_list_that_is_empty_for_once_lets_nothing_through(autojump_clock: MockClock) -> None:
    async with strict() as rig:
        rig.fake.tools = []
        await rig.refresh()
        assert rig.listed[-1] == ["echo"]
        assert await reason_of(rig.submit()) == "unlisted"


async def test_what_was_never_listed_is_not_called(autojump_clock: MockClock) -> None:
    async with strict() as rig:
        assert await reason_of(rig.submit("other")) == "unlisted"
        assert rig.fake.count("tools/call") == 0


async def test_who_tells_of_changes_without_end_is_not_called(autojump_clock: MockClock) -> None:
    async with strict() as rig:
        asked = rig.submit(deadline_s=5.0)

        async def flood() -> None:
            while True:
                await rig.fake.notify(CHANGED)
                await trio.sleep(0.01)

        async with trio.open_nursery() as nursery:
            await asked.wait()
            nursery.start_soon(flood)
            await trio.sleep(0.005)
            rig.fake.silent_at = {"tools/list"}
            with pytest.raises(ServerStarting, match="its tools are being read again"):
                await rig.submit(deadline_s=5.0).wait()
            nursery.cancel_scope.cancel()


async def test_where_nothing_is_held_no_call_waits(autojump_clock: MockClock) -> None:
    async with strict(Strict("notice")) as rig:
        rig.fake.tools = [EVIL]
        await rig.fake.notify(CHANGED)
        await wait_all_tasks_blocked()
        assert await rig.call() == {}
        assert rig.fake.count("tools/list") == 1


def for_good(rig: Rig) -> Reply[Result]:
    """Call the tool as it is defined by `GOOD`, and as nothing else."""
    members = b'"name":"echo","arguments":{}'
    message = CallServer(
        server="s", method="tools/call", members=members, name="echo", definition=digest_of(GOOD), deadline_s=20.0
    )
    return rig.actor.address.request(message)


@pytest.mark.parametrize("trust", ["open", "notice", "strict"])
async def test_a_call_for_one_definition_waits_for_the_lists_and_reaches_no_other(
    autojump_clock: MockClock, trust: Trust
) -> None:
    async with strict(Strict(trust)) as rig:
        await for_good(rig).wait()
        rig.fake.tools = [EVIL]
        await rig.fake.notify(CHANGED)
        await wait_all_tasks_blocked()
        reply = for_good(rig)
        await wait_all_tasks_blocked()
        assert not reply.settled
        assert await reason_of(reply) == "changed"
        await rig.sleep()
        assert await reason_of(for_good(rig)) == "changed", "it is woken, and read first"
        rig.fake.tools = []
        await rig.sleep()
        assert await reason_of(for_good(rig)) == "unlisted"
        rig.fake.tools = [GOOD]
        await rig.sleep()
        await for_good(rig).wait()
        assert rig.fake.asked[-1].index("tools/list") < rig.fake.asked[-1].index("tools/call")


async def test_what_may_have_been_told_while_nobody_heard_it_is_read_soon(autojump_clock: MockClock) -> None:
    fake = FakeServer(tools=[GOOD], probe="modern", honours={"toolsListChanged": True})
    async with running_server(fake, keeper=Strict(), era="modern") as rig:
        await rig.wake()
        await rig.until_listed(1)
        await trio.sleep(5)
        readings = fake.count("tools/list")
        fake.tools = [EVIL]
        await fake.end_subscription()
        await trio.sleep(2)
        assert len(fake.subscriptions) == 2
        await wait_all_tasks_blocked()
        began = trio.current_time()
        assert await reason_of(rig.submit()) == "changed"
        assert trio.current_time() - began < 3
        assert fake.count("tools/list") == readings + 1


async def test_a_held_call_leaves_room_for_others(autojump_clock: MockClock) -> None:
    async with strict(settings=ServerSettings(max_in_flight=1)) as rig:
        for _ in range(3):
            assert await reason_of(rig.submit("other")) == "unlisted"
        assert await rig.call() == {}
        assert rig.actor.life.state is State.READY


async def test_what_is_known_of_an_earlier_run_is_no_reading(autojump_clock: MockClock) -> None:
    async with strict() as rig:
        pass
    known = rig.of(ServerListed)[-1].offer
    assert json.loads(bytes(known.tools[0].definition)) == GOOD
    async with running_server(FakeServer(tools=[EVIL]), keeper=Strict(), known=known) as rig:
        assert await reason_of(rig.submit()) == "changed"
        assert rig.fake.count("tools/call") == 0
