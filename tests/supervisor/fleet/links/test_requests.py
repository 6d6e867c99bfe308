"""Requests of clients that another node answers, over a real connection."""

from __future__ import annotations

import pytest
import trio

from supervisor.fleet.engine import Elsewhere, NodeAway
from supervisor.fleet.links import frames, requests
from supervisor.fleet.links.frames import PART_BYTES
from supervisor.fleet.links.requests import DistantRequest, SentRequest
from tests.supervisor.fleet.links.test_links import linked

LINES = ((b"content-type", b"text/plain"),)


async def whole(sent: SentRequest) -> bytes:
    parts = []
    while (part := await sent.next()) is not None:
        parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize("size", [0, 10, PART_BYTES, 3 * PART_BYTES + 1, 5_000_000])
async def test_a_request_and_its_answer_pass_byte_for_byte(size: int) -> None:
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)

    async def answer(request: DistantRequest) -> None:
        await request.begin(200, LINES, whole=True)
        await request.send(request.head + request.body)
        request.end()

    async with linked() as (a, b, place):
        b.links.answer = answer
        sent = await a.links.request(place.node, b"head", body)
        begun = await sent.read_head()
        assert (begun.status, begun.lines, begun.whole) == (200, LINES, True)
        assert await whole(sent) == b"head" + body


async def test_an_answer_goes_on_as_fast_as_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "_WINDOW_BYTES", 1000)
    given: list[int] = []

    async def answer(request: DistantRequest) -> None:
        await request.begin(200, (), whole=False)
        for number in range(20):
            await request.send(bytes(500))
            given.append(number)
        request.end()

    async with linked() as (a, b, place):
        b.links.answer = answer
        sent = await a.links.request(place.node, b"", b"")
        await sent.read_head()
        while len(given) < 2:
            await trio.lowlevel.checkpoint()
        await trio.sleep(0.05)  # the third one has time to go wrong
        assert len(given) == 2
        assert len(await whole(sent)) == 20 * 500


async def test_who_takes_nothing_is_gone_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "_WINDOW_BYTES", 1000)
    monkeypatch.setattr(requests, "_STALL_S", 0.05)
    left = trio.Event()

    async def answer(request: DistantRequest) -> None:
        request.on_leave(left.set)
        await request.begin(200, (), whole=False)
        for _ in range(20):
            await request.send(bytes(500))
        request.end()

    async with linked() as (a, b, place):
        b.links.answer = answer
        await a.links.request(place.node, b"", b"")
        await left.wait()


async def test_a_client_that_leaves_is_told_of_there_and_one_that_may_not_go_on_is_cut_off() -> None:
    left, cancelled = trio.Event(), trio.Event()

    async def answer(request: DistantRequest) -> None:
        request.on_leave(left.set)
        try:
            await trio.sleep_forever()
        finally:
            cancelled.set()

    async with linked() as (a, b, place):
        b.links.answer = answer
        sent = await a.links.request(place.node, b"", b"")
        sent.leave()
        await left.wait()
        assert not cancelled.is_set()
        sent.abandon()
        await cancelled.wait()
        with pytest.raises(NodeAway, match="cut it short"):
            await sent.read_head()


async def test_what_breaks_on_the_way_is_told_at_both_ends_and_runs_on() -> None:
    left, asked, done = trio.Event(), trio.Event(), trio.Event()

    async def answer(request: DistantRequest) -> None:
        request.on_leave(left.set)
        asked.set()
        await left.wait()
        await request.begin(200, (), whole=True)
        await request.send(b"in vain")
        request.end()
        done.set()

    async with linked() as (a, b, place):
        b.links.answer = answer
        sent = await a.links.request(place.node, b"", b"")
        await asked.wait()
        link = a.links.find(place.node)
        assert link is not None
        link.stream.hang_up()
        with pytest.raises(NodeAway, match="broke") as broken:
            await sent.read_head()
        assert broken.value.outcome == "unknown"
        await done.wait()


async def test_a_node_without_a_front_refuses_and_one_that_ends_is_asked_no_more() -> None:
    async with linked() as (a, b, place), trio.open_nursery() as nursery:
        with pytest.raises(NodeAway, match="no requests yet"):
            await (await a.links.request(place.node, b"", b"")).read_head()
        asked, go_on = trio.Event(), trio.Event()

        async def answer(request: DistantRequest) -> None:
            asked.set()
            await go_on.wait()
            await request.begin(204, (), whole=True)
            request.end()

        b.links.answer = answer
        sent = await a.links.request(place.node, b"", b"")
        await asked.wait()
        nursery.start_soon(b.links.close)
        link = a.links.find(place.node)
        assert link is not None
        while not link.closing:
            await trio.lowlevel.checkpoint()
        with pytest.raises(Elsewhere):
            await a.links.request(place.node, b"", b"")
        go_on.set()
        assert (await sent.read_head()).status == 204
        assert await whole(sent) == b""


async def test_many_answers_together_wait_for_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are, what waits to be sent is bounded."""
    monkeypatch.setattr(frames, "_CROWDED_BYTES", 10_000)
    most = 0

    async def answer(request: DistantRequest) -> None:
        nonlocal most
        await request.begin(200, (), whole=False)
        for _ in range(20):
            await request.send(bytes(5000))
            most = max(most, request._stream._waiting)
        request.end()

    async with linked() as (a, b, place):
        b.links.answer = answer
        sizes: list[int] = []

        async def read() -> None:
            sent = await a.links.request(place.node, b"", b"")
            await sent.read_head()
            sizes.append(len(await whole(sent)))

        async with trio.open_nursery() as nursery:
            for _ in range(30):
                nursery.start_soon(read)
        assert sizes == [100_000] * 30
        assert most < 10_000 + 30 * 5100


async def test_what_waits_for_a_connection_that_breaks_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "_CROWDED_BYTES", -1)
    waits, over = trio.Event(), trio.Event()

    async def answer(request: DistantRequest) -> None:
        await request.begin(200, (), whole=False)
        waits.set()
        await request.send(b"x")
        over.set()

    async with linked() as (a, b, place):
        b.links.answer = answer
        await a.links.request(place.node, b"", b"")
        await waits.wait()
        link = a.links.find(place.node)
        assert link is not None
        link.stream.hang_up()
        await over.wait()
