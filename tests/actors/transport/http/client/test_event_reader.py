"""Events are the same in whatever pieces they come, and what is held of them is little more than their bytes."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import AsyncIterator
from itertools import chain, repeat

import httpx2
import pytest

from actors.kit.fairness.share import LoopShare
from actors.transport.http.client.pieces import EventReader, StreamEvent, events


def event(data: str = "", *, event: str = "message", id_: str = "", retry: int | None = None) -> StreamEvent:
    return StreamEvent(event, data.encode(), id_, retry)


STREAMS = {
    "two of them": (b"data: 1\n\ndata: 2\n\n", [event("1"), event("2")]),
    "carriage returns": (b"data: 1\r\rdata: 2\r\ndata: 3\r\n\r\n", [event("1"), event("2\n3")]),
    "a mark at the begin": (b"\xef\xbb\xbfdata: 1\n\n", [event("1")]),
    "what is no UTF-8": (b"data: \xff\xc3\n\n", [event("\ufffd\ufffd")]),
    "letters of four bytes": ("data: é\U0001f600\u2028\x85\n\n".encode(), [event("é\U0001f600\u2028\x85")]),
    "comments": (b": hi\n\n:\ndata: 1\n:\n\n:", [event("1")]),
    "one space alone is taken off": (b"data:  1\ndata:2\ndata\n\n", [event(" 1\n2\n")]),
    "an id that stays": (b"id: a\ndata: 1\n\ndata: 2\n\n", [event("1", id_="a"), event("2", id_="a")]),
    "an id with NUL": (b"id: a\0\ndata: 1\n\n", [event("1")]),
    "an id alone": (b"id: a\n\n", [event(id_="a")]),
    "a name": (b"event: endpoint\ndata: /m\n\ndata: 1\n\n", [event("/m", event="endpoint"), event("1")]),
    "a pause": (b"retry: 20\ndata: 1\n\nretry: -1\nretry: 1_0\ndata: 2\n\n", [event("1", retry=20), event("2")]),
    "a pause of 5,000 digits": (b"retry: " + b"9" * 5000 + b"\ndata: 1\n\n", [event("1")]),
    "fields that nobody knows": (b"date: 1\nDATA: 2\n\n", []),
    "one that does not end": (b"data: 1\n\ndata: 2\n", [event("1")]),
}


@pytest.mark.parametrize("length", [1, 2, 3, 7, 10_000])
@pytest.mark.parametrize(("stream", "expected"), STREAMS.values(), ids=list(STREAMS))
def test_events_are_the_same_in_whatever_pieces_they_come(
    stream: bytes, expected: list[StreamEvent], length: int
) -> None:
    reader = EventReader(10_000)
    pieces = [stream[at : at + length] for at in range(0, len(stream), length)]
    assert [each for piece in pieces for each in reader.feed(piece)] == expected


@pytest.mark.parametrize("endless", [b"x", b":", b"data:\n", b"event: x\n", b"data: xy\n"])
def test_one_over_the_limit_is_refused_wherever_it_is_cut(endless: bytes) -> None:
    reader = EventReader(1000)
    for _ in range(1000 // len(endless) - 10):
        assert [*reader.feed(endless)] == []
    with pytest.raises(httpx2.SSEError):
        list(chain.from_iterable(map(reader.feed, repeat(endless, 2000 // len(endless)))))


def test_comments_and_events_that_ended_do_not_count_for_the_limit() -> None:
    reader = EventReader(100)
    assert [each for _ in range(100) for each in reader.feed(b": hello\ndata: 1\n\n")] == [event("1")] * 100


class Crumbs(httpx2.AsyncByteStream):
    """An event of so many pieces of two bytes each."""

    def __init__(self, count: int) -> None:
        self._count = count

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"data: "
        for _ in range(self._count):
            yield b"xy"
        yield b"\n\n"


async def test_an_event_in_tiny_pieces_takes_little_more_memory_than_its_bytes() -> None:
    count = 2000
    response = httpx2.Response(
        200,
        headers={"content-type": "text/event-stream"},
        stream=Crumbs(count),
        request=httpx2.Request("GET", "http://here"),
    )
    gc.collect()
    tracemalloc.start()
    try:
        async with events(response, 10_000_000, LoopShare()) as told:
            sizes = [len(each.data) async for each in told]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sizes == [2 * count]
    assert peak < 12 * sizes[0]
