"""A stream over a real socket: what a slow reader gets, and that a quiet one hears that somebody is there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio

from supervisor.delivery.events import DaemonEvents
from supervisor.events.other_kinds import LimitExceeded
from supervisor.front.pages.api import View
from supervisor.front.pages.event_streams import EventStreams
from supervisor.usage.records import CallRecord
from tests.fakes.event_reader import StreamReader, reading
from tests.fakes.front_server import dispatch, running
from tests.fakes.told_events import events_of
from tests.fakes.tool_view import view_of


@asynccontextmanager
async def streaming(events: DaemonEvents, keepalive_s: float = 15.0, **settings: Any) -> AsyncIterator[str]:
    shown: View = view_of(events=events)
    streams = EventStreams(shown, keepalive_s, 32)
    async with running(dispatch(event_streams=streams), shown.closing, **settings) as server:
        yield f"http://127.0.0.1:{server.port}"


async def read_until(reader: StreamReader, last: int) -> tuple[int, int]:
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


async def flood(events: DaemonEvents, count: int) -> None:
    for number in range(count):
        events.log.append(LimitExceeded(resource="x" * 500, reason="y"))
        if number % 100 == 99:
            await trio.sleep(0.001)


async def go_on(events: DaemonEvents) -> None:
    while True:
        events.log.append(LimitExceeded(resource="x", reason="y"))
        await trio.sleep(0.01)


async def test_a_reader_that_is_slow_makes_nothing_grow_and_is_told_what_it_missed() -> None:
    events = events_of(max_kept_events=100)
    async with streaming(events, send_timeout_s=60) as url, reading(url) as reader:
        await reader.next()
        await flood(events, 20_000)
        assert not events.log.has_after(19_000)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(go_on, events)
            count, resets = await read_until(reader, 20_010)
            nursery.cancel_scope.cancel()
    assert resets >= 1
    assert count < 20_000


async def test_a_reader_that_keeps_up_gets_everything() -> None:
    events = events_of(max_kept_events=100)
    async with streaming(events) as url, reading(url) as reader:
        await reader.next()
        for _ in range(30):
            for _ in range(50):
                events.log.append(LimitExceeded(resource="x", reason="y"))
            seen, resets = await read_until(reader, events.log.newest.value)
            assert (seen, resets) == (50, 0)


async def test_calls_that_are_counted_together_hold_up_nothing_that_comes_after_them() -> None:
    events = events_of()
    async with streaming(events) as url, reading(url) as reader:
        await reader.next()
        with trio.fail_after(30):
            for _ in range(3):
                events.take([CallRecord(tool="t", outcome="ok")] * 4)
                assert await read_until(reader, events.log.newest.value) == (4, 0)
                events.log.append(LimitExceeded(resource="x", reason="y"))
                assert (await reader.next())[1] == "resource.limit.exceeded"


async def test_whoever_reads_the_rest_elsewhere_gets_what_happened_in_brief() -> None:
    events = events_of()
    async with streaming(events) as url, reading(url, "/api/events?brief=true") as reader:
        await reader.next()
        events.log.append(LimitExceeded(resource="x", reason="y"))
        id_, kind, told = await reader.next()
    assert told == {"id": id_, "type": kind}
    assert kind == "resource.limit.exceeded"


async def test_a_quiet_stream_says_that_somebody_is_there() -> None:
    events = events_of()
    async with streaming(events, keepalive_s=0.02) as url, reading(url) as reader:
        await reader.next()
        for _ in range(3):
            await reader.comment()
        events.log.append(LimitExceeded(resource="x", reason="y"))
        assert (await reader.next())[1] == "resource.limit.exceeded"
