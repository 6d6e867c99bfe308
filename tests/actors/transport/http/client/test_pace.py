"""A stream that says much is read a few times a second, in whatever pieces it comes; one that says little at once."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2
import pytest
import trio
from trio.testing import MockClock

from actors.kit.fairness.share import LoopShare
from actors.transport.http.client.pieces import (
    APART_S,
    AT_ONCE,
    MOST_EVENTS,
    PIECE_BYTES,
    events,
)
from tests.fakes.late_clock import exact_clock

LIMIT = 100_000
LEAST_S, MOST_S = APART_S


class Talkative(httpx2.AsyncByteStream):
    """A server that says so much a second, each event a chunk; one read brings all that was said until then.

    `reads` are the moments of the reads.
    """

    def __init__(self, per_s: float, total: int) -> None:
        self.reads: list[float] = []
        self._per_s = per_s
        self._total = total

    async def __aiter__(self) -> AsyncIterator[bytes]:
        begin = trio.current_time()
        for number in range(self._total):
            due = begin + (number + 1) / self._per_s
            if not self.reads or self.reads[-1] < due:
                await trio.sleep_until(due)  # a turn of the loop, also if it is past
                self.reads.append(trio.current_time())
            yield f"data: {number} {due}\n\n".encode()


class Gathered(httpx2.AsyncByteStream):
    """A server that has said everything: one read brings one of its `chunks`. Its own network stream, too."""

    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = chunks
        self._left = len(chunks)

    def get_extra_info(self, info: str) -> bool:
        assert info == "is_readable"
        return self._left > 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            await trio.lowlevel.checkpoint()
            self._left -= 1
            yield chunk


def answer_of(server: httpx2.AsyncByteStream) -> httpx2.Response:
    return httpx2.Response(
        200,
        headers={"content-type": "text/event-stream"},
        stream=server,
        request=httpx2.Request("GET", "http://here"),
        extensions={"network_stream": server} if isinstance(server, Gathered) else {},
    )


async def seconds_of(chunks: list[bytes], *, paced: bool = True) -> tuple[int, float]:
    """How many events are told in some reads, and the seconds that nothing was done meanwhile."""
    began, count = trio.current_time(), 0
    async with events(answer_of(Gathered(chunks)), 10_000_000, LoopShare(), paced=paced) as told:
        async for _ in told:
            count += 1
    return count, trio.current_time() - began


async def heard(server: Talkative, *, paced: bool = True) -> tuple[list[int], float]:
    """What was said, and the seconds by which the latest of it was late."""
    response = answer_of(server)
    numbers, latest = [], 0.0
    async with events(response, LIMIT, LoopShare(), paced=paced) as told:
        async for event in told:
            number, due = event.data.split()
            numbers.append(int(number))
            latest = max(latest, trio.current_time() - float(due))
    return numbers, latest


@exact_clock
async def test_a_stream_that_says_much_is_read_no_more_often_than_its_pace(autojump_clock: MockClock) -> None:
    server = Talkative(1000, 2000)
    numbers, latest = await heard(server)
    assert numbers == list(range(2000))
    assert len(server.reads) <= 1 / MOST_S + 1 / LEAST_S + AT_ONCE
    assert latest <= 2 * MOST_S + 1e-6


@exact_clock
async def test_a_stream_that_says_little_is_read_at_once(autojump_clock: MockClock) -> None:
    numbers, latest = await heard(Talkative(0.9 / MOST_S, 200))
    assert numbers == list(range(200))
    assert latest == 0.0


@exact_clock
async def test_a_stream_that_many_requests_share_is_always_read_at_once(autojump_clock: MockClock) -> None:
    numbers, latest = await heard(Talkative(1000, 200), paced=False)
    assert numbers == list(range(200))
    assert latest == 0.0


@exact_clock
async def test_an_answer_of_4_mb_in_one_event_is_read_without_a_pause(autojump_clock: MockClock) -> None:
    chunks = [b"data: ", *[b"x" * 8192] * 500, b"\n\n"]
    assert await seconds_of(chunks) == (1, 0.0)


@exact_clock
async def test_a_large_answer_of_many_lines_is_read_without_a_pause(autojump_clock: MockClock) -> None:
    chunks = [*[b"data: " + b"x" * 8000 + b"\n"] * 500, b"\n"]
    assert await seconds_of(chunks) == (1, 0.0)


@exact_clock
async def test_large_notes_that_have_gathered_are_read_together(autojump_clock: MockClock) -> None:
    notes = (AT_ONCE + 2) * MOST_EVENTS
    count, seconds = await seconds_of([b"data: " + b"x" * 8000 + b"\n\n"] * notes)
    assert count == notes
    assert 0 < seconds <= 3 * LEAST_S


@exact_clock
async def test_a_flood_of_small_events_is_read_no_faster_than_its_pace_however_much_has_gathered(
    autojump_clock: MockClock,
) -> None:
    reads = 150
    count, seconds = await seconds_of([b"data: x\n\n" * MOST_EVENTS] * reads)
    assert count == reads * MOST_EVENTS
    assert seconds >= (reads - AT_ONCE - 1 / LEAST_S) * MOST_S


@exact_clock
@pytest.mark.parametrize("paced", [True, False])
@pytest.mark.parametrize(
    "nothing", [b":\n", b"\n", b"id: a\n\n", b"unknown\n", b"event: x\n", b"event: x\ndata: x\n\n:\n:\n:\n"], ids=repr
)
async def test_lines_that_bring_nothing_are_read_no_faster_than_the_pace_on_every_stream(
    autojump_clock: MockClock, nothing: bytes, paced: bool
) -> None:
    reads, lines = 130, 5 * MOST_EVENTS
    _, seconds = await seconds_of([nothing * (lines // nothing.count(b"\n"))] * reads, paced=paced)
    assert seconds >= (reads - AT_ONCE - 1 / LEAST_S) * MOST_S


@exact_clock
async def test_of_what_was_read_at_once_no_more_than_a_piece_of_nothing_is_taken_in_a_visit(
    autojump_clock: MockClock,
) -> None:
    pieces = 130
    _, seconds = await seconds_of([b":\n" * (PIECE_BYTES // 2) * pieces], paced=False)
    assert seconds >= (pieces - AT_ONCE - 1 / LEAST_S - 1) * MOST_S


@exact_clock
async def test_what_belongs_to_events_that_bring_something_is_read_at_once(autojump_clock: MockClock) -> None:
    event = b"id: 1\nevent: message\nretry: 5\ndata: 1\ndata: 2\n\n"
    assert await seconds_of([event * 100] * 50, paced=False) == (5000, 0.0)
    large = event.replace(b"data: 1", b"data: " + b"x" * PIECE_BYTES)
    assert await seconds_of([large] * 500, paced=False) == (500, 0.0)


@exact_clock
async def test_a_sign_of_life_now_and_then_holds_up_nothing(autojump_clock: MockClock) -> None:
    class Quiet(Talkative):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for event in super().__aiter__():
                yield b": still here\n\n" + event

    numbers, latest = await heard(Quiet(0.9 / MOST_S, 200), paced=False)
    assert (numbers, latest) == ([*range(200)], 0.0)
