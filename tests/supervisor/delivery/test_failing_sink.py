"""Whatever a sink does, in whatever order: order is kept, nothing is lost but what the bound says, counts add up."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import trio
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace
from trio.testing import MockClock

from actors.kit import Latest
from supervisor.config import Settings
from supervisor.config.sections import EventSink
from supervisor.delivery.delivery import (
    FLUSH_S,
    MAX_DOUBLINGS,
    OVERTIME_S,
    Delivered,
    Delivery,
    EventBatch,
    Outcome,
    SinkStatus,
)
from supervisor.events.event import DaemonEvent
from supervisor.events.kinds import LimitExceeded

ANSWERS: dict[str, Outcome] = {
    "taken": "taken",
    "slow": "taken",
    "refused": "refused",
    "throttled": "throttled",
    "kept": "kept",
}
MOODS = (*ANSWERS, "lost", "breaks", "hangs")
"""`slow`: it takes them in time. `lost`: it takes them, and its answer does not come. `breaks`: it raises."""
SLOW_S = 4.0


class Attempt(Struct, kw_only=True):
    """A batch that a sink was shown, by which of its couriers, and what that one heard of it."""

    courier: int
    began: float
    numbers: list[int]
    dropped: int
    arrived: bool
    ended: float = 0.0
    outcome: Outcome = "kept"


class FailingSink:
    """Does what its moods say, and takes everything when they are over."""

    def __init__(self, moods: Sequence[str]) -> None:
        self.moods = list(moods)
        self.attempts: list[Attempt] = []
        self.couriers = 0

    def make(self, config: EventSink) -> FailingSink:
        del config
        self.couriers += 1
        return self

    async def deliver(self, batch: EventBatch) -> Delivered:
        mood = self.moods.pop(0) if self.moods else "taken"
        numbers = [event.number for event in batch.events]
        assert batch.id == f"evt_7-{numbers[0]}"
        attempt = Attempt(
            courier=self.couriers,
            began=trio.current_time(),
            numbers=numbers,
            dropped=batch.dropped,
            arrived=mood in ("taken", "slow", "lost"),
        )
        self.attempts.append(attempt)
        try:
            await trio.sleep({"slow": SLOW_S, "lost": 1000.0, "hangs": 1000.0}.get(mood, 0.0))
            attempt.outcome = ANSWERS[mood]  # which "breaks" has not
        finally:
            attempt.ended = trio.current_time()
        return Delivered(attempt.outcome, "" if attempt.outcome == "taken" else mood)

    async def close(self) -> None:
        await trio.lowlevel.checkpoint()


class World:
    """One sink of a daemon, and what it was told."""

    def __init__(self, moods: Sequence[str], batch: int, queue: int) -> None:
        self.sink = FailingSink(moods)
        self.configs = [EventSink(name="a", batch_events=batch, queue_events=queue)]
        self.changed = Latest(self.settings())
        self.delivery = Delivery(self.sink.make, lambda number: f"7-{number}", trio.current_time)
        self.delivery.configure(self.settings())
        self.emitted = 0

    def settings(self) -> Settings:
        return Settings(event_sinks=(self.configs[-1],))

    def put(self, count: int) -> None:
        for _ in range(count):
            self.emitted += 1
            dropped = self.status().dropped
            data = LimitExceeded(resource="x", reason="y")
            self.delivery.take([DaemonEvent(number=self.emitted, time=0.0, data=data)])
            self.check_counts()
            assert self.status().dropped == dropped or self.status().queued >= self.configs[-1].queue_events

    def change(self, batch: int) -> None:
        """Have the configuration changed while it runs: another courier goes on with what waits."""
        self.configs.append(replace(self.configs[-1], batch_events=batch))
        self.changed.set(self.settings())

    def status(self) -> SinkStatus:
        (status,) = self.delivery.status()
        return status

    def check_counts(self) -> None:
        status = self.status()
        assert status.emitted == self.emitted == status.sent + status.refused + status.dropped + status.queued
        assert status.queued <= max(self.configs[-1].queue_events, self.most_at_once)

    @property
    def most_at_once(self) -> int:
        return max(config.batch_events for config in self.configs)

    def check_attempts(self) -> None:
        """Check what the sink saw: order, batches, pauses, and that nothing is missing but what was dropped."""
        attempts, status = self.sink.attempts, self.status()
        for one, other in pairwise(attempts):
            if one.outcome in ("taken", "refused"):
                assert other.numbers[0] > one.numbers[-1], "in order, and none again that is settled"
            else:
                assert other.numbers == one.numbers, "the same batch again, before anything else"
        settled = [attempt for attempt in attempts if attempt.outcome in ("taken", "refused")]
        told = {
            kind: [number for attempt in settled if attempt.outcome == kind for number in attempt.numbers]
            for kind in ("taken", "refused")
        }
        assert (len(told["taken"]), len(told["refused"])) == (status.sent, status.refused)
        assert [*told["taken"]] == sorted({*told["taken"]}), "each once"
        assert {number for attempt in attempts if attempt.arrived for number in attempt.numbers} >= {*told["taken"]}
        dropped = [attempt.dropped for attempt in attempts]
        assert dropped == sorted(dropped)
        assert all(len(attempt.numbers) <= self.most_at_once for attempt in attempts)
        assert all(attempt.ended - attempt.began <= 10.0 + OVERTIME_S + 0.001 for attempt in attempts)

    def check_pauses(self, until: float) -> None:
        """Check that the sink was left alone for 3 s between two batches, twice as long for each 429 in a row."""
        doublings = 0
        for one, other in pairwise(self.sink.attempts):
            if one.courier != other.courier:
                doublings = 0
                continue
            doublings = min(doublings + 1, MAX_DOUBLINGS) if one.outcome == "throttled" else doublings
            doublings = 0 if one.outcome in ("taken", "refused") else doublings
            if other.began < until:
                assert other.began - one.ended >= 3.0 * 2**doublings - 0.001


STEP = st.one_of(
    st.tuples(st.just("put"), st.integers(1, 30)),
    st.tuples(st.just("wait"), st.sampled_from([0.5, 3.0, 10.0, 60.0])),
    st.tuples(st.just("change"), st.integers(1, 12)),
)
LONG_S = 48.0 + 10.0 + OVERTIME_S
"""No attempt takes longer, with the pause before it."""


@given(
    st.lists(st.sampled_from(MOODS), max_size=12),
    st.lists(STEP, max_size=15),
    st.integers(1, 12),
    st.integers(12, 40),
    st.booleans(),
)
@example([*MOODS], [("put", 30)], 4, 40, False)
@example(["hangs", "throttled", "lost"], [("put", 30), ("wait", 3.0), ("put", 30)], 10, 20, True)
@example([], [("put", 1), ("wait", 3.0), ("change", 1)], 2, 12, False)
@example(["slow"], [("put", 9), ("wait", 3.0), ("change", 2), ("put", 1)], 5, 12, True)
def test_order_is_kept_nothing_is_lost_but_what_the_bound_says_and_counts_add_up(
    moods: list[str], steps: list[tuple[str, Any]], batch: int, queue: int, ends_at_once: bool
) -> None:
    async def play() -> None:
        world = World(moods, batch, queue)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.delivery.run, world.settings, world.changed)
            for what, value in steps:
                await trio.sleep(0.01)
                if what == "wait":
                    await trio.sleep(value)
                else:
                    getattr(world, what)(value)
                world.check_counts()
            await trio.sleep(0.01 if ends_at_once else LONG_S * (len(moods) + 1 + world.emitted))
            ended = trio.current_time()
            if not ends_at_once:
                assert world.status().queued == 0, "it has everything once it takes it"
            await world.delivery.flush()
            assert trio.current_time() - ended <= FLUSH_S + 0.001
            assert not world.status().queued or trio.current_time() - ended >= FLUSH_S - 0.001, "the time was used"
            world.check_counts()
            world.check_attempts()
            world.check_pauses(ended)
            nursery.cancel_scope.cancel()

    trio.run(play, clock=MockClock(autojump_threshold=0))
