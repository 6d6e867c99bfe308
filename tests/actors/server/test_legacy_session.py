"""A remote server that speaks both eras is spoken to in the era of who may be asked."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.errors import CallTimedOut, ServerExited
from actors.life.states import State
from actors.messages import CallServer, ServerListed
from actors.protocol.agreement.capabilities import OF_CLIENTS
from actors.protocol.agreement.era import Terms
from actors.protocol.changes import SUBSCRIBE
from actors.protocol.exchanges import Interest
from actors.server import ServerSettings
from actors.server.parts.legacy_session import PAUSE_S
from actors.server.settings import IDLE_S
from actors.subscribers import Subscribers
from tests.actors.server.rig import Rig, content, running_server
from tests.actors.server.test_dialogue import Caller
from tests.fakes.mcp_server import FakeServer
from tests.fakes.memory import MemoryTransport
from tests.fakes.turns import at_once

ASKING = ServerSettings(terms=Terms(capabilities=OF_CLIENTS), question_timeout_s=100)
CAN_BE_ASKED = Interest(capabilities=OF_CLIENTS)
YES = msgspec.Raw(b'{"action":"accept","content":{"name":"Ada"}}')


class Remote(MemoryTransport):
    """As if the server were behind an address."""

    kind = "http"


@asynccontextmanager
async def remote(fake: FakeServer, settings: ServerSettings = ASKING, **more: Any) -> AsyncIterator[Rig]:
    """Run the actor of a remote server that is up, in the modern era if it speaks that."""
    async with running_server(fake, transport=Remote(fake.serve), settings=settings, era=None, **more) as rig:
        await rig.wake()
        await rig.until_listed(1)
        yield rig


def begin(rig: Rig, tool: str, caller: Caller | None = None, **arguments: Any) -> Any:
    """Call a tool as a legacy client does; as one that can be asked, if there is a caller."""
    message = CallServer(
        server="s",
        method="tools/call",
        members=b'"name":' + json.dumps(tool).encode() + b',"arguments":' + json.dumps(arguments).encode(),
        name=tool,
        interest=CAN_BE_ASKED if caller is not None else Interest(),
        exchange=caller,
        by_requests=True,
    )
    return rig.actor.address.request(message)


def calls(fake: FakeServer) -> list[tuple[str, str]]:
    """The calls that the server got: the tool, and the era of the conversation."""
    found = []
    for message in fake.messages:
        if message.get("method") == "tools/call":
            meta = message["params"].get("_meta", {})
            era = "modern" if "io.modelcontextprotocol/protocolVersion" in meta else "legacy"
            found.append((message["params"]["name"], era))
    return found


async def test_a_legacy_client_that_can_be_asked_is_asked_by_a_server_that_speaks_both_eras(
    autojump_clock: MockClock,
) -> None:
    fake, caller = FakeServer(probe="both"), Caller()
    async with remote(fake) as rig:
        reply = begin(rig, "ask", caller)
        await caller.asked.wait()
        caller.questions[0][1].answer(YES)
        assert (await content(reply))["got"]["result"]["content"] == {"name": "Ada"}
        assert (await reply.wait()).era == "legacy"
        await rig.call("echo", exchange=caller, interest=CAN_BE_ASKED)  # of a modern client
        await content(begin(rig, "echo"))  # of a legacy client that declares nothing
        assert calls(fake) == [("ask", "legacy"), ("echo", "modern"), ("echo", "modern")]
        status = await rig.status()
        assert (status.era, status.legacy_session, status.calls, status.in_flight) == ("modern", True, 3, 0)
        assert fake.count("tools/list") == len(rig.of(ServerListed)) == 1
        assert rig.eras == ["modern"]


@pytest.mark.parametrize("probe", ["modern", "error"])
async def test_a_server_of_one_era_is_called_in_that_and_asked_for_a_session_once_at_most(
    autojump_clock: MockClock, probe: Any
) -> None:
    fake = FakeServer(probe=probe)
    async with remote(fake) as rig:
        for _ in range(3):
            assert await content(begin(rig, "echo", Caller(), n=1)) == {"n": 1}
        assert fake.count("initialize") == 1
        assert [era for _, era in calls(fake)] == [rig.actor.status().era] * 3
        assert not (await rig.status()).legacy_session
        await rig.restart()
        await content(begin(rig, "echo", Caller(), n=1))
        assert fake.count("initialize") == 2, "who restarts a server may have changed it"


async def test_a_process_gets_no_second_one_for_a_legacy_client(autojump_clock: MockClock) -> None:
    fake = FakeServer(probe="both")
    async with running_server(fake, settings=ASKING, era=None) as rig:
        await rig.wake()
        await content(begin(rig, "echo", Caller(), n=1))
        assert (fake.starts, calls(fake)) == (1, [("echo", "modern")])


async def test_an_entry_with_an_era_is_spoken_to_in_no_other(autojump_clock: MockClock) -> None:
    fake = FakeServer(probe="both")
    settings = msgspec.structs.replace(ASKING, terms=Terms(capabilities=OF_CLIENTS, only="modern"))
    async with remote(fake, settings) as rig:
        await content(begin(rig, "echo", Caller(), n=1))
        assert (fake.starts, calls(fake)) == (1, [("echo", "modern")])


async def test_where_no_session_can_be_opened_the_call_goes_on_and_none_is_asked_for_in_a_while(
    autojump_clock: MockClock,
) -> None:
    fake = FakeServer(probe="both", exits_at="initialize")
    async with remote(fake) as rig:
        for _ in range(3):
            assert await content(begin(rig, "echo", Caller(), n=1)) == {"n": 1}
        assert fake.count("initialize") == 1
        await trio.sleep(PAUSE_S)
        fake.exits_at = None
        assert await content(begin(rig, "echo", Caller(), n=2)) == {"n": 2}
        assert calls(fake) == [("echo", "modern")] * 3 + [("echo", "legacy")]


async def test_a_session_that_breaks_fails_its_calls_alone(autojump_clock: MockClock) -> None:
    fake = FakeServer(probe="both")
    async with remote(fake) as rig:
        reply = begin(rig, "crash", Caller())
        with pytest.raises(ServerExited) as failed:
            await reply.wait()
        assert failed.value.outcome == "unknown"
        assert (await rig.status()).state is State.READY
        assert (await rig.status()).incarnation == 1
        assert await rig.call(n=1) == {"n": 1}
        assert await content(begin(rig, "echo", Caller(), n=2)) == {"n": 2}
        assert calls(fake) == [("crash", "legacy"), ("echo", "modern"), ("echo", "legacy")]


async def test_a_call_in_the_session_can_be_cancelled_and_ends_by_its_deadline(autojump_clock: MockClock) -> None:
    fake = FakeServer(probe="both")
    async with remote(fake) as rig:
        reply = begin(rig, "hang", Caller())
        await fake.called.wait()
        reply.abandon()
        await fake.cancelled.wait()
        with pytest.raises(CallTimedOut):
            await begin(rig, "hang", Caller()).wait()


async def test_the_session_is_closed_when_idle_or_told_to_sleep_and_opened_again_by_a_call(
    autojump_clock: MockClock,
) -> None:
    fake = FakeServer(probe="both")
    async with remote(fake) as rig:
        await content(begin(rig, "echo", Caller(), n=1))
        await trio.sleep(IDLE_S + 60)
        await wait_all_tasks_blocked()
        assert (fake.exits, (await rig.status()).legacy_session) == (2, False)
        assert await content(begin(rig, "echo", Caller(), n=2)) == {"n": 2}
        assert rig.actor.life.state is State.DORMANT, "nobody needs the other conversation"
        await rig.sleep()
        await trio.sleep(30)
        assert (fake.starts, fake.exits) == (3, 3)
        await rig.wake()
        await content(begin(rig, "echo", Caller(), n=3))
        await rig.stop()


async def test_what_changes_in_the_session_is_told_to_who_is_subscribed(autojump_clock: MockClock) -> None:
    fake, subscribers = FakeServer(probe="both"), Subscribers(at_once)
    told: list[str] = []
    subscribers.add("s", "memo://one", lambda: told.append("one"))
    async with remote(fake, subscribers=subscribers) as rig:
        told.clear()
        await content(begin(rig, "echo", Caller(), n=1))
        await wait_all_tasks_blocked()
        assert fake.watched == ["memo://one"]
        assert told == [], "a session that is opened is no reason to read anything again"
        subscribers.add("s", "memo://two", lambda: told.append("two"))
        rig.actor.address.request(
            CallServer(server="s", method=SUBSCRIBE, members=b'"uri":"memo://two"', name="memo://two")
        )
        await wait_all_tasks_blocked()
        assert fake.watched == ["memo://one", "memo://two"]
        await fake.update("memo://two")
        await wait_all_tasks_blocked()
        assert told == ["two"]


async def test_no_two_conversations_have_an_id_in_common(autojump_clock: MockClock) -> None:
    """A server without sessions may find whose an answer is by its id alone."""
    fake = FakeServer(probe="both")
    async with remote(fake) as rig:
        for caller in (None, Caller()):
            await content(begin(rig, "echo", caller, n=1))
    assert calls(fake) == [("echo", "modern"), ("echo", "legacy")]
    ids = [message["id"] for message in fake.messages if "method" in message and "id" in message]
    assert len(set(ids)) == len(ids)
