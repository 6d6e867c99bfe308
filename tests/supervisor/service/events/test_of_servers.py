"""Events of a server: followed by a stream or by polls, and again from where it was left, whatever ends it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.catalogue.offer import Delivery, EventType, Offer
from actors.catalogue.snapshot import Catalogue, Entry
from actors.codes import EVENT_NOT_FOUND, FORBIDDEN, INVALID_PARAMS, RESOURCE_EXHAUSTED, UNSUPPORTED
from actors.errors import CannotAsk, ProtocolViolation, ServerExited, ServerStarting, SupervisorError, TooManyCalls
from actors.kit import Latest, Reply
from actors.messages import Note, Question, Result
from actors.principal import LOCAL
from actors.protocol.agreement.versions import META_SUBSCRIPTION
from actors.protocol.wire.jsonrpc import ErrorObject, RemoteError
from actors.search.index import Index
from supervisor.host.workbench import Workbench
from supervisor.servers.launches.names import LaunchNames
from supervisor.service.events.limits import MAX_EVENT_BYTES, TooManyEvents
from supervisor.service.events.of_servers import FASTEST_S, LONGEST_PAUSE_S, MAX_DRAINS, SILENT_S, ServerEvents
from supervisor.service.events.sources import Origin, Terminated
from tests.fakes.garbage import no_search
from tests.fakes.router import FakeRouter

ORIGIN = Origin("desk:tick", "desk", "tick", b'{"a":1}', 20.0)
NO_TICKS = ErrorObject(EVENT_NOT_FOUND, "NotFound")


class Heard:
    """Implements `Told`: keeps what is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.every_ms: list[int] = []
        self.data: list[Any] = []

    def active(self, cursor: str | None, *, truncated: bool) -> None:
        self.told.append(("active", cursor, truncated))

    def event(self, occurrence: msgspec.Raw, cursor: str | None) -> None:
        self.told.append((json.loads(bytes(occurrence))["eventId"], cursor))

    def checked(self, cursor: str | None) -> None:
        self.told.append(("checked", cursor))

    def error(self, error: ErrorObject) -> None:
        self.told.append(("error", error.code, error.message))
        self.data.append(json.loads(bytes(error.data) or b"null"))

    def asked_every(self, milliseconds: int) -> None:
        self.every_ms.append(milliseconds)

    def take(self) -> list[Any]:
        told, self.told = self.told, []
        return told


class Rig:
    """A topic of a server that is followed beside the test; `failed` is how that ended."""

    def __init__(self, *delivery: Delivery, capabilities: bytes = b"{}") -> None:
        self.capabilities = msgspec.Raw(capabilities)
        self.router, self.heard = FakeRouter(), Heard()
        self.catalogue = Latest(self._catalogue(*delivery))
        self.left: list[Any] = []
        names = LaunchNames(lambda launch: lambda text: text.replace("secret", "***"), self.left.append)
        self.source = ServerEvents(self.router.address, self.catalogue, names, lambda server: 20.0, Workbench())
        self.failed: Exception | None = None

    def _catalogue(self, *delivery: Delivery) -> Catalogue:
        types = (EventType(name="tick", delivery=delivery),) if delivery else ()
        entries = {"desk": Entry.make("desk", "stdio", Offer(events=types, capabilities=self.capabilities))}
        return Catalogue(entries=entries, index=Index.empty())

    async def follow(self, cursor: str | None) -> None:
        try:
            await self.source.follow(ORIGIN, cursor, self.heard)
        except (Terminated, RemoteError, SupervisorError) as error:
            self.failed = error

    @property
    def params(self) -> Any:
        return json.loads(b"{%b}" % self.router.calls[-1][0].members)

    async def say(self, what: str, **said: Any) -> None:
        exchange = self.router.calls[-1][0].exchange
        assert exchange is not None
        params = {**said, "_meta": {META_SUBSCRIPTION: 7}}
        assert exchange.note(Note(f"notifications/events/{what}", json.dumps(params).encode()))
        await wait_all_tasks_blocked()

    async def event(self, id_: str, cursor: str | None, **more: Any) -> None:
        await self.say("event", **{"eventId": id_, "timestamp": "x", "data": {}, "cursor": cursor, **more})

    async def answer(self, **result: Any) -> None:
        self.router.calls[-1][1].answer(Result(msgspec.Raw(json.dumps(result).encode()), "modern"))
        await wait_all_tasks_blocked()

    async def fail(self, error: Exception) -> None:
        self.router.calls[-1][1].fail(error)
        await wait_all_tasks_blocked()


@asynccontextmanager
async def following(*delivery: Delivery, cursor: str | None = None, capabilities: bytes = b"{}") -> AsyncIterator[Rig]:
    it = Rig(*delivery, capabilities=capabilities)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(it.follow, cursor)
        await wait_all_tasks_blocked()
        yield it
        nursery.cancel_scope.cancel()


async def test_what_is_pushed_is_asked_for_as_a_stream() -> None:
    async with following("poll", "push") as it:
        call = it.router.calls[0][0]
        assert (call.server, call.method, call.lasts, call.principal) == ("desk", "events/stream", True, LOCAL)
        assert it.params == {"name": "tick", "arguments": {"a": 1}, "cursor": None}
        assert (call.deadline_s, call.name) == (SILENT_S, "tick")
        await it.event("too early", "0")
        await it.say("active", cursor="1", truncated=False)
        await it.event("a", "2", _meta={"own": 1, META_SUBSCRIPTION: 7})
        await it.say("heartbeat", cursor="3")
        await it.say("error", error={"code": -32603, "message": "UpstreamError"})
        await it.say("error", error="nonsense")
        assert it.heard.take() == [
            ("active", "1", False),
            ("a", "2"),
            ("checked", "3"),
            ("error", -32603, "UpstreamError"),
            ("error", -32603, "the server told of an error that cannot be read"),
        ]
        assert call.exchange is not None
        with pytest.raises(CannotAsk):
            await call.exchange.ask(Question("elicitation/create", msgspec.Raw(b"{}"))).wait()
        await it.event("b", "4", data={"text": "x" * (2 * MAX_EVENT_BYTES)})
        assert [each[0] for each in it.heard.take()] == ["error"]


@pytest.mark.parametrize("end", ["result", "crash"])
async def test_a_stream_that_ends_is_begun_again_from_its_cursor(end: str, autojump_clock: MockClock) -> None:
    async with following("push", cursor="5") as it:
        assert it.params["cursor"] == "5"
        await it.say("active", cursor="5", truncated=True)
        await it.event("a", "6")
        await (it.answer() if end == "result" else it.fail(ServerExited("it died", server="desk")))
        await trio.sleep(2)
        assert len(it.router.calls) == 2
        assert it.params["cursor"] == "6"
        await it.say("active", cursor="6", truncated=False)
        told = [each for each in it.heard.take() if each[0] != "error"]
        assert told == [("active", "5", True), ("a", "6"), ("active", "6", False)]
        assert it.failed is None


async def test_a_server_whose_every_stream_ends_well_after_a_while_is_asked_again_at_once(
    autojump_clock: MockClock,
) -> None:
    async with following("push") as it:
        for count in range(1, 12):
            await it.say("active", cursor="1", truncated=False)
            await trio.sleep(25)
            await it.answer()
            await trio.sleep(2 * FASTEST_S)
            assert len(it.router.calls) == count + 1


async def test_a_server_that_is_away_is_asked_rarely(autojump_clock: MockClock) -> None:
    async with following("push") as it:
        await it.say("active", cursor="1", truncated=False)
        for _ in range(12):
            count = len(it.router.calls)
            await it.fail(ServerStarting("not yet", server="desk"))
            await trio.sleep(LONGEST_PAUSE_S + 1)
            assert len(it.router.calls) == count + 1
        began = trio.current_time()
        await it.fail(ServerStarting("not yet", server="desk"))
        await trio.sleep(LONGEST_PAUSE_S / 2 - 1)
        assert len(it.router.calls) == 13
        assert trio.current_time() - began < LONGEST_PAUSE_S


@pytest.mark.parametrize("failure", [lambda: ServerStarting("not yet"), lambda: RemoteError(ErrorObject(-32603, "no"))])
async def test_attempts_that_failed_are_freed_without_a_search(
    failure: Callable[[], Exception], autojump_clock: MockClock
) -> None:
    async with following("push") as it:
        await it.say("active", cursor="1", truncated=False)
        with no_search() as alive:
            for _ in range(5):
                await it.fail(failure())
                await trio.sleep(LONGEST_PAUSE_S + 1)
            del it.router.calls[:-1]
            assert alive(Reply) == 1, "of the present attempt"


async def test_why_a_server_cannot_be_asked_is_told_as_what_may_pass(autojump_clock: MockClock) -> None:
    async with following("poll") as it:
        await it.answer(events=[], cursor="1")
        await trio.sleep(2)
        await it.fail(ServerExited("it died", server="desk", outcome="unknown"))
        assert it.heard.take()[-1] == ("error", ServerExited.code, "it died")
        assert it.heard.data[-1] == {
            "type": ServerExited.kind,
            "outcome": "not_sent",
            "retryable": True,
            "server": "desk",
        }


@pytest.mark.parametrize(
    "refusal", [RemoteError(NO_TICKS), RemoteError(ErrorObject(-32603, "a secret")), ServerStarting("not yet")]
)
async def test_what_is_refused_at_first_is_not_asked_for_again(refusal: Exception) -> None:
    async with following("push") as it:
        await it.fail(refusal)
        assert type(it.failed) is type(refusal)
        assert "secret" not in str(it.failed)
        assert len(it.router.calls) == 1
        assert it.left == [(LOCAL, f"notifications/events/{ORIGIN.id}")]


async def test_a_server_that_has_room_for_no_more_streams_is_a_limit_that_is_reached() -> None:
    async with following("push") as it:
        await it.fail(TooManyCalls("the limit of 256 streams is reached", outcome="unknown"))
        assert isinstance(it.failed, TooManyEvents)
        assert (it.failed.code, it.failed.details) == (RESOURCE_EXHAUSTED, {"limit": "streams"})


async def test_a_stream_that_ends_unconfirmed_is_no_stream() -> None:
    async with following("push") as it:
        await it.answer()
        assert isinstance(it.failed, ProtocolViolation)


@pytest.mark.parametrize("code", [EVENT_NOT_FOUND, FORBIDDEN, INVALID_PARAMS])
async def test_what_a_server_refuses_later_is_over(code: int, autojump_clock: MockClock) -> None:
    async with following("push") as it:
        await it.say("active", cursor=None, truncated=False)
        await it.answer()
        await trio.sleep(2)
        await it.fail(RemoteError(ErrorObject(code, "no")))
        assert isinstance(it.failed, Terminated)
        assert it.failed.error.code == code


@pytest.mark.parametrize("capabilities", [b'{"events":{}}', b'{"extensions":{"io.modelcontextprotocol/events":{}}}'])
@pytest.mark.parametrize(("sketched", "final"), [(-32011, EVENT_NOT_FOUND), (-32012, FORBIDDEN), (-32014, UNSUPPORTED)])
async def test_what_a_server_of_the_sketch_refuses_is_over_likewise(
    sketched: int, final: int, capabilities: bytes, autojump_clock: MockClock
) -> None:
    async with following("poll", capabilities=capabilities) as it:
        await it.answer(events=[], cursor="1")
        await trio.sleep(2)
        await it.fail(RemoteError(ErrorObject(sketched, "no")))
        if b"extensions" in capabilities:
            assert it.heard.take()[-1] == ("error", sketched, "no")
        else:
            assert isinstance(it.failed, Terminated)
            assert it.failed.error.code == final


async def test_a_server_says_itself_that_it_is_over() -> None:
    async with following("push") as it:
        await it.say("active", cursor=None, truncated=False)
        await it.say("terminated", error={"code": FORBIDDEN, "message": "Forbidden", "data": {"reason": "x"}})
        assert isinstance(it.failed, Terminated)
        assert (it.failed.error.code, bytes(it.failed.error.data)) == (FORBIDDEN, b'{"reason": "x"}')
        assert it.router.calls[0][1].settled


@pytest.mark.parametrize("delivery", ["push", "poll"])
async def test_a_cursor_that_a_server_refuses_is_given_up(delivery: Delivery) -> None:
    async with following(delivery, cursor="of another life") as it:
        await it.fail(RemoteError(ErrorObject(INVALID_PARAMS, "unknown cursor")))
        assert (len(it.router.calls), it.params["cursor"], it.failed) == (2, None, None)


async def test_a_type_that_its_server_does_not_list_any_more_is_over() -> None:
    async with following("push") as it:
        await it.say("active", cursor=None, truncated=False)
        it.catalogue.set(it._catalogue("poll", "push"))
        await wait_all_tasks_blocked()
        assert it.heard.take() == [("active", None, False)]
        it.catalogue.set(it._catalogue())
        await wait_all_tasks_blocked()
        assert isinstance(it.failed, Terminated)
        assert it.failed.error.code == EVENT_NOT_FOUND


@pytest.mark.parametrize(("said_ms", "every_s"), [(5000, 5), (0, 1), (1e12, 3600)])
async def test_what_is_only_polled_is_polled_as_often_as_its_server_says(
    said_ms: float, every_s: float, autojump_clock: MockClock
) -> None:
    async with following("poll") as it:
        assert it.params == {"name": "tick", "arguments": {"a": 1}, "cursor": None, "maxEvents": 100}
        assert (it.router.calls[0][0].deadline_s, it.router.calls[0][0].name) == (20, "tick")
        await it.answer(events=[], cursor="1", truncated=False, hasMore=False, nextPollMs=said_ms)
        assert it.heard.take() == [("active", "1", False), ("checked", "1")]
        assert it.heard.every_ms == [every_s * 1000]
        await trio.sleep(every_s - 0.1)
        assert len(it.router.calls) == 1
        await trio.sleep(0.2)
        assert it.params["cursor"] == "1"


async def test_a_backlog_is_fetched_at_once_and_a_gap_in_it_is_told_before_it(autojump_clock: MockClock) -> None:
    def occurrence(id_: str) -> Any:
        return {"eventId": id_, "name": "tick", "timestamp": "x", "data": {}}

    async with following("poll", cursor="1") as it:
        more = {"hasMore": True, "nextPollMs": 60_000}
        await it.answer(events=[occurrence("a")], cursor="2", truncated=False, **more)
        assert it.heard.take() == [("active", "1", False), ("a", "1"), ("checked", "2")]
        assert len(it.router.calls) == 2
        await it.answer(events=[occurrence("b")], cursor="9", truncated=True, **more)
        assert it.heard.take() == [("active", "2", True), ("b", "2"), ("checked", "9")]
        await it.answer(events=[], cursor="9", hasMore=True)
        assert len(it.router.calls) == 3  # it has none, whatever it says
        await trio.sleep(1.1)
        await it.answer(events="nonsense")
        assert it.heard.take()[-1][0] == "error"
        await trio.sleep(2)
        assert it.params["cursor"] == "9"


async def test_a_backlog_without_end_is_fetched_at_a_pace(autojump_clock: MockClock) -> None:
    async with following("poll") as it:
        for number in range(MAX_DRAINS + 1):
            assert len(it.router.calls) == number + 1
            event = {"eventId": str(number), "timestamp": "x", "data": {}}
            await it.answer(events=[event], cursor=str(number), hasMore=True)
        assert len(it.router.calls) == MAX_DRAINS + 1
        await trio.sleep(FASTEST_S + 0.1)
        assert len(it.router.calls) == MAX_DRAINS + 2
        await it.answer(events=[], cursor="9", hasMore=False)
        await trio.sleep(FASTEST_S + 0.1)
        await it.answer(events=[event], cursor="10", hasMore=True)
        assert len(it.router.calls) == MAX_DRAINS + 4
