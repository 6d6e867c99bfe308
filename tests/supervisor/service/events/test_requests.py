"""The methods of events at the doors of many servers: listed, polled, streamed, in both eras."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.codes import EVENT_NOT_FOUND, FORBIDDEN, INVALID_PARAMS, RESOURCE_EXHAUSTED, UNSUPPORTED
from actors.errors import UnknownMethod
from actors.principal import LOCAL, Principal
from actors.protocol.agreement.versions import META_SUBSCRIPTION, Era
from actors.protocol.changes import EVENTS_CHANGED
from actors.protocol.wire.jsonrpc import ErrorObject
from supervisor.config import Settings
from supervisor.service.client import Client, Updates
from supervisor.service.events.limits import HEARTBEAT_S, MAX_POLLED, MAX_STREAMS, STALLED_S
from supervisor.service.events.sources import Terminated
from tests.fakes.event_source import NAME, NOW, FakeSource, occurrence
from tests.fakes.exchanges import LEGACY, MODERN, Ear, exchange
from tests.fakes.published import Served, served

CLIENTS: dict[Era, Client] = {"legacy": LEGACY, "modern": MODERN}
ANN = replace(MODERN, principal=Principal("ann"))
each_era = pytest.mark.parametrize("era", CLIENTS)
each_door = pytest.mark.parametrize("door", ["", "all"])
TOLD = "notifications/events/"


class Rig:
    """The doors of many servers, before one source of events."""

    def __init__(self, running: Served) -> None:
        self.source = FakeSource()
        self.running = running
        self.parts = running.gateway.parts
        self.parts.topics.sources = (self.source,)
        self.parts.topics.journal.clock = lambda: NOW + trio.current_time()

    async def ask(
        self, method: str, client: Client = MODERN, door: str = "", ear: Ear | None = None, **params: Any
    ) -> Any:
        return await self.running.answer(exchange(client, method, json.dumps(params).encode(), ear=ear), door)

    async def poll(self, **params: Any) -> Any:
        return (await self.ask("events/poll", **{"name": NAME, **params}))["result"]


@dataclass
class Stream:
    """A stream that goes on beside the test: what its client hears, and how it ends."""

    rig: Rig
    client: Client = MODERN
    params: dict[str, Any] = field(default_factory=dict)
    ear: Ear = field(default_factory=Ear)
    ended: Any = None
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)

    async def run(self) -> None:
        with self.scope:
            self.ended = await self.rig.ask("events/stream", self.client, ear=self.ear, name=NAME, **self.params)

    @property
    def heard(self) -> list[tuple[str, Any]]:
        """What it was told: of which kind, and the rest of the params."""
        for each in self.ear.heard:
            assert each["params"].pop("_meta", {META_SUBSCRIPTION: 1}) == {META_SUBSCRIPTION: 1}
        return [(each["method"].removeprefix(TOLD), each["params"]) for each in self.ear.heard]

    @property
    def told(self) -> list[str]:
        return [said.get("eventId", what) for what, said in self.heard]


async def passes(clock: MockClock, seconds: float) -> None:
    """Let time pass, second by second."""
    for _ in range(round(seconds)):
        clock.jump(1)
        await wait_all_tasks_blocked()


@asynccontextmanager
async def rig() -> AsyncIterator[Rig]:
    async with served({}) as running, trio.open_nursery() as nursery:
        nursery.start_soon(running.gateway.parts.topics.run, trio.Event())
        yield Rig(running)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def streaming(it: Rig, **more: Any) -> AsyncIterator[Stream]:
    stream = Stream(it, **more)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stream.run)
        await wait_all_tasks_blocked()
        yield stream
        nursery.cancel_scope.cancel()


@each_door
@each_era
async def test_types_are_listed_and_announced_to_who_sees_them(door: str, era: Era) -> None:
    async with rig() as it:
        listed = (await it.ask("events/list", CLIENTS[era], door))["result"]
        assert ("resultType" in listed) is (era == "modern")
        schemas = {"inputSchema": {"type": "object"}, "payloadSchema": {"type": "object"}}
        assert listed["events"] == [{"name": NAME, "delivery": ["poll", "push"], **schemas}]
        greeting = "server/discover" if era == "modern" else "initialize"
        told = (await it.ask(greeting, CLIENTS[era], door))["result"]["capabilities"]
        assert told["extensions"]["io.modelcontextprotocol/events"] == told["events"] == {"listChanged": True}
        it.source.hidden.add(LOCAL)
        assert (await it.ask("events/list", CLIENTS[era], door))["result"]["events"] == []
        told = (await it.ask(greeting, CLIENTS[era], door))["result"]["capabilities"]
        assert "extensions" not in told


async def test_where_nothing_is_sent_to_addresses_nobody_is_told_that_it_is() -> None:
    async with rig() as it:
        (listed,) = (await it.ask("events/list", ANN))["result"]["events"]
        assert listed["delivery"] == ["poll", "push"]
        for method in ("events/subscribe", "events/unsubscribe"):
            refused = (await it.ask(method, ANN))["error"]
            assert (refused["code"], refused["data"]["value"]) == (-32026, "webhook")


@each_era
async def test_polls_begin_now_and_go_on_from_their_cursor(era: Era) -> None:
    async with rig() as it:
        begun = await it.poll(client=CLIENTS[era], cursor=None)
        assert (begun["events"], begun["truncated"], begun["hasMore"], begun["nextPollMs"]) == ([], False, False, 5000)
        await it.source.tell("a", "b", "c")
        some = await it.poll(cursor=begun["cursor"], maxEvents=2)
        assert [each["eventId"] for each in some["events"]] == ["a", "b"]
        assert some["events"][0] == {**json.loads(bytes(occurrence("a"))), "name": NAME}
        assert (some["hasMore"], some["truncated"]) == (True, False)
        rest = await it.poll(cursor=some["cursor"], arguments={})
        assert ([each["eventId"] for each in rest["events"]], rest["hasMore"]) == (["c"], False)
        assert (await it.poll(cursor=rest["cursor"]))["cursor"] == rest["cursor"]
        assert len(it.source.followed) == 1


async def test_a_poll_says_why_nobody_knows_whether_something_happened() -> None:
    away = ErrorObject(-31503, "server 'desk' is away", msgspec.Raw(b'{"retryable":true}'))
    async with rig() as it:
        begun = await it.poll()
        await it.source.tell("a")
        it.source.told.error(away)
        some = await it.poll(cursor=begun["cursor"])
        assert [each["eventId"] for each in some["events"]] == ["a"]
        error = (await it.ask("events/poll", name=NAME, cursor=some["cursor"]))["error"]
        assert (error["code"], error["message"], error["data"]["retryable"]) == (-31503, "server 'desk' is away", True)
        it.source.told.checked("a")
        assert (await it.poll(cursor=some["cursor"]))["events"] == []
        it.source.told.error(away)
        assert (await it.poll(cursor="of another server"))["truncated"] is True
        it.source.told.active("a", truncated=False)
        assert (await it.poll(cursor=some["cursor"]))["truncated"] is False


async def test_a_poll_of_what_is_not_known_here_gets_what_is_kept() -> None:
    async with rig() as it:
        await it.poll()
        await it.source.tell(*map(str, range(MAX_POLLED + 1)))
        first = await it.poll(cursor="of another server")
        assert (len(first["events"]), first["truncated"], first["hasMore"]) == (MAX_POLLED, True, True)
        last = await it.poll(cursor=first["cursor"])
        assert (len(last["events"]), last["truncated"], last["hasMore"]) == (1, False, False)


async def test_a_poll_says_how_old_events_may_be(mock_clock: MockClock) -> None:
    async with rig() as it:
        begun = await it.poll()
        it.source.told.event(occurrence("old", timestamp="2026-01-01T00:00:00Z"), "1")
        it.source.told.event(occurrence("new", timestamp="9999-01-01T00:00:00Z"), "2")  # as new as its arrival
        late = await it.poll(cursor=begun["cursor"], maxAgeMs=60_000)
        assert ([each["eventId"] for each in late["events"]], late["truncated"]) == (["new"], True)
        assert len((await it.poll(cursor=begun["cursor"]))["events"]) == 2
        await passes(mock_clock, 30)
        assert len((await it.poll(cursor=begun["cursor"], maxAgeMs=60_000))["events"]) == 1
        await passes(mock_clock, 31)
        none = await it.poll(cursor=begun["cursor"], maxAgeMs=60_000)
        assert (none["events"], none["truncated"]) == ([], True)
        assert (await it.poll(cursor=None, maxAgeMs=0))["truncated"] is False


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"name": 7},
        {"name": NAME, "cursor": 7},
        {"name": NAME, "arguments": [1]},
        {"name": NAME, "maxEvents": 0},
        {"name": NAME, "maxAgeMs": -1},
    ],
)
@pytest.mark.parametrize("method", ["events/poll", "events/stream"])
async def test_wrong_params_are_said_to_be_wrong(method: str, params: dict[str, Any]) -> None:
    async with rig() as it:
        assert (await it.ask(method, ear=Ear(), **params))["error"]["code"] == INVALID_PARAMS
        assert it.source.followed == []


@pytest.mark.parametrize("method", ["events/poll", "events/stream"])
async def test_a_type_that_somebody_does_not_see_is_none_to_them(method: str) -> None:
    async with rig() as it:
        it.source.hidden.add("ann")
        for client, name in ((ANN, NAME), (MODERN, "desk:tock"), (MODERN, "")):
            error = (await it.ask(method, client, ear=Ear(), name=name))["error"]
            assert (error["code"], error["data"]["kind"]) == (EVENT_NOT_FOUND, "event")


@each_era
async def test_a_stream_tells_what_happens_and_that_it_lives(era: Era, mock_clock: MockClock) -> None:
    async with rig() as it, streaming(it, client=CLIENTS[era]) as stream:
        await it.source.tell("a")
        await it.source.tell("b", "a")
        it.source.told.error(ErrorObject(-32603, "UpstreamError", msgspec.Raw(b'{"reason":"503"}')))
        await wait_all_tasks_blocked()
        await passes(mock_clock, 2 * HEARTBEAT_S + 1)
        assert stream.told == ["active", "a", "b", "error", "heartbeat", "heartbeat"]
        active, a, b, error, beat, _ = (said for _, said in stream.heard)
        assert active["truncated"] is False
        assert a == {**json.loads(bytes(occurrence("a"))), "name": NAME, "cursor": a["cursor"]}
        assert error == {"error": {"code": -32603, "message": "UpstreamError", "data": {"reason": "503"}}}
        assert beat["cursor"] == b["cursor"]
        async with streaming(it, params={"cursor": a["cursor"]}) as other:
            assert other.told == ["active", "b"]
            assert len(it.source.followed) == 1
        assert stream.ended is None


async def test_a_gap_is_told_in_the_middle_of_a_stream() -> None:
    async with rig() as it, streaming(it) as stream:
        await it.source.tell("a")
        it.source.told.active("7", truncated=True)
        await wait_all_tasks_blocked()
        await it.source.tell("b")
        assert stream.told == ["active", "a", "active", "b"]
        assert [said["truncated"] for what, said in stream.heard if what == "active"] == [False, True]
        again = (await it.poll(cursor=stream.heard[2][1]["cursor"]))["events"]
        assert [each["eventId"] for each in again] == ["b"]


@each_era
async def test_a_stream_ends_as_its_source_says(era: Era) -> None:
    async with rig() as it, streaming(it, client=CLIENTS[era]) as stream:
        await it.source.tell("a")
        it.source.followed[-1].fail(Terminated(ErrorObject(FORBIDDEN, "Forbidden")))
        await wait_all_tasks_blocked()
        assert stream.told == ["active", "a", "terminated"]
        assert stream.heard[-1][1] == {"error": {"code": FORBIDDEN, "message": "Forbidden"}}
        assert stream.ended["result"]["_meta"][META_SUBSCRIPTION] == 1
        assert ("resultType" in stream.ended["result"]) is (era == "modern")


async def test_a_stream_of_who_may_not_have_it_any_more_ends_before_anything_else_is_told(
    mock_clock: MockClock,
) -> None:
    async with rig() as it, streaming(it, client=ANN) as stream, streaming(it) as other:
        it.source.hidden.add("ann")
        await it.source.tell("secret")
        assert stream.told == ["active", "terminated"]
        assert stream.heard[-1][1]["error"]["code"] == FORBIDDEN
        assert other.told == ["active", "secret"]
        assert (await it.ask("events/poll", ANN, name=NAME))["error"]["code"] == EVENT_NOT_FOUND
        it.source.hidden.add(LOCAL)  # and where nothing happens, soon
        await passes(mock_clock, HEARTBEAT_S + 1)
        assert other.told[-1] == "terminated"


async def test_a_stream_of_who_has_another_login_by_now_ends_so_that_they_ask_again() -> None:
    async with rig() as it, streaming(it, client=ANN) as stream:
        await it.source.tell("a")
        it.source.launch = "desk~0123456789abcdef"
        await it.source.tell("secret")
        assert stream.told == ["active", "a"]
        assert stream.ended["result"]["_meta"] == stream.ended["result"]["_meta"] | {META_SUBSCRIPTION: 1}
        async with streaming(it, client=ANN, params={"cursor": stream.heard[-1][1]["cursor"]}) as other:
            assert other.heard[0][1]["truncated"] is True
            assert it.source.followed[-1].origin.launch == "desk~0123456789abcdef"


async def test_the_end_of_the_daemon_ends_streams_that_go_on_with_the_next_one() -> None:
    closing = trio.Event()
    async with served({}) as running, trio.open_nursery() as nursery:
        nursery.start_soon(running.gateway.parts.topics.run, closing)
        async with streaming(Rig(running)) as stream:
            closing.set()
            await wait_all_tasks_blocked()
            assert stream.told == ["active"]
            result = stream.ended["result"]  # an error would say that there is no such stream
            assert (result["resultType"], result["_meta"][META_SUBSCRIPTION]) == ("complete", 1)
            assert result["_meta"]["mcpvisor/shutdown"] is True
            nursery.cancel_scope.cancel()


async def test_what_an_event_has_of_its_own_stays_beside_what_is_ours() -> None:
    async with rig() as it, streaming(it) as stream:
        it.source.told.event(occurrence("a", _meta={"own": 1}, more=[{"_meta": 2}]), "1")
        await wait_all_tasks_blocked()
        params = stream.ear.heard[-1]["params"]
        assert (params["_meta"], params["more"]) == ({"own": 1, META_SUBSCRIPTION: 1}, [{"_meta": 2}])


async def test_a_stream_has_its_heartbeat_however_much_happens(mock_clock: MockClock) -> None:
    async with rig() as it, streaming(it) as stream:
        for number in range(4):
            await passes(mock_clock, HEARTBEAT_S / 2 + 1)
            await it.source.tell(f"e{number}")
        assert stream.told == ["active", "e0", "heartbeat", "e1", "e2", "heartbeat", "e3"]
        assert stream.heard[2][1]["cursor"] == stream.heard[1][1]["cursor"]


async def test_a_client_that_reads_slowly_misses_nothing_and_one_that_does_not_read_loses_its_stream(
    mock_clock: MockClock,
) -> None:
    async with rig() as it:
        slow, deaf = Ear(room=2), Ear(room=2)
        async with streaming(it, ear=slow) as reading, streaming(it, ear=deaf) as stuck, streaming(it) as quick:
            await it.source.tell("a", "b", "c")
            assert quick.told == ["active", "a", "b", "c"]
            await passes(mock_clock, STALLED_S - 5)
            slow.room = 1000
            await passes(mock_clock, 10)
            assert [each for each in reading.told if each != "heartbeat"] == ["active", "a", "b", "c"]
            assert (stuck.told, stuck.ended["error"]["code"]) == (["active", "a"], RESOURCE_EXHAUSTED)
            deaf.room = 1000
            async with streaming(it, params={"cursor": stuck.heard[-1][1]["cursor"]}) as again:
                assert again.told == ["active", "b", "c"]


async def test_a_stream_needs_a_way_to_be_told_on() -> None:
    async with rig() as it:
        error = (await it.ask("events/stream", name=NAME))["error"]
        assert (error["code"], error["data"]["value"]) == (UNSUPPORTED, "push")


async def test_streams_have_a_limit_with_a_share_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    async with rig() as it:
        monkeypatch.setattr(it.parts.event_streams, "limit", 3)
        async with streaming(it, client=ANN), streaming(it, client=ANN) as second:
            assert second.ended["error"]["code"] == RESOURCE_EXHAUSTED
            assert (
                second.ended["error"]["data"] | {"limit": "streams", "max": MAX_STREAMS}
                == second.ended["error"]["data"]
            )
            async with streaming(it) as mine:
                assert mine.told == ["active"]
        async with streaming(it, client=ANN) as third:
            assert third.told == ["active"]


async def test_nobody_is_told_of_changed_types_where_the_operator_wants_no_such_notifications() -> None:
    async with served({}, Settings(notify_catalogue_changes=False)) as running:
        listen = exchange(MODERN, "subscriptions/listen", updates=Updates())
        with pytest.raises(UnknownMethod):
            await running.doors.find("").service.subscribe(listen, EVENTS_CHANGED)
        await running.doors.find("all").service.subscribe(listen, EVENTS_CHANGED)


async def test_who_listens_is_told_when_what_it_sees_of_types_has_changed(mock_clock: MockClock) -> None:
    async with rig() as it:
        service, updates = it.running.doors.find("").service, Updates()
        listen = exchange(MODERN, "subscriptions/listen", updates=updates)
        await service.subscribe(listen, EVENTS_CHANGED)
        await service.subscribe(listen, EVENTS_CHANGED)
        catalogue = it.parts.catalogue
        catalogue.set(replace(catalogue.value))
        await wait_all_tasks_blocked()
        assert updates.take() == ()
        it.source.hidden.add(LOCAL)
        catalogue.set(replace(catalogue.value))
        await passes(mock_clock, 1)
        assert updates.take() == (EVENTS_CHANGED,)
        updates.end()
        it.source.hidden.clear()
        catalogue.set(replace(catalogue.value))
        await wait_all_tasks_blocked()
        assert not updates.owed
