"""Servers that a search has started ahead: which, how many, for how long, and whether that was right."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.errors import ServerError, ValuesMissing
from actors.kit import Address
from actors.life.states import State
from actors.messages import ServerStatus, SleepServer, WakeServer
from actors.principal import LOCAL, Principal
from actors.router import Message
from supervisor.config import ServerConfig, Settings
from supervisor.metrics.meters import Meters
from supervisor.servers.warm_up import NEXT_CALL_S, WarmUp
from supervisor.service.client import Client
from supervisor.usage.records import CallRecord
from tests.fakes.deployments import deployment

CLIENT = Client(version="2025-11-25", name="editor")
ANOTHER = Client(version="2025-11-25", name="another")
ADA = msgspec.structs.replace(CLIENT, principal=Principal("ada"))
START_S = 2.0
UNUSED_S = 30.0


class World:
    """Servers that sleep, and start in two seconds when they are told to."""

    def __init__(self, *servers: str, **settings: Any) -> None:
        self.asked: list[tuple[str, str, bool]] = []
        self.statuses = {
            name: ServerStatus(server=name, state=State.DORMANT, wanted="dormant", since=0) for name in servers
        }
        self.fails: set[str] = set()
        self.has_room = True
        self.meters = Meters()
        self.own: dict[tuple[str, Principal], str] = {}
        kept = settings.pop("kept", ())
        entries = [
            ServerConfig(name=name, command="c", idle_timeout_s=0.0 if name in kept else 180.0) for name in servers
        ]
        self.warm_up = WarmUp(
            cast("Address[Message]", self),
            self.launch_of,
            lambda: self.has_room,
            self.statuses.get,
            deployment(*entries, **{"warm_up": 2, "warm_up_unused_s": UNUSED_S, **settings}),
            trio.current_time,
            self.meters,
        )

    def launch_of(self, server: str, principal: Principal) -> str:
        if server == "personal" and principal == LOCAL:
            raise ValuesMissing("no values", server=server)
        return self.own.get((server, principal), server)

    def change(self, name: str, **more: Any) -> None:
        self.statuses[name] = msgspec.structs.replace(self.statuses[name], **more)

    async def ask(self, message: WakeServer | SleepServer) -> None:
        """In place of the router."""
        launch = self.launch_of(message.server, message.principal)
        match message:
            case WakeServer(urgent=urgent):
                self.asked.append(("wake", launch, urgent))
                self.change(launch, state=State.SPAWNING)
                await trio.sleep(START_S)
                if message.server in self.fails:
                    self.change(launch, state=State.RESPAWNING, last_error="it broke")
                    raise ServerError("it broke", server=launch)
                self.change(launch, state=State.READY, since=trio.current_time())
            case SleepServer():
                self.asked.append(("sleep", launch, False))
                self.change(launch, state=State.DORMANT)

    def search(self, server: str, client: Client = CLIENT) -> None:
        launch = self.own.get((server, client.principal), server)
        self.warm_up.consider(client, server, self.statuses[launch])

    def call(self, server: str, client: Client = CLIENT, *, waited_s: float = 0.0, took_s: float = 0.0) -> None:
        """A call ends now."""
        record = CallRecord(
            time=trio.current_time(),
            principal=client.principal,
            client=client.name,
            server=server,
            tool="t",
            waited_ms=waited_s * 1000,
            took_ms=took_s * 1000,
        )
        if server:
            self.change(server, calls=self.statuses[server].calls + 1)
        self.warm_up.take([record])

    def outcomes(self) -> dict[str, float]:
        return {name: count for name, count in self.meters.warm_ups().items() if count}


@asynccontextmanager
async def running(*servers: str, **settings: Any) -> AsyncIterator[World]:
    world = World(*servers, **settings)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.warm_up.run)
        await wait_all_tasks_blocked()
        yield world
        nursery.cancel_scope.cancel()


async def test_a_sleeping_server_is_started_once_and_sleeps_again_if_nobody_calls_it(autojump_clock: MockClock) -> None:
    async with running("a") as world:
        world.search("a")
        world.search("a")
        await trio.sleep(START_S + 1)
        world.search("a")
        await trio.sleep(UNUSED_S - 2)
        assert world.asked == [("wake", "a", False)]
        await trio.sleep(2)
        assert world.asked == [("wake", "a", False), ("sleep", "a", False)]
        await trio.sleep(NEXT_CALL_S)
        assert world.outcomes() == {"unused": 1}


async def test_a_call_that_comes_next_makes_it_right_and_it_stays_awake(autojump_clock: MockClock) -> None:
    async with running("a", "b") as world:
        world.search("a")
        await trio.sleep(10)
        world.call("")
        world.call("a", took_s=1.0)
        assert world.outcomes() == {"right": 1, "saved_s": START_S}
        await trio.sleep(NEXT_CALL_S)
        assert world.asked == [("wake", "a", False)]
        assert world.outcomes() == {"right": 1, "saved_s": START_S}


async def test_a_call_during_the_start_gains_what_of_it_is_over(autojump_clock: MockClock) -> None:
    async with running("a") as world:
        world.search("a")
        await trio.sleep(1.5)
        world.call("a", waited_s=0.5, took_s=0.25)
        assert world.outcomes() == {"right": 1, "saved_s": 0.75}


async def test_a_call_elsewhere_makes_it_wrong_and_it_sleeps_as_if_there_were_none(autojump_clock: MockClock) -> None:
    async with running("a", "b") as world:
        world.search("a")
        await trio.sleep(10)
        world.call("b")
        assert world.outcomes() == {"wrong": 1}
        await trio.sleep(UNUSED_S)
        assert world.asked[1:] == [("sleep", "a", False)]
        assert world.outcomes() == {"wrong": 1}


@pytest.mark.parametrize("other", [ANOTHER, ADA])
async def test_calls_of_others_decide_nothing_but_keep_it_awake(autojump_clock: MockClock, other: Client) -> None:
    async with running("a") as world:
        world.search("a")
        await trio.sleep(10)
        world.call("a", other)
        assert world.outcomes() == {}
        await trio.sleep(UNUSED_S)
        assert world.asked == [("wake", "a", False)]


async def test_a_call_that_began_before_the_search_is_not_the_next(autojump_clock: MockClock) -> None:
    async with running("a", "b") as world:
        await trio.sleep(5)
        world.search("a")
        await trio.sleep(10)
        world.call("b", took_s=12.0)
        assert world.outcomes() == {}


@pytest.mark.parametrize(
    "status",
    [
        {"state": State.READY},
        {"state": State.SPAWNING},
        {"state": State.FAILED},
        {"state": State.RESPAWNING},
        {"state": State.STOPPED},
        {"last_error": "it broke"},
        {"reason": "it broke"},
        {"requires_reauth": True},
        {"transport": "http"},
    ],
)
async def test_only_a_process_that_sleeps_and_is_well_is_started(
    autojump_clock: MockClock, status: dict[str, Any]
) -> None:
    async with running("a") as world:
        seen = world.statuses["a"]
        world.change("a", **status)
        world.search("a")
        world.warm_up.consider(CLIENT, "a", seen)  # as it was reported a moment ago
        await trio.sleep(1)
        assert world.asked == []


async def test_no_more_than_are_set_wait_for_a_call(autojump_clock: MockClock) -> None:
    async with running("a", "b", "c", warm_up=2) as world:
        for name in "abc":
            world.search(name)
        await trio.sleep(10)
        assert {what[:2] for what in world.asked} == {("wake", "a"), ("wake", "b")}
        world.call("a")
        await wait_all_tasks_blocked()
        world.search("c")
        await trio.sleep(1)
        assert world.asked[-1] == ("wake", "c", False)


async def test_without_the_setting_or_room_nothing_is_started(autojump_clock: MockClock) -> None:
    async with running("a", warm_up=0) as world:
        world.search("a")
        await trio.sleep(1)
        assert world.asked == []
    async with running("a") as world:
        world.has_room = False
        world.search("a")
        await trio.sleep(1)
        assert world.asked == []
    assert Settings().warm_up == 0


async def test_one_that_cannot_be_started_is_not_tried_again(autojump_clock: MockClock) -> None:
    async with running("a") as world:
        world.fails.add("a")
        world.search("a")
        await trio.sleep(10)
        assert world.outcomes() == {"failed": 1}
        assert world.asked == [("wake", "a", False), ("sleep", "a", False)]
        world.search("a")
        await trio.sleep(NEXT_CALL_S)
        assert len(world.asked) == 2
        assert world.outcomes() == {"failed": 1}


async def test_one_that_is_kept_running_stays(autojump_clock: MockClock) -> None:
    async with running("a", kept=("a",)) as world:
        world.search("a")
        await trio.sleep(NEXT_CALL_S)
        assert world.asked == [("wake", "a", False)]


@pytest.mark.parametrize("busy", [{"in_flight": 1}, {"waiting": 1}, {"tasks": 1}])
async def test_one_that_works_stays(autojump_clock: MockClock, busy: dict[str, int]) -> None:
    async with running("a") as world:
        world.search("a")
        await trio.sleep(10)
        world.change("a", **busy)
        await trio.sleep(NEXT_CALL_S)
        assert world.asked == [("wake", "a", False)]


async def test_whose_search_it_was_says_which_launch_is_started(autojump_clock: MockClock) -> None:
    async with running("a", "a~1", "personal") as world:
        world.own["a", ADA.principal] = "a~1"
        world.search("a", ADA)
        world.search("personal")
        await trio.sleep(10)
        assert world.asked == [("wake", "a~1", False)]
        world.call("a~1", ADA)
        assert world.outcomes() == {"right": 1, "saved_s": START_S}
