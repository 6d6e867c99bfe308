"""A changed resource as an event: of every server that tells of changes, asked for once, and told by its own name."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import trio
from jsonschema import Draft202012Validator
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.life.states import State
from actors.messages import SleepServer
from actors.principal import LOCAL
from actors.protocol.agreement.versions import Era
from supervisor.service.events.journal import Journal
from supervisor.service.events.of_servers import INTERVAL_S
from supervisor.service.events.sources import EventType, Origin, Told, Viewpoint
from supervisor.service.events.topics import Topics
from tests.fakes.exchanges import MODERN
from tests.fakes.mcp_server import FakeServer
from tests.fakes.published import Served, served

NAME, URI = "s:resources/updated", "file:///a"


class Rig:
    """The gateway before a server `s` that tells of changes, and `t` that does not."""

    def __init__(self, server: FakeServer, running: Served, clock: MockClock) -> None:
        self.clock = clock
        self.server = server
        self.running = running
        self.cursor: str | None = None

    async def types(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = (await self.running.ask("events/list", MODERN))["result"]["events"]
        return listed

    async def poll(self, uri: Any = URI, name: str = NAME, **more: Any) -> Any:
        asked = {"name": name, "arguments": {"uri": uri}, "cursor": self.cursor, **more}
        answer = await self.running.ask("events/poll", MODERN, **asked)
        if "result" in answer:
            self.cursor = answer["result"]["cursor"]
        return answer

    async def polled(self, uri: str = URI) -> list[Any]:
        """The data of what came since the last time."""
        return [event["data"] for event in (await self.poll(uri))["result"]["events"]]

    async def update(self, uri: str = URI) -> None:
        await self.server.update(uri)
        await self.wait(2 * INTERVAL_S)

    async def wait(self, seconds: float) -> None:
        """Let time pass, not faster than what follows from it."""
        await wait_all_tasks_blocked()
        for _ in range(10):
            self.clock.jump(seconds / 10)
            await wait_all_tasks_blocked()


@asynccontextmanager
async def before(clock: MockClock, era: Era = "legacy") -> AsyncIterator[Rig]:
    server = FakeServer(
        probe="modern" if era == "modern" else "error",
        capabilities={"tools": {}, "resources": {"subscribe": True}},
        honours={"toolsListChanged": True},
    )
    other = FakeServer(probe=server.probe, capabilities={"tools": {}, "resources": {}}, honours=server.honours)
    async with served({"s": server, "t": other}, era=era) as running, trio.open_nursery() as nursery:
        nursery.start_soon(running.gateway.parts.topics.run, trio.Event())
        await wait_all_tasks_blocked()
        yield Rig(server, running, clock)
        nursery.cancel_scope.cancel()


async def test_every_server_that_tells_of_changes_has_the_type(mock_clock: MockClock) -> None:
    async with before(mock_clock) as rig:
        (entry,) = await rig.types()
        assert (entry["name"], entry["delivery"]) == (NAME, ["poll", "push"])
        for schema in (entry["inputSchema"], entry["payloadSchema"]):
            Draft202012Validator.check_schema(schema)
        for name in ("t:resources/updated", "u:resources/updated", "s:resources/Updated", "resources/updated"):
            assert (await rig.poll(name=name))["error"]["code"] == -32023


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("uri", [URI, f"mcp://s/{URI}", f"s|{URI}"])
async def test_a_change_is_told_by_the_name_that_the_client_has_of_it(
    mock_clock: MockClock, era: Era, uri: str
) -> None:
    async with before(mock_clock, era) as rig:
        assert await rig.polled(uri) == []
        assert rig.server.watched == [URI]
        await rig.update()
        await rig.update("file:///b")
        answer = (await rig.poll(uri))["result"]
        (event,) = answer["events"]
        assert (event["name"], event["data"], answer["truncated"]) == (NAME, {"uri": uri}, False)
        assert event["eventId"]
        assert event["timestamp"].endswith("Z")
        assert await rig.polled(uri) == []


async def test_the_server_is_asked_once_for_all_and_told_when_nobody_wants_it_any_more(
    mock_clock: MockClock,
) -> None:
    async with before(mock_clock) as rig:
        await rig.poll()
        cursor = rig.cursor
        rig.cursor = None
        await rig.poll()
        assert rig.server.count("resources/subscribe") == 1
        await rig.update()
        assert len(await rig.polled()) == 1
        rig.cursor = cursor
        assert len(await rig.polled()) == 1, "each has a place of its own"
        await rig.wait(600)
        assert (rig.server.watched, rig.server.count("resources/unsubscribe")) == ([], 1)


async def test_what_changes_all_the_time_is_told_of_now_and_then(mock_clock: MockClock) -> None:
    async with before(mock_clock) as rig:
        await rig.poll()
        for _ in range(100):
            await rig.server.update(URI)
            await rig.wait(INTERVAL_S / 10)
        await rig.wait(1)
        assert len(await rig.polled()) == 11


async def test_after_a_pause_that_nobody_heard_through_something_may_be_missing(mock_clock: MockClock) -> None:
    async with before(mock_clock) as rig:
        await rig.poll()
        await rig.wait(600)
        answer = (await rig.poll())["result"]
        assert (answer["truncated"], answer["events"]) == (True, [])
        assert (await rig.poll())["result"]["truncated"] is False


async def test_a_new_process_is_asked_again_and_the_resource_may_have_changed(mock_clock: MockClock) -> None:
    async with before(mock_clock) as rig:
        await rig.poll()
        await rig.running.actors["s"].address.ask(SleepServer(server="s", principal=LOCAL))
        await rig.wait(1)
        assert rig.running.registry.statuses.value["s"].state is State.DORMANT
        await rig.running.execute("s:echo")
        await rig.wait(1)
        assert (rig.server.starts, rig.server.watched) == (2, [URI])
        assert await rig.polled() != []
        await rig.update()
        assert await rig.polled() == [{"uri": URI}]


@pytest.mark.parametrize("arguments", [{}, {"uri": ""}, {"uri": 1}, {"uri": "x" * 8193}, {"uri": URI, "all": True}])
async def test_arguments_that_do_not_fit_are_refused(mock_clock: MockClock, arguments: Any) -> None:
    async with before(mock_clock) as rig:
        answer = await rig.running.ask("events/poll", MODERN, name=NAME, arguments=arguments)
        assert answer["error"]["code"] == -32602
        (entry,) = await rig.types()
        assert not Draft202012Validator(entry["inputSchema"]).is_valid(arguments)


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_what_the_server_refuses_is_refused_in_its_words(mock_clock: MockClock, era: Era) -> None:
    async with before(mock_clock, era) as rig:
        refused = (await rig.poll("odd:x"))["error"]
        assert refused["code"] == -32602
        assert rig.server.watched == []


class Theirs:
    """A type of the server's own that is called alike. Implements `Source`."""

    def types(self, at: Viewpoint) -> Iterable[EventType]:
        del at
        return [EventType(NAME, msgspec.Raw(b'{"description":"theirs"}'))]

    def find(self, at: Viewpoint, name: str, arguments: bytes) -> Origin | None:
        del at
        return Origin(name, "s", "theirs", arguments) if name == NAME else None

    async def follow(self, origin: Origin, cursor: str | None, told: Told) -> None:
        told.active(cursor, truncated=False)
        await trio.sleep_forever()


async def test_a_type_of_the_servers_own_goes_before_it(mock_clock: MockClock) -> None:
    async with before(mock_clock) as rig, trio.open_nursery() as nursery:
        parts = rig.running.gateway.parts
        topics = Topics((Theirs(), *parts.topics.sources), Journal(lambda: 0.0))
        nursery.start_soon(topics.run, trio.Event())
        await wait_all_tasks_blocked()
        at = Viewpoint(LOCAL, parts.view.visible)
        assert [json.loads(bytes(each.definition))["description"] for each in topics.types(at)] == ["theirs"]
        async with topics.hold(at, NAME, msgspec.Raw(b"{}")) as topic:
            assert topic.origin.own == "theirs"
        nursery.cancel_scope.cancel()


async def test_no_more_is_asked_for_than_one_client_may(mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.subscribers.MAX_BYTES", 4000)
    async with before(mock_clock) as rig:
        answers = [await rig.poll(f"file:///{number}/" + "a" * 1000) for number in range(8)]
        refused = [answer["error"]["code"] for answer in answers if "error" in answer]
        assert refused
        assert len(rig.server.watched) == len(answers) - len(refused)
