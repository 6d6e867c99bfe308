"""What waits for a sink is bounded by bytes, too; a log has the newest, and knows what is missing."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from supervisor.delivery.delivery import MAX_BATCH_BYTES, EventQueue
from supervisor.delivery.log import EventLog
from supervisor.events.event import DaemonEvent
from supervisor.events.kinds import LimitExceeded, ToolExecuted
from supervisor.usage.records import CallRecord


def event(number: int, size: int = 1000) -> DaemonEvent:
    return DaemonEvent(number=number, time=0.0, data=LimitExceeded(resource="x", reason="y"), size=size)


def test_large_events_are_bounded_by_their_bytes() -> None:
    queue = EventQueue(100, max_bytes=2500)
    for number in range(1, 6):
        queue.put(event(number))
    assert (len(queue), queue.dropped) == (2, 3)
    wide = EventQueue(100)
    for number in range(3):
        wide.put(event(number, MAX_BATCH_BYTES))
    assert [each.number for each in wide.batch(100)] == [0], "it goes alone"
    wide.bound(2)
    assert (len(wide), wide.dropped) == (2, 1)


def test_what_waits_may_have_as_many_bytes_as_the_bound_and_not_one_more() -> None:
    queue = EventQueue(100, max_bytes=2000)
    queue.put(event(1))
    queue.put(event(2))
    assert (len(queue), queue.dropped) == (2, 0)
    queue.put(event(3, 1))
    assert (len(queue), queue.dropped) == (2, 1)
    queue.put(event(4, 2001))
    assert (len(queue), queue.dropped) == (0, 4), "one that is larger than all that may wait does not"


def test_what_a_sink_has_taken_leaves_its_bytes_to_others() -> None:
    queue = EventQueue(100, max_bytes=2000)
    for number in range(10):
        queue.put(event(number, 2000))
        assert [each.number for each in queue.batch(100)] == [number]
        queue.settle("taken")
    assert (queue.sent, queue.dropped) == (10, 0)


def test_a_batch_may_have_as_many_bytes_as_its_bound_and_an_event_of_any_size_goes_alone() -> None:
    queue, sent = EventQueue(100), []
    for number, size in enumerate([MAX_BATCH_BYTES // 2, MAX_BATCH_BYTES // 2, 1, MAX_BATCH_BYTES + 1]):
        queue.put(event(number, size))
    while batch := queue.batch(100):
        sent.append([each.number for each in batch])
        queue.settle("taken")
    assert sent == [[0, 1], [2], [3]]


@given(
    st.integers(1, 20),
    st.lists(st.integers(0, 9), max_size=9),
    st.integers(0, 70),
    st.integers(1, 30),
)
def test_a_log_has_the_newest_of_which_none_is_missing(keep: int, tells: list[int], place: int, limit: int) -> None:
    """What is told is 0 for something else than calls, or so many calls at once."""
    log, told = EventLog(lambda: 5.0, keep), list[int]()
    log.told = lambda events: told.extend(event.number for event in events)
    for calls in tells:
        if calls:
            log.extend([CallRecord(tool="t", time=7.0)] * calls)
        else:
            log.append(LimitExceeded(resource="x", reason="y"))
    count = sum(calls or 1 for calls in tells)
    assert told == [*range(1, count + 1)]
    assert log.has_after(place) == (max(0, count - keep) <= place <= count)
    if log.has_after(place):
        numbers = [event.number for event in log.after(place, limit)]
        assert numbers == [*range(place + 1, count + 1)][:limit]


@given(st.integers(1, 20), st.lists(st.integers(0, 5), max_size=9), st.integers(0, 40), st.integers(1, 30))
def test_a_log_knows_of_each_kind_whether_any_is_missing(keep: int, tells: list[int], place: int, limit: int) -> None:
    """What is told is 0 for something else than calls, or so many calls at once."""
    log, told = EventLog(lambda: 5.0, keep), dict[type[object], list[int]]()
    for calls in tells:
        if calls:
            log.extend([CallRecord(tool="t", time=7.0)] * calls)
        else:
            log.append(LimitExceeded(resource="x", reason="y"))
        numbers = range(log.newest.value - (calls or 1) + 1, log.newest.value + 1)
        told.setdefault(ToolExecuted if calls else LimitExceeded, []).extend(numbers)
    for kind in (ToolExecuted, LimitExceeded):
        behind = [number for number in told.get(kind, []) if number > place]
        here = [number for number in behind if number > log.newest.value - keep]
        assert [event.number for event in log.of(kind, place, limit)] == here[:limit]
        assert {type(event.data) for event in log.of(kind, place, limit)} <= {kind}
        assert (log.begin_of(kind) <= place) == (behind == here)


async def test_who_waits_for_a_kind_is_woken_by_that_alone() -> None:
    log, woken = EventLog(lambda: 5.0, 10), list[int]()

    async def wait() -> None:
        await log.wait_for(LimitExceeded, 1)
        woken.append(log.newest.value)

    log.append(LimitExceeded(resource="x", reason="y"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        log.extend([CallRecord(tool="t", time=7.0)])
        await trio.testing.wait_all_tasks_blocked()
        assert woken == []
        log.append(LimitExceeded(resource="x", reason="y"))
    assert woken == [3]


@pytest.mark.parametrize("size", [10, 3000])
def test_a_log_is_bounded_by_bytes_and_keeps_the_newest(size: int) -> None:
    log = EventLog(lambda: 5.0, 100, max_bytes=4000)
    for _ in range(10):
        log.append(LimitExceeded(resource="x" * size, reason="y"))
    assert not log.has_after(0)
    assert log.has_after(9)
