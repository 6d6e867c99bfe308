"""A sink gets batches in time and in order, whatever it answers; the status says what became of all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest
import trio

from actors.kit import Latest
from supervisor.config import Settings
from supervisor.config.sections import EventSink
from supervisor.delivery.delivery import Courier, Delivered, Delivery, EventBatch, Outcome
from supervisor.events.event import DaemonEvent
from supervisor.events.kinds import LimitExceeded, ToolExecuted
from tests.fakes.told_events import KeepingSink


def event(number: int) -> DaemonEvent:
    return DaemonEvent(number=number, time=0.0, data=LimitExceeded(resource="x", reason="y"))


def show(number: int) -> str:
    return f"7-{number}"


@asynccontextmanager
async def serving(sink: Any, **config: Any) -> AsyncIterator[Courier]:
    courier = Courier(EventSink(name="a", **config), sink, show, trio.current_time)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(courier.run)
        yield courier
        courier.scope.cancel()


def take(courier: Courier, *numbers: int) -> None:
    for number in numbers:
        courier.take(event(number))


async def test_a_batch_every_three_seconds_and_none_of_nothing(autojump_clock: object) -> None:
    sink = KeepingSink()
    async with serving(sink) as courier:
        await trio.sleep(100)
        assert sink.batches == []
        start = trio.current_time()
        take(courier, *range(1, 251))
        await trio.sleep(60)
    assert [len(batch.events) for batch in sink.batches] == [100, 100, 50]
    assert [time - start for time in sink.times] == pytest.approx([3, 6, 9])
    assert sink.taken == [*range(1, 251)]
    first = sink.batches[0]
    assert (first.id, first.ids[:2], first.dropped) == ("evt_7-1", ["7-1", "7-2"], 0)
    assert first.texts[0].startswith(b'{"id":"7-1","type":"resource.limit.exceeded"')
    assert sink.closed


@pytest.mark.parametrize(
    ("answers", "pauses"),
    [
        (["throttled"] * 6, [3, 6, 12, 24, 48, 48, 48]),
        (["kept"] * 3, [3, 3, 3, 3]),
        (["throttled", "kept", "kept"], [3, 6, 6, 6]),
    ],
)
async def test_what_was_not_taken_is_sent_again(
    answers: list[Outcome], pauses: list[float], autojump_clock: object
) -> None:
    sink = KeepingSink(answers)
    async with serving(sink) as courier:
        start = trio.current_time()
        take(courier, 1, 2)
        await trio.sleep(4)
        take(courier, 3)
        await trio.sleep(1000)
        status = courier.status()
    times = [start, *sink.times]
    waited = [later - earlier for earlier, later in pairwise(times)]
    assert waited[: len(pauses)] == pytest.approx(pauses)
    assert len({batch.id for batch in sink.batches[: len(pauses)]}) == 1
    assert sink.taken == [1, 2, 3]
    assert (status.emitted, status.sent, status.failed, status.queued) == (3, 3, len(answers), 0)
    assert status.last_error == ""
    assert status.last_error_at is not None
    assert status.last_sent_at is not None


class BadSink(KeepingSink):
    """Raises, hangs, or breaks off first."""

    def __init__(self, first: str) -> None:
        super().__init__()
        self.first = first

    async def deliver(self, batch: EventBatch) -> Delivered:
        first, self.first = self.first, ""
        if first == "raises":
            raise RuntimeError("canary")
        if first == "hangs":
            await trio.sleep_forever()
        return await super().deliver(batch)


@pytest.mark.parametrize(("first", "why"), [("raises", "it failed (RuntimeError)"), ("hangs", "longer than 10 s")])
async def test_the_trouble_of_a_sink_is_its_own(first: str, why: str, autojump_clock: object) -> None:
    sink = BadSink(first)
    async with serving(sink) as courier:
        take(courier, 1)
        with trio.fail_after(60):
            while not courier.status().failed:  # noqa: ASYNC110 - virtual time
                await trio.sleep(0.5)
        assert why in courier.status().last_error
        await trio.sleep(10)
    assert sink.taken == [1]


async def test_a_sink_gets_the_kinds_that_it_wants(autojump_clock: object) -> None:
    sink = KeepingSink()
    async with serving(sink, events=("mcp.tool.*", "config.error")) as courier:
        take(courier, 1)
        executed = ToolExecuted(tool_name="t", success=True, outcome="ok", response_time_ms=1.0)
        courier.take(DaemonEvent(number=2, time=0.0, data=executed))
        await trio.sleep(10)
        assert courier.status().emitted == 1
    assert sink.taken == [2]


# All sinks --------------------------------------------------------------------------------------------------------


class Sinks:
    """Makes sinks, and keeps them by name; `answers` is what each begins with."""

    def __init__(self, answers: Sequence[Outcome] = ()) -> None:
        self.made: dict[str, list[KeepingSink]] = {}
        self.answers = answers

    def make(self, config: EventSink) -> KeepingSink:
        sink = KeepingSink(self.answers)
        self.made.setdefault(config.name, []).append(sink)
        return sink


def sinks(*names: str, **more: Any) -> Settings:
    return Settings(event_sinks=tuple(EventSink(name=name, **more) for name in names))


@pytest.mark.parametrize(("answers", "arrive"), [((), True), (("kept",) * 3, True), (("kept",) * 100, False)])
async def test_at_the_end_there_are_five_seconds(
    answers: Sequence[Outcome], arrive: bool, autojump_clock: object
) -> None:
    made = Sinks(answers)
    delivery = Delivery(made.make, show, trio.current_time)
    delivery.configure(sinks("a"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(delivery.run, lambda: sinks("a"), Latest(None))
        for number in range(1, 301):
            delivery.take([event(number)])
        start = trio.current_time()
        await delivery.flush()
        assert (trio.current_time() - start < 3) == arrive
        assert trio.current_time() - start <= 5.001
        nursery.cancel_scope.cancel()
    (sink,) = made.made["a"]
    assert sink.taken == ([*range(1, 301)] if arrive else [])


async def test_a_reload_keeps_what_is_the_same_and_hands_over_what_changed(autojump_clock: object) -> None:
    made, cell = Sinks(), Latest(sinks("a", "b", "c"))
    delivery = Delivery(made.make, show, trio.current_time)
    delivery.configure(cell.value)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(delivery.run, lambda: cell.value, cell)
        delivery.take([event(1)])
        same, gone, changed = cell.value.event_sinks
        cell.set(Settings(event_sinks=(same, EventSink(name="c", interval_s=1.0), EventSink(name="d"))))
        await trio.sleep(0.1)
        delivery.take([event(2)])
        await trio.sleep(10)
        assert [status.name for status in delivery.status()] == ["a", "c", "d"]
        nursery.cancel_scope.cancel()
    assert {name: [sink.taken for sink in each] for name, each in made.made.items()} == {
        "a": [[1, 2]],
        "b": [[1]],
        "c": [[], [1, 2]],
        "d": [[2]],
    }
    assert all(sink.closed for each in made.made.values() for sink in each)
    assert (gone.name, changed.name) == ("b", "c")
