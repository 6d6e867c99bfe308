"""Both ways to read events, over a real socket: what a slow reader gets, and what a quiet one hears."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
import trio
from trio_websocket import ConnectionClosed, ConnectionRejected

from actors.kit import first_of
from supervisor.delivery.events import DaemonEvents
from supervisor.events.kinds import LimitExceeded
from supervisor.front.pages.events import EventStreams
from supervisor.front.pages.view import View
from supervisor.usage.records import CallRecord
from tests.fakes.event_reader import EventReader, listening, reading
from tests.fakes.front_server import dispatch, running
from tests.fakes.told_events import events_of
from tests.fakes.tool_view import view_of


@asynccontextmanager
async def streaming(
    events: DaemonEvents, keepalive_s: float = 15.0, limit: int = 32, shown: View | None = None, **settings: Any
) -> AsyncIterator[str]:
    shown = shown or view_of(events=events)
    streams = EventStreams(shown, keepalive_s, limit)
    async with running(dispatch(event_streams=streams), shown.closing, **settings) as server:
        yield f"http://127.0.0.1:{server.port}"


async def read_until(reader: EventReader, last: int) -> tuple[int, int]:
    """Read up to an event with this number or a later one; return how many came, and how many resets.

    Nothing is missing but what a reset says.
    """
    count, resets, place = 0, 0, int(reader.last.partition("-")[2])
    while place < last:
        id_, name, _ = await reader.next()
        number = int(id_.partition("-")[2])
        assert number == place + 1 or name == "reset"
        resets, count, place = resets + (name == "reset"), count + (name != "reset"), number
    return count, resets


Way = Callable[..., AbstractAsyncContextManager[EventReader]]
BOTH = pytest.mark.parametrize("way", [reading, listening])


async def flood(events: DaemonEvents, count: int) -> None:
    for number in range(count):
        events.log.append(LimitExceeded(resource="x" * 2000, reason="y"))
        if number % 100 == 99:
            await trio.sleep(0.001)


async def go_on(events: DaemonEvents) -> None:
    while True:
        events.log.append(LimitExceeded(resource="x", reason="y"))
        await trio.sleep(0.01)


@BOTH
async def test_a_reader_that_is_slow_makes_nothing_grow_and_is_told_that_it_missed_some(way: Way) -> None:
    events = events_of(max_kept_events=100)
    async with streaming(events, send_timeout_s=60) as url, way(url) as reader:
        await reader.next()
        await flood(events, 5_000)
        assert not events.log.has_after(4_800)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(go_on, events)
            count, resets = await read_until(reader, 5_010)
            nursery.cancel_scope.cancel()
    assert resets >= 1
    assert count < 5_000


@BOTH
async def test_a_reader_that_keeps_up_gets_everything(way: Way) -> None:
    events = events_of(max_kept_events=100)
    async with streaming(events) as url, way(url) as reader:
        await reader.next()
        for _ in range(30):
            for _ in range(50):
                events.log.append(LimitExceeded(resource="x", reason="y"))
            seen, resets = await read_until(reader, events.log.newest.value)
            assert (seen, resets) == (50, 0)


@BOTH
async def test_calls_that_are_counted_together_hold_up_nothing_that_comes_after_them(way: Way) -> None:
    events = events_of()
    async with streaming(events) as url, way(url) as reader:
        await reader.next()
        with trio.fail_after(30):
            for _ in range(3):
                events.take([CallRecord(tool="t", outcome="ok")] * 4)
                assert await read_until(reader, events.log.newest.value) == (4, 0)
                events.log.append(LimitExceeded(resource="x", reason="y"))
                assert (await reader.next())[1] == "resource.limit.exceeded"


@BOTH
async def test_whoever_reads_the_rest_elsewhere_gets_what_happened_in_brief(way: Way) -> None:
    events = events_of()
    async with streaming(events) as url, way(url, "/api/events?brief=true") as reader:
        await reader.next()
        events.log.append(LimitExceeded(resource="x", reason="y"))
        id_, kind, told = await reader.next()
    assert told == {"id": id_, "type": kind}
    assert kind == "resource.limit.exceeded"


@BOTH
async def test_in_brief_the_newest_of_each_kind_stands_for_those_before(way: Way) -> None:
    events = events_of()
    async with streaming(events) as url, way(url, "/api/events?brief=true") as reader:
        await reader.next()
        events.log.extend([CallRecord(tool="t")] * 500)
        events.log.append(LimitExceeded(resource="x", reason="y"))
        events.log.extend([CallRecord(tool="t")] * 500)
        told = [await reader.next() for _ in range(2)]
        events.log.append(LimitExceeded(resource="x", reason="y"))
        told.append(await reader.next())
    assert [kind for _, kind, _ in told] == [
        *("resource.limit.exceeded", "mcp.tool.executed", "resource.limit.exceeded")
    ]
    assert [int(id_.rpartition("-")[2]) for id_, _, _ in told] == [501, 1001, 1002]


async def test_a_quiet_stream_says_that_somebody_is_there() -> None:
    events = events_of()
    async with streaming(events, keepalive_s=0.02) as url, reading(url) as reader:
        await reader.next()
        for _ in range(3):
            await reader.comment()
        events.log.append(LimitExceeded(resource="x", reason="y"))
        assert (await reader.next())[1] == "resource.limit.exceeded"


async def test_both_ways_tell_the_same_and_go_on_behind_the_ids_of_the_other() -> None:
    events = events_of()
    async with streaming(events) as url, reading(url) as stream, listening(url) as socket:
        for number in range(20):
            events.log.append(LimitExceeded(resource=str(number), reason="line\nend"))
        told = [[await reader.next() for _ in range(21)] for reader in (stream, socket)]
        assert told[0] == told[1]
        for way in (reading, listening):
            async with way(url, f"/api/events?after={told[0][9][0]}") as again:
                assert [await again.next() for _ in range(12)][1:] == told[0][10:]
            async with way(url, "/api/events?after=1-1") as again:
                assert [(await again.next())[1] for _ in range(2)] == ["hello", "reset"]


async def refusal(url: str, path: str = "/api/events") -> int:
    """Return the status that a WebSocket is refused with."""
    with pytest.RaisesGroup(ConnectionRejected) as refused:
        async with listening(url, path):
            pass
    rejected = first_of(refused.value)
    assert isinstance(rejected, ConnectionRejected)
    return int(rejected.status_code)


async def test_both_ways_count_among_the_streams_and_give_their_place_back() -> None:
    events = events_of()
    async with streaming(events, limit=1) as url:
        for way in (listening, reading, listening):
            async with way(url) as reader:
                await reader.next()
                assert await refusal(url) == 503


async def test_a_socket_ends_with_the_daemon() -> None:
    events, shown = events_of(), view_of()
    async with streaming(events, shown=shown) as url, listening(url) as reader:
        await reader.next()
        shown.closing.set()
        with pytest.raises(ConnectionClosed) as closed:
            await reader.next()
        assert closed.value.reason is not None
        assert (closed.value.reason.code, closed.value.reason.reason) == (1001, "the daemon is shutting down")


async def test_what_a_client_says_over_a_socket_means_nothing() -> None:
    events = events_of()
    async with streaming(events) as url, listening(url) as reader:
        await reader.next()
        await reader._socket.send_message("means nothing")
        events.log.append(LimitExceeded(resource="x", reason="y"))
        assert (await reader.next())[1] == "resource.limit.exceeded"


async def test_a_wrong_parameter_is_no_handshake() -> None:
    async with streaming(events_of()) as url:
        assert await refusal(url, "/api/events?since=1") == 400
