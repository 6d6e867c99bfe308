"""The clock of the loop leaves out the time in which nothing went on, and never goes back."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from supervisor.host.turns import AGAIN_S, CATCH_UP_S, LONGEST_WAIT_S, STANDSTILL_S, LoopClock
from tests.fakes.clock import Clock

SMALL_S = 1e-6
"""Sums of these floats are no more exact than that."""


class Loop:
    """Asks a clock as trio does: before it waits, and after that. `stood` has what was told."""

    def __init__(self) -> None:
        self.real = Clock()
        self.stood: list[float] = []
        self.clock = LoopClock(self.stood.append, self.real)
        self.clock.start_clock()

    @property
    def now(self) -> float:
        return self.clock.current_time()

    def wait(self, deadline: float = math.inf, stopped_s: float = 0.0) -> float:
        """Wait until a moment, as long as the clock lets; the process is stopped for so long meanwhile.

        No wait takes no time at all: what is left of a deadline may be less than the sums here are exact.
        """
        self.real.now += max(SMALL_S, self.clock.deadline_to_sleep_time(deadline)) + stopped_s
        return self.now

    def work(self, seconds: float) -> float:
        self.real.now += seconds
        return self.now


def test_it_goes_as_the_clock_of_the_system_while_the_loop_runs() -> None:
    loop = Loop()
    began = loop.now
    for _ in range(100):
        loop.work(0.9)
        loop.wait()
    assert loop.now - began == pytest.approx(100 * (0.9 + LONGEST_WAIT_S))
    assert loop.stood == []


def test_a_deadline_is_waited_for_in_pieces_and_met() -> None:
    loop = Loop()
    deadline = loop.now + 2.5
    waits = 0
    while loop.wait(deadline) < deadline:
        waits += 1
    assert loop.now == pytest.approx(deadline)
    assert waits == 2


@pytest.mark.parametrize("stopped_s", [1.1, 4.0, 60.0, 86_400.0])
def test_a_deadline_in_a_standstill_comes_after_what_came_meanwhile_could_be_read(stopped_s: float) -> None:
    loop = Loop()
    deadline = loop.now + 0.05
    before = loop.now
    assert loop.wait(deadline, stopped_s) == before
    assert loop.stood == [pytest.approx(stopped_s + 0.05)]
    went_on = loop.real.now
    while loop.now < deadline:
        loop.wait(deadline)
    assert loop.real.now - went_on == pytest.approx(CATCH_UP_S + 0.05)


def test_a_loop_that_was_held_is_no_reason_to_be_late_either() -> None:
    loop = Loop()
    deadline = loop.now + 3
    assert loop.work(5.0) < deadline
    assert loop.stood == [5.0]


@pytest.mark.parametrize("late_s", [0.1, 0.9])
def test_whoever_is_late_because_the_machine_is_busy_is_late(late_s: float) -> None:
    loop = Loop()
    deadline = loop.now + 0.5
    assert loop.wait(deadline, late_s) == pytest.approx(deadline + late_s)
    assert loop.stood == []


def test_what_is_due_at_once_is_due_at_once_after_a_standstill_too() -> None:
    loop = Loop()
    loop.wait(stopped_s=30)
    assert loop.clock.deadline_to_sleep_time(loop.now) == 0.0
    assert 0 < loop.clock.deadline_to_sleep_time(loop.now + SMALL_S) <= LONGEST_WAIT_S


def test_a_machine_that_does_nothing_but_stand_still_comes_to_its_deadlines_too() -> None:
    loop = Loop()
    deadline = loop.now + 10
    while loop.wait(deadline, 2 * STANDSTILL_S) < deadline:
        assert len(loop.stood) < 2 * (10 + CATCH_UP_S) / AGAIN_S


passing = st.lists(st.tuples(st.sampled_from(["work", "wait", "stop"]), st.floats(0, 100)), max_size=60)


@given(passing)
def test_it_never_goes_back_and_counts_no_more_than_went_by(steps: list[tuple[str, float]]) -> None:
    loop = Loop()
    began, real, before = loop.now, loop.real.now, loop.now
    for kind, seconds in steps:
        if kind == "work":
            loop.work(seconds / 100)
        elif kind == "wait":
            loop.wait(loop.now + seconds)
        else:
            loop.wait(loop.now + 0.01, seconds)
        assert loop.now >= before
        before = loop.now
    assert loop.now - began <= loop.real.now - real + SMALL_S
    assert loop.now - began >= loop.real.now - real - sum(loop.stood) - len(loop.stood) * CATCH_UP_S - SMALL_S


@given(passing)
def test_no_standstill_alone_brings_a_deadline_nearer(steps: list[tuple[str, float]]) -> None:
    """The time that counts is that of the same steps without their standstills, and no more."""
    loop, never_stopped = Loop(), Loop()
    began, without = loop.now, never_stopped.now
    for kind, seconds in [each for step in steps for each in _apart(step)]:
        for run, stopped_s in ((loop, seconds), (never_stopped, 0.0)):
            run.wait(run.now + 0.5, stopped_s if kind == "stop" and seconds > STANDSTILL_S else 0.0)
    assert loop.now - began <= never_stopped.now - without + SMALL_S


def _apart(step: tuple[str, float]) -> Iterator[tuple[str, float]]:
    """Yield a step and then what keeps it from following another standstill at once."""
    yield step
    yield from 4 * [("wait", 0.5)]


def test_trio_takes_it() -> None:
    clock = LoopClock()

    async def main() -> float:
        began = trio.current_time()
        with trio.move_on_after(0.02):
            await trio.sleep_forever()
        return trio.current_time() - began

    assert trio.run(main, clock=clock) >= 0.02
