"""Events are posted each by itself until they are taken; what is safe to keep never is ahead of one that is not."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import msgspec
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from actors.principal import Principal
from supervisor.service.events.callbacks import Receiver
from supervisor.service.events.journal import Journal, TopicLog
from supervisor.service.events.limits import MAX_ATTEMPTS, MAX_IN_FLIGHT, REMOVED, RETRY_S, REVOKED, Reason
from supervisor.service.events.posting import FailureRate, Health, Poster, Posting, Watermark
from supervisor.service.events.sources import Origin
from supervisor.service.events.topics import Topic
from tests.fakes.callbacks import Endpoint

EPOCH = 1_700_000_000.0


def now() -> float:
    """The time of day by the virtual clock, in unix seconds."""
    return EPOCH + trio.current_time()


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_the_watermark_is_behind_all_that_is_not_settled_and_never_goes_back(steps: list[int], chance: Any) -> None:
    """Whatever the order in which answers come."""
    numbers, open_, last = [sum(steps[: place + 1]) for place in range(len(steps))], set[int](), 0
    mark, waiting = Watermark(0), list(numbers)
    while waiting or open_:
        if waiting and (not open_ or chance.random() < 0.5):
            mark.begin(number := waiting.pop(0))
            open_.add(number)
            told = mark.with_(number)
            assert told <= number
            assert all(other > told for other in open_ - {number}), "nothing else is lost with it"
        else:
            open_.discard(number := chance.choice(sorted(open_)))
            mark.settle(number)
        assert len(mark) == len(open_)
        assert all(number > mark.number for number in open_)
        assert mark.number >= last
        last = mark.number
    assert mark.number == numbers[-1]
    mark.reach(numbers[-1] + 5)
    assert mark.number == numbers[-1] + 5


def test_there_is_no_hope_where_nearly_all_of_many_attempts_of_an_hour_failed() -> None:
    rate = FailureRate()
    for second in range(99):
        rate.note(second, failed=True)
    assert not rate.is_hopeless(99), "a handful says nothing"
    rate.note(99, failed=True)
    assert rate.is_hopeless(100)
    for second in range(6):
        rate.note(100 + second, failed=False)
    assert not rate.is_hopeless(106), "one in twenty is hope"
    for second in range(200, 400):
        rate.note(second, failed=True)
    assert rate.is_hopeless(400)
    assert not rate.is_hopeless(400 + 3700), "what was an hour ago says nothing"


class Rig:
    """A topic in memory, and what posts it to an endpoint."""

    def __init__(self) -> None:
        self.journal = Journal(now)
        self.topic = Topic(Origin("s:tick", "s", "tick", b"{}"), TopicLog("s:tick"), self.journal)
        self.endpoint = Endpoint()
        self.health = Health(now)
        self.allowed = True
        self.cursors: list[str] = []
        receiver = Receiver(Principal("user:ada"), "https://a.example/", "sub_1", (b"k" * 24,))
        self.poster = Poster(self.endpoint, lambda: receiver, self.health)  # type: ignore[arg-type]  # a fake
        self.posting = Posting(self.topic, 0, self.poster, lambda: self.cursors.append(self.posting.cursor))

    def happen(self, *ids: str, size: int = 0) -> None:
        for id_ in ids:
            said = {"eventId": id_, "name": "tick", "timestamp": "2026-01-01T00:00:00Z", "data": {"x": "y" * size}}
            self.topic.event(msgspec.Raw(json.dumps(said).encode()), None)

    async def may(self) -> bool:
        return self.allowed

    async def run(self) -> None:
        await self.posting.run(self.may)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[trio.Nursery]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.run)
            yield nursery
            nursery.cancel_scope.cancel()


@pytest.fixture
def rig() -> Rig:
    return Rig()


def number_of(cursor: str) -> int:
    return int(cursor.rpartition(".")[2])


async def test_events_come_as_they_are_with_a_cursor_and_their_own_ids(rig: Rig, autojump_clock: MockClock) -> None:
    rig.happen("a", "b")
    async with rig.running():
        await trio.sleep(1)
        rig.happen("c\n", "d" * 900)
        await trio.sleep(1)
    assert sorted(rig.endpoint.ids[:2]) == ["a", "b"]
    posted = {body["eventId"]: body for body in rig.endpoint.of("event")}
    assert posted.keys() == {"a", "b", "c\n", "d" * 900}
    assert all(id_.startswith("evt_") and len(id_) == 68 for id_ in rig.endpoint.ids[2:]), "a head has no such id"
    assert {body["name"] for body in posted.values()} == {"s:tick"}
    assert number_of(posted["a"]["cursor"]) == 1
    assert number_of(posted["d" * 900]["cursor"]) in (2, 3, 4), "by whether the one before it was taken first"
    assert number_of(rig.cursors[-1]) == 4


async def test_an_event_that_is_not_taken_is_posted_again_ever_later_and_then_given_up(
    rig: Rig, autojump_clock: MockClock
) -> None:
    rig.endpoint.answer = lambda body: "http_5xx" if body["eventId"] == "bad" else None
    rig.happen("bad", "good")
    async with rig.running():
        await trio.sleep(1)
        assert sorted(rig.endpoint.ids) == ["bad", "good"], "others do not wait for it"
        assert number_of(rig.posting.cursor) == 0, "it is neither taken nor given up"
        await trio.sleep(RETRY_S)
        assert number_of(rig.posting.cursor) == 2
    moments = [moment for moment, id_, _ in rig.endpoint.posted if id_ == "bad"]
    assert len(moments) == MAX_ATTEMPTS
    pauses = [after - before for before, after in pairwise(moments)]
    assert pauses == sorted(pauses)
    assert moments[-1] - moments[0] < RETRY_S


async def test_an_endpoint_that_asks_for_time_gets_it(rig: Rig, autojump_clock: MockClock) -> None:
    refusals: list[Reason | int] = [429, 429]
    rig.endpoint.answer, rig.endpoint.retry_after_s = (lambda body: refusals.pop() if refusals else None), 60.0
    rig.happen("a")
    async with rig.running():
        await trio.sleep(RETRY_S)
    first, second, third = (moment for moment, *_ in rig.endpoint.posted)
    assert (round(second - first), round(third - second)) == (60, 60)


async def test_slow_failures_are_not_tried_for_longer_than_the_limit(rig: Rig, autojump_clock: MockClock) -> None:
    rig.endpoint.answer, rig.endpoint.took_s = lambda body: "timeout", 200.0
    rig.happen("slow")
    async with rig.running():
        await trio.sleep(3 * RETRY_S)
    assert 1 < len(rig.endpoint.posted) < MAX_ATTEMPTS
    assert rig.endpoint.posted[-1][0] < RETRY_S


@pytest.mark.parametrize("status", [410, 413])
async def test_what_is_refused_for_good_is_not_posted_again_and_the_endpoint_is_well(
    rig: Rig, autojump_clock: MockClock, status: int
) -> None:
    rig.endpoint.answer = lambda body: status
    rig.happen(*map(str, range(200)))
    async with rig.running():
        await trio.sleep(RETRY_S)
    assert len(rig.endpoint.posted) == 200
    assert number_of(rig.posting.cursor) == 200
    assert rig.health.is_active


async def test_so_many_events_are_under_way_at_a_time(rig: Rig, autojump_clock: MockClock) -> None:
    rig.endpoint.took_s = 1.0
    rig.happen(*map(str, range(3 * MAX_IN_FLIGHT)))
    async with rig.running():
        await trio.sleep(0.5)
        assert len(rig.endpoint.posted) == MAX_IN_FLIGHT
        await trio.sleep(5)
    assert sorted(rig.endpoint.ids, key=int) == list(map(str, range(3 * MAX_IN_FLIGHT)))


async def test_a_gap_is_told_and_what_is_behind_it_too(rig: Rig, autojump_clock: MockClock) -> None:
    rig.happen("a")
    async with rig.running():
        await trio.sleep(1)
        rig.topic.active(None, truncated=True)
        rig.happen("b")
        await trio.sleep(1)
    assert sorted(str(body.get("type", body.get("eventId"))) for *_, body in rig.endpoint.posted) == ["a", "b", "gap"]
    [(_, id_, gap)] = [each for each in rig.endpoint.posted if each[2].get("type")]
    assert gap.keys() == {"type", "cursor"}
    assert id_.startswith("msg_gap_")
    assert number_of(gap["cursor"]) == 2


async def test_a_gap_that_is_not_taken_yet_holds_the_watermark(rig: Rig, autojump_clock: MockClock) -> None:
    rig.endpoint.answer = lambda body: "timeout" if body.get("type") else None
    rig.topic.active(None, truncated=True)
    rig.happen("b")
    async with rig.running():
        await trio.sleep(1)
        assert rig.endpoint.of("event")[0]["eventId"] == "b"
        assert number_of(rig.posting.cursor) == 0
        rig.endpoint.answer = lambda body: None
        await trio.sleep(60)
        assert number_of(rig.posting.cursor) == 2
    assert len(set(rig.endpoint.ids)) == 2, "it comes again under the same id"


async def test_what_is_not_kept_any_more_when_its_turn_comes_is_a_gap(rig: Rig, autojump_clock: MockClock) -> None:
    rig.endpoint.answer = lambda body: "timeout" if body.get("eventId") == "first" else None
    rig.happen("first")
    async with rig.running():
        await trio.sleep(1)
        rig.happen(*map(str, range(1000)))
        await trio.sleep(RETRY_S)
    assert rig.endpoint.ids.count("first") == 1
    assert len(rig.endpoint.of("gap")) == 1
    assert number_of(rig.posting.cursor) == 1001


async def test_who_loses_the_right_is_posted_nothing_more(rig: Rig, autojump_clock: MockClock) -> None:
    rig.endpoint.answer = lambda body: "timeout"
    rig.happen("a", "b")
    async with rig.running() as nursery:
        await trio.sleep(1)
        rig.allowed = False
        await trio.sleep(30)
        assert sorted(rig.endpoint.ids) == ["a", "b"], "not even what is under way"
        assert not nursery.child_tasks


async def test_the_end_of_a_topic_waits_for_what_is_under_way(rig: Rig, autojump_clock: MockClock) -> None:
    rig.endpoint.answer = lambda body: "timeout" if trio.current_time() < 20 else None
    rig.happen("a")
    rig.topic.end(REMOVED)
    with trio.fail_after(RETRY_S):
        await rig.run()
    assert rig.endpoint.ids == ["a", "a", "a"]
    await rig.poster.terminate(REVOKED, rig.may)
    assert rig.endpoint.posted[-1][2] == {
        "type": "terminated",
        "error": {"code": -32024, "message": "Forbidden", "data": {"reason": "Access revoked"}},
    }


async def test_nothing_is_posted_without_hope_until_its_client_comes_again(
    rig: Rig, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    rig.endpoint.answer = lambda body: "http_5xx"
    rig.happen(*map(str, range(40)))
    async with rig.running():
        await trio.sleep(3600)
        status = rig.health.status()
        assert (status.active, status.last_error, status.last_delivery_at) == (False, "http_5xx", None)
        assert status.failed_since == "2023-11-14T22:13:20.000Z"
        count, cursor = len(rig.endpoint.posted), rig.posting.cursor
        assert count in range(100, 120)
        (told,) = caplog.messages
        assert told.startswith("nothing is posted to a.example for sub_1 until that is refreshed")
        await trio.sleep(3600)
        assert (len(rig.endpoint.posted), rig.posting.cursor) == (count, cursor), "no time passes for what waits"
        rig.endpoint.answer = lambda body: None
        rig.health.resume()
        await trio.sleep(RETRY_S)
        status = rig.health.status()
        assert (status.active, status.last_error) == (True, None)
        assert status.last_delivery_at is not None
    assert number_of(rig.posting.cursor) == 40
