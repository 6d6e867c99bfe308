"""The daemon's own events as event types: who has which, what they are told, and where they go on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.catalogue.snapshot import Catalogue
from actors.errors import InvalidArguments
from actors.kit import Latest
from actors.principal import LOCAL, Principal
from actors.protocol.wire.jsonrpc import ErrorObject
from actors.search.index import Index
from supervisor.config.load import parse
from supervisor.delivery.events import DaemonEvents
from supervisor.events.kinds import KINDS, EventData, OfServer
from supervisor.identity.people import principal_of, user_of
from supervisor.operations import Role
from supervisor.servers.deployment import Deployment, deploy
from supervisor.service.events.limits import MAX_EVENT_BYTES
from supervisor.service.events.own import MAX_PER_S, OwnEvents
from supervisor.service.events.sources import Terminated, Viewpoint
from supervisor.service.lookup.visible import Visible
from supervisor.usage.records import CallRecord
from tests.fakes.deployments import KEY
from tests.fakes.told_events import events_of
from tests.supervisor.events.test_audience import filled

ANA, BEN = principal_of("ana"), principal_of("ben")
NOTHING: Visible = Visible(Latest(Catalogue(index=Index.empty())), Latest({}), Latest(Deployment()))


class Holders:
    """Those of a configuration who have a launch. Implements `KnownPeople`."""

    def __init__(self, deployment: Latest[Deployment]) -> None:
        self._deployment = deployment
        self._known = set[str]()

    def launch_of(self, user: str) -> str:
        person = self._deployment.value.person(user, role="member", team="")
        assert person is not None
        return next(launch.name for launch in person.rights.launches)

    def people_of(self, launch: str) -> list[str]:
        return [user for user in sorted(self._known) if self.launch_of(user) == launch]

    async def introduce(self, principal: Principal) -> None:
        await trio.lowlevel.checkpoint()
        self._known.add(user_of(principal))


class Listener:
    """Implements `Told`."""

    def __init__(self) -> None:
        self.begun: list[tuple[str | None, bool]] = []
        self.events: list[Any] = []
        self.cursor: str | None = None

    def active(self, cursor: str | None, *, truncated: bool) -> None:
        self.begun.append((cursor, truncated))
        self.cursor = cursor

    def event(self, occurrence: msgspec.Raw, cursor: str | None) -> None:
        self.events.append(json.loads(bytes(occurrence)))
        self.cursor = cursor

    def checked(self, cursor: str | None) -> None:
        self.cursor = cursor

    def error(self, error: ErrorObject) -> None:
        raise AssertionError(error)

    def asked_every(self, milliseconds: int) -> None:
        raise AssertionError(milliseconds)


SERVERS: dict[str, Any] = {
    "clock": {"command": "x"},
    "vault": {"command": "x", "users": ["ana"]},
    "forge": {"command": "x", "env": {"KEY": "${user:KEY}"}},
}
"""`ana` has `vault`, and both users the other two; each has a `forge` to themselves."""


def configured(*users: str, without: str = "", **changed: Any) -> Deployment:
    people = {user: {"values": {"forge": {"KEY": f"the secret of {user}"}}} for user in users}
    servers = {name: entry for name, entry in (SERVERS | changed).items() if name != without}
    teams = {"both": {"members": [*users], "values": {"forge": {"OURS": "the secret of all"}}}}
    document = {"mcpServers": servers, "supervisor": {"identity": {"users": people, "teams": teams}}}
    read = parse(json.dumps(document), Path("/x/mcp.json"), {})
    assert [str(problem) for problem in read.problems] == []
    return deploy(read, key=KEY)


class World:
    """A daemon's events, and its configuration."""

    def __init__(self, **settings: Any) -> None:
        self.deployment = Latest(configured("ana", "ben"))
        self.holders = Holders(self.deployment)
        self.events: DaemonEvents = events_of(**settings)
        self.source = OwnEvents(self.events, self.deployment, self.holders)

    def tell(self, kind: str, server: str = "clock", principal: Principal = LOCAL, **fields: Any) -> None:
        self.events.log.append(of_server(kind, server, **fields), principal=principal)

    @asynccontextmanager
    async def following(
        self, kind: str, principal: Principal = LOCAL, cursor: str | None = None, **arguments: Any
    ) -> AsyncIterator[Listener]:
        origin = self.source.find(at(principal), kind, json.dumps(arguments).encode())
        assert origin is not None
        listener = Listener()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.source.follow, origin, cursor, listener)
            await wait_all_tasks_blocked()
            yield listener
            nursery.cancel_scope.cancel()


def at(principal: Principal, role: Role = "member") -> Viewpoint:
    return Viewpoint(principal, NOTHING, role)


def of_server(kind: str, server: str, **fields: Any) -> EventData:
    type_ = KINDS[kind]
    if issubclass(type_, OfServer):
        fields = {"server_id": server, "server_slug": server, "installation_id": server, "transport": "stdio"} | fields
    return filled(type_, **fields)


async def settle() -> None:
    await trio.sleep(60)
    await wait_all_tasks_blocked()


def test_a_topic_is_that_of_those_who_hear_the_same() -> None:
    source, kind = World().source, "mcp.server.away"
    ids = [
        origin.id
        for who in (at(LOCAL), at(ANA, "auditor"), at(ANA), at(BEN))
        if (origin := source.find(who, kind, b"{}")) is not None
    ]
    assert [ids.index(each) for each in ids] == [0, 0, 2, 3]


def test_wrong_arguments_are_said_before_anything_is_followed() -> None:
    with pytest.raises(InvalidArguments, match="there is no argument 'servr'; known are: server"):
        World().source.find(at(LOCAL), "mcp.server.away", b'{"servr":"clock"}')


async def test_what_happens_is_told_with_the_id_that_it_has_elsewhere(autojump_clock: MockClock) -> None:
    world = World()
    world.tell("mcp.server.away")
    async with world.following("mcp.server.away") as heard:
        assert heard.begun == [(world.events.places.show(1), False)]
        world.tell("mcp.server.back")
        world.tell("mcp.server.away", "vault", reason="it fell")
        await settle()
    (event,) = heard.events
    assert event.keys() == {"eventId", "name", "timestamp", "data"}
    assert (event["eventId"], event["name"]) == (world.events.places.show(3), "mcp.server.away")
    assert event["timestamp"] == "1970-01-01T00:16:40.000Z"
    assert (event["data"]["server_slug"], event["data"]["reason"]) == ("vault", "it fell")
    assert heard.cursor == event["eventId"]


async def test_arguments_narrow_it_to_some_servers(autojump_clock: MockClock) -> None:
    world = World()
    async with world.following("mcp.server.away", server="va*") as heard:
        world.tell("mcp.server.away")
        world.tell("mcp.server.away", "vault")
        world.tell("mcp.server.away")
        await settle()
        assert [event["data"]["server_slug"] for event in heard.events] == ["vault"]
        assert heard.cursor == world.events.places.show(3), "it goes on behind what was for others"


async def test_a_member_hears_of_what_is_theirs_and_of_no_more(autojump_clock: MockClock) -> None:
    world = World()
    async with world.following("mcp.server.away", BEN) as ben, world.following("mcp.server.away", ANA) as ana:
        world.tell("mcp.server.away", "vault", reason="a secret")
        world.tell("mcp.server.away", "clock", reason="a secret")
        await settle()
    bens, anas = ([event["data"] for event in each.events] for each in (ben, ana))
    shared = {"server_id": "clock", "server_slug": "clock", "installation_id": "clock", "transport": "stdio"}
    assert bens == [shared]
    assert anas == [shared | {"server_id": "vault", "server_slug": "vault", "installation_id": "vault"}, shared]
    shown = world.events.places.show
    assert [event["eventId"] for event in ben.events] == [shown(2, BEN)]
    assert shown(2, BEN) != shown(2, ANA) != shown(2), "how much happens to others stays unknown"


async def test_that_a_server_is_removed_hears_whoever_had_it(autojump_clock: MockClock) -> None:
    world, kind = World(), "mcp.server.unregistered"
    async with world.following(kind, BEN) as ben, world.following(kind, ANA) as ana:
        world.tell(kind, "clock")
        await settle()
        world.deployment.set(configured("ana", "ben", without="vault"))
        world.tell(kind, "vault")
        await settle()
        world.deployment.set(configured("ana", "ben", without="clock"))
        world.tell(kind, "clock")
        await settle()
    heard = [[each["data"]["server_slug"] for each in listener.events] for listener in (ana, ben)]
    assert heard == [["vault", "clock"], ["clock"]]


async def test_who_no_longer_has_a_server_hears_neither_of_it_nor_of_its_end(autojump_clock: MockClock) -> None:
    world = World()
    async with (
        world.following("mcp.server.away", ANA) as away,
        world.following("mcp.server.unregistered", ANA) as unregistered,
    ):
        for kind in ("mcp.server.away", "mcp.server.unregistered"):
            world.tell(kind, "clock")
        await settle()
        world.deployment.set(configured("ana", "ben", vault={"command": "x", "users": ["ben"]}))
        for kind in ("mcp.server.away", "mcp.server.unregistered"):
            world.tell(kind, "clock")
        world.tell("mcp.server.away", "vault")
        await settle()
        world.deployment.set(configured("ana", "ben", without="vault"))
        for kind in ("mcp.server.away", "mcp.server.unregistered"):
            world.tell(kind, "vault")
        await settle()
    assert [each["data"]["server_slug"] for each in away.events] == ["clock", "clock"]
    assert unregistered.events == []


async def test_of_a_server_that_is_removed_nobody_hears_anything_more(autojump_clock: MockClock) -> None:
    world = World()
    async with world.following("mcp.server.away", ANA) as ana:
        world.tell("mcp.server.away", "vault")
        await settle()
        world.deployment.set(configured("ana", "ben", without="vault"))
        world.tell("mcp.server.away", "vault")
        await settle()
    assert len(ana.events) == 1


async def test_of_a_launch_of_their_own_a_member_hears_all(autojump_clock: MockClock) -> None:
    world = World()
    async with world.following("mcp.server.crashed", BEN) as ben, world.following("mcp.server.crashed", ANA) as ana:
        world.tell("mcp.server.crashed", "clock", reason="a secret")
        world.tell("mcp.server.crashed", "forge", installation_id=world.holders.launch_of("ana"), reason="it fell")
        await settle()
    assert ben.events == []
    (event,) = ana.events
    assert (event["data"]["installation_id"], event["data"]["user_id"]) == ("forge", "ana")
    assert event["data"]["reason"] == "it fell"


async def test_of_a_launch_that_two_share_neither_hears_what_may_be_of_the_other(autojump_clock: MockClock) -> None:
    world, kind = World(), "mcp.server.crashed"
    world.deployment.set(configured("ana", "ben", forge={"command": "x", "env": {"KEY": "${team:OURS}"}}))
    launch = world.holders.launch_of("ana")
    assert launch == world.holders.launch_of("ben")
    async with world.following(kind, BEN) as ben, world.following(kind, ANA) as ana:
        world.tell(kind, "forge", installation_id=launch, reason="it fell")
        await settle()
    assert (ana.events, ben.events) == ([], [])


async def test_a_member_hears_of_their_own_calls(autojump_clock: MockClock) -> None:
    world = World()
    async with world.following("mcp.tool.executed", BEN) as ben:
        world.events.take([CallRecord(tool="run", time=7.0, principal=each) for each in (ANA, BEN, LOCAL)])
        await settle()
    assert [event["data"]["user_id"] for event in ben.events] == ["ben"]


async def test_whoever_is_no_user_any_more_hears_nothing(autojump_clock: MockClock) -> None:
    world = World()
    origin = world.source.find(at(ANA), "mcp.server.away", b"{}")
    assert origin is not None
    listener = Listener()

    async def leave() -> None:
        await wait_all_tasks_blocked()
        world.deployment.set(configured("ben"))
        world.tell("mcp.server.away")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(leave)
        with pytest.raises(Terminated) as raised:
            await world.source.follow(origin, None, listener)
    assert raised.value.error.code == -32024
    assert listener.events == []


@pytest.mark.parametrize("principal", [LOCAL, ANA])
async def test_it_goes_on_behind_a_cursor_as_far_as_the_log_reaches(
    autojump_clock: MockClock, principal: Principal
) -> None:
    world = World(max_kept_events=10)
    async with world.following("mcp.server.away", principal) as heard:
        world.tell("mcp.server.away")
        await settle()
    cursor, last = heard.cursor, heard.events[-1]["eventId"]
    for _ in range(3):
        world.tell("mcp.server.away")
    world.events.take([CallRecord(tool="run", time=7.0)] * 7)  # the log has no room for more
    async with world.following("mcp.server.away", principal, cursor) as again:
        await settle()
    assert again.begun == [(last, False)]
    assert len(again.events) == 3
    world.events.take([CallRecord(tool="run", time=7.0)])
    async with world.following("mcp.server.away", principal, cursor) as late:
        await settle()
    assert [truncated for _, truncated in late.begun] == [True]
    assert [event["eventId"] for event in late.events] == [event["eventId"] for event in again.events[1:]]


@pytest.mark.parametrize("cursor", ["1-1", "", "x", "1000000-99"])
async def test_a_cursor_of_another_life_is_a_gap_behind_which_all_of_this_life_follows(
    autojump_clock: MockClock, cursor: str
) -> None:
    world = World()
    world.tell("mcp.server.away")
    async with world.following("mcp.server.away", cursor=cursor) as heard:
        await settle()
    assert [truncated for _, truncated in heard.begun] == [True]
    assert [event["eventId"] for event in heard.events] == [world.events.places.show(1)]


async def test_nothing_of_a_kind_is_missing_though_the_log_is_full_of_calls(autojump_clock: MockClock) -> None:
    world = World(max_kept_events=10)
    async with world.following("mcp.server.away") as heard:
        world.events.take([CallRecord(tool="run", time=7.0)] * 50)
        world.tell("mcp.server.away")
        await settle()
    assert [truncated for _, truncated in heard.begun] == [False]
    assert len(heard.events) == 1


async def test_calls_come_at_a_pace_and_are_a_gap_where_they_are_too_many(autojump_clock: MockClock) -> None:
    world = World(max_kept_events=10 * MAX_PER_S)
    async with world.following("mcp.tool.executed") as heard:
        world.events.take([CallRecord(tool="run", time=7.0)] * 5 * MAX_PER_S)
        await trio.sleep(1.5)
        assert len(heard.events) == 2 * MAX_PER_S
        world.events.take([CallRecord(tool="run", time=7.0)] * 15 * MAX_PER_S)
        await settle()
    assert [truncated for _, truncated in heard.begun] == [False, True]
    assert len(heard.events) == 12 * MAX_PER_S
    assert heard.cursor == world.events.places.show(20 * MAX_PER_S)


async def test_an_event_that_is_too_large_comes_without_its_lists(autojump_clock: MockClock) -> None:
    world = World()
    async with world.following("mcp.tools.updated") as heard:
        world.tell("mcp.tools.updated", added_tools=("a" * 500,) * 1000, total_tools=1000)
        world.tell("mcp.tools.updated", added_tools=("a",), total_tools=1)
        await settle()
    assert [event["data"].get("added_tools") for event in heard.events] == [None, ["a"]]
    assert heard.events[0]["data"]["total_tools"] == 1000
    assert all(len(json.dumps(event)) < MAX_EVENT_BYTES for event in heard.events)


async def test_calls_that_have_ended_are_before_whoever_begins_now(autojump_clock: MockClock) -> None:
    world = World()
    ended = [CallRecord(tool="run", time=7.0)]

    def settle_calls() -> None:
        world.events.take([ended.pop()] if ended else [])

    world.events.settle = settle_calls
    async with world.following("mcp.tool.executed") as heard:
        await settle()
    assert heard.events == []
    assert world.events.log.newest.value == 1
