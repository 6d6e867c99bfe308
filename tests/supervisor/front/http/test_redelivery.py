"""Answer streams whose connection breaks: what was said, and is said from then on, is heard on a GET."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.messages import Note
from supervisor.config import Settings
from supervisor.front.edge.request import HttpRequest
from supervisor.front.edge.wire import Leaving
from supervisor.front.http.streams import EVENT_COST, STREAM_COST, SWEPT, KeepAlive, Redelivery
from supervisor.service.asking.exchange import Exchange
from tests.fakes.http_client import JSON_HEADERS, fetch, legacy, opened
from tests.fakes.http_client import Exchange as Connection
from tests.supervisor.front.http.test_answer_stream import ASKABLE, asks, front_that, session_of
from tests.supervisor.front.http.test_legacy import STREAM, Front, keeping_alive


def note(number: int) -> Note:
    return Note("notifications/progress", b'{"progressToken":7,"progress":%d}' % number)


async def counts(exchange: Exchange) -> bytes:
    for number in range(6):
        assert exchange.note(note(number))
        await trio.sleep(1)
    return b'{"done":true}'


def call_of(front: Front, token: str, **more: Any) -> AbstractAsyncContextManager[Connection]:
    return opened(front.app, "POST", {**JSON_HEADERS, "mcp-session-id": token}, legacy("work", id_="w"), **more)


def rest_of(front: Front, token: str, event: str) -> AbstractAsyncContextManager[Connection]:
    return opened(front.app, "GET", {**STREAM, "mcp-session-id": token, "last-event-id": event})


async def refused(front: Front, token: str, event: str) -> tuple[int, str]:
    answer = await fetch(front.app, "GET", {**STREAM, "mcp-session-id": token, "last-event-id": event})
    return answer.status, answer.json["error"]["message"]


async def all_of(connection: Connection) -> list[Any]:
    """The progress that is told, and the result."""
    said: list[Any] = []
    while "method" in (message := await connection.event()):
        said.append(message["params"]["progress"])
    await connection.end()
    return [*said, message.get("result", message.get("error"))]


@pytest.mark.parametrize("when", ["at once", "after the answer", "after the first event"])
async def test_a_call_whose_connection_broke_is_heard_to_its_end(autojump_clock: MockClock, when: str) -> None:
    front = front_that(counts)
    token = await session_of(front, {})
    async with keeping_alive(front), call_of(front, token) as call:
        for _ in range(2):
            await call.event()
        call.leave()
        if when == "after the answer":
            await trio.sleep(60)
        event = call.ids[0 if when == "after the first event" else -1]
        async with rest_of(front, token, event) as rest:
            assert await all_of(rest) == [*range(0 if when == "after the first event" else 2, 6), {"done": True}]
        async with rest_of(front, token, rest.ids[-2]) as again:
            assert await all_of(again) == [{"done": True}]
    assert len(set(call.ids + rest.ids)) == 8  # the first event has no message


async def test_a_client_that_is_gone_before_its_answer_becomes_a_stream_is_sent_nothing(
    autojump_clock: MockClock,
) -> None:
    front = front_that(counts)
    token = await session_of(front, {})
    async with keeping_alive(front), call_of(front, token) as call:
        await wait_all_tasks_blocked()
        call.leave()
        await trio.sleep(60)
        assert (call.status, call.body) == (0, b"")


async def test_the_answer_waits_for_no_connection_that_takes_nothing(autojump_clock: MockClock) -> None:
    kept = Redelivery(
        Settings(resume_s=60.0, resume_max_events=10, resume_max_session_bytes=99_999, resume_max_bytes=99_999)
    )
    track = kept.begin("s", b"1", primed=False)

    async def stuck(*message: Any) -> None:
        await trio.sleep_forever()

    request = SimpleNamespace(leaving=Leaving(), start=stuck, send=stuck)
    stream = KeepAlive(60.0).add(cast("HttpRequest", request))
    stream.tracked = lambda: track
    assert stream.say(b'{"method":"note"}')
    stream.over()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stream.finish, b'{"result":{}}')
        await wait_all_tasks_blocked()
        assert (track.over, track.after(0)) == (True, [(1, b'{"method":"note"}'), (2, b'{"result":{}}')])
        nursery.cancel_scope.cancel()


async def test_a_stream_is_said_to_one_connection(autojump_clock: MockClock) -> None:
    front = front_that(counts)
    token = await session_of(front, {})
    async with keeping_alive(front), call_of(front, token) as call:
        await call.event()
        async with rest_of(front, token, call.ids[-1]) as first:
            assert (await first.event())["params"]["progress"] == 1
            async with rest_of(front, token, first.ids[-1]) as second:
                await first.end()
                assert await all_of(second) == [2, 3, 4, 5, {"done": True}]
        await call.end()
        assert call.body.count(b"event: message") == 1
    assert first.body.count(b"event: message") == 1


async def test_a_question_waits_for_a_client_that_comes_back(autojump_clock: MockClock) -> None:
    async def work(exchange: Exchange) -> bytes:
        exchange.note(note(0))
        await trio.sleep(1)
        return await asks(exchange)

    front = front_that(work)
    token = await session_of(front, ASKABLE)
    async with keeping_alive(front), call_of(front, token) as call:
        await call.event()
        call.leave()
        await trio.sleep(2)
        async with rest_of(front, token, call.ids[-1]) as rest:
            asked = await rest.event()
            answer = b'{"jsonrpc":"2.0","id":%d,"result":{"action":"accept"}}' % asked["id"]
            await front.post(answer, token)
            assert (await rest.event())["result"] == {"action": "accept"}


@pytest.mark.case("C18")
async def test_an_event_is_known_in_its_session_and_for_a_while(autojump_clock: MockClock) -> None:
    front = front_that(counts)
    token, other = [await session_of(front, {}) for _ in range(2)]
    async with keeping_alive(front), call_of(front, token) as call:
        await all_of(call)
        event = call.ids[-2]
        told = (400, "what was said after this event is not kept here any more; make the request anew")
        assert await refused(front, other, event) == told
        for unknown in ("", "x", "1", "a-1-1", event + "9" * 80, event.replace("-", "-x"), event[:8] + "-99-0"):
            assert await refused(front, token, unknown) == told
        async with rest_of(front, token, event) as rest:
            assert await all_of(rest) == [{"done": True}]
        await trio.sleep(front.settings.resume_s)
        assert await refused(front, token, event) == told


@pytest.mark.parametrize(
    ("version", "ids"), [("2024-11-05", 7), ("2025-03-26", 7), ("2025-06-18", 7), ("2025-11-25", 8)]
)
async def test_an_event_without_a_message_is_for_clients_that_know_it(
    autojump_clock: MockClock, version: str, ids: int
) -> None:
    front = front_that(counts)
    token = await front.initialize(version)
    async with keeping_alive(front), call_of(front, token) as call:
        await all_of(call)
    assert len(call.ids) == ids


async def test_without_a_session_nothing_is_kept(autojump_clock: MockClock) -> None:
    front = front_that(counts)
    async with keeping_alive(front), opened(front.app, "POST", JSON_HEADERS, legacy("work")) as call:
        await all_of(call)
    assert call.ids == []


async def test_what_comes_fast_has_ids_and_a_quiet_rest_is_kept_alive(autojump_clock: MockClock) -> None:
    async def work(exchange: Exchange) -> bytes:
        for number in range(50):
            exchange.note(note(number))
        await trio.sleep(50)
        return b"{}"

    front = front_that(work)
    token = await session_of(front, {})
    async with keeping_alive(front), call_of(front, token) as call:
        for _ in range(50):
            await call.event()
        call.leave()
        assert len(set(call.ids)) == 51
        async with rest_of(front, token, call.ids[30]) as rest:
            assert await all_of(rest) == [*range(30, 50), {}]
        assert rest.comments == 4


async def test_the_rest_of_a_stream_ends_with_its_session(autojump_clock: MockClock) -> None:
    async def work(exchange: Exchange) -> bytes:
        exchange.note(note(0))
        await trio.sleep_forever()
        raise AssertionError

    front = front_that(work)
    token = await session_of(front, {})
    async with keeping_alive(front), call_of(front, token) as call:
        await call.event()
        async with rest_of(front, token, call.ids[0]) as rest:
            await rest.event()
            await wait_all_tasks_blocked()
            await fetch(front.app, "DELETE", {"mcp-session-id": token})
            await rest.end()


async def test_an_answer_that_cannot_be_kept_is_an_error_to_who_comes_back(autojump_clock: MockClock) -> None:
    async def work(exchange: Exchange) -> bytes:
        exchange.note(note(0))
        await trio.sleep(1)
        return b'"' + b"x" * 5000 + b'"'

    front = front_that(work)
    front.settings = type(front.settings)(resume_max_session_bytes=5000)
    front.started_again()
    token = await session_of(front, {})
    async with keeping_alive(front), call_of(front, token) as call:
        assert (await all_of(call))[-1] == "x" * 5000
        async with rest_of(front, token, call.ids[-2]) as rest:
            error = (await rest.event())["error"]
    assert (error["code"], error["data"]["type"]) == (-31413, "too_large")


def kept_by(redelivery: Redelivery) -> list[int]:
    return [len(track.events) for track in redelivery._tracks.values()]


async def test_what_is_kept_is_bounded(autojump_clock: MockClock) -> None:
    size = EVENT_COST + 10
    of_one, of_all = 2 * STREAM_COST + 6 * size, 3 * STREAM_COST + 8 * size
    kept = Redelivery(
        Settings(resume_s=10, resume_max_events=4, resume_max_session_bytes=of_one, resume_max_bytes=of_all)
    )
    one, two, other = [kept.begin(session, b"1", primed=True) for session in ("a", "a", "b")]
    for place in range(1, 6):
        one.add(place, b"x" * 10)
    assert [number for number, _ in one.after(0)] == [2, 3, 4, 5]
    assert [number for number, _ in one.after(4)] == [5]
    for place in range(1, 5):
        two.add(place, b"x" * 10)
    assert kept_by(kept) == [2, 4, 0]
    one.end(6, b"x" * 10)
    assert kept_by(kept) == [2, 4, 0]
    for place in range(1, 5):
        other.add(place, b"x" * 10)
    assert kept_by(kept) == [4, 4]  # what is over goes with its last event
    assert kept.find("a", one.id(6)) is None
    assert kept.find("a", two.id(3)) == (two, 3)
    assert kept.bytes == 2 * STREAM_COST + 8 * size
    two.end(5, b"x" * 10)
    await trio.sleep(11)
    kept.sweep()
    assert kept_by(kept) == [4]
    other.end(5, b"x" * 10)
    await trio.sleep(11)
    kept.sweep()
    assert (len(kept), kept.bytes) == (0, 0)
    assert not kept._laden
    assert not kept._sessions
    assert not kept._session_bytes


async def test_what_is_over_goes_a_little_at_a_time(autojump_clock: MockClock) -> None:
    kept = Redelivery(
        Settings(resume_s=10, resume_max_events=SWEPT, resume_max_session_bytes=1 << 30, resume_max_bytes=1 << 30)
    )
    for _ in range(3):
        track = kept.begin("a", b"1", primed=True)
        for place in range(1, SWEPT - 100):
            track.add(place, b"x")
        track.end(SWEPT - 100, b"x")
    await trio.sleep(11)
    left = []
    for _ in range(3):
        kept.sweep()
        left.append(sum(kept_by(kept)))
    assert left == [3 * (SWEPT - 100) - SWEPT, 3 * (SWEPT - 100) - 2 * SWEPT, 0]
    assert (len(kept), kept.bytes, len(kept._ended)) == (0, 0, 0)
