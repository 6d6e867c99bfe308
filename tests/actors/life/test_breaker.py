"""One breaker: held against a naive reading of its rule, and what holds of it whatever happens."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.life.breakers import PROBE_RETRY_S, SPREAD, Breaker, Trial, pause_s

FAILURES, OPEN_S, MAX_OPEN_S = 3, 30.0, 100.0

Kind = Literal["ask", "succeed", "fail", "drop", "tick"]
KINDS: tuple[Kind, ...] = ("ask", "ask", "succeed", "fail", "fail", "fail", "drop", "tick")
TICKS = (0.1, 1.0, 24.0, 30.0, 31.0, 60.0, 84.0, 200.0)
SEEDS = st.integers(0, 2**32)


def steps_of(seed: int) -> Iterator[tuple[Kind, int, float]]:
    """Yield what happens, to whom of four, and how much time it takes if it is time that passes.

    All at random, as lists that hypothesis makes are too short to come to a fourth opening.
    """
    chance = random.Random(seed)
    for _ in range(300):
        yield chance.choice(KINDS), chance.randrange(4), chance.choice(TICKS)


def breaker(jitter: float = 0.5) -> Breaker:
    return Breaker(FAILURES, OPEN_S, MAX_OPEN_S, lambda: jitter)


@dataclass
class Naive:
    """The rule once more, as one would tell it: a state by its name, and the names of those who were let through."""

    state: Literal["closed", "open", "probing"] = "closed"
    in_row: int = 0
    times: int = 0
    again_at: float = 0.0
    good_since: float = 0.0
    probe: int | None = None
    gone: set[int] = field(default_factory=set)

    def may_pass(self, who: int, now: float) -> bool:
        if self.state == "probing" and (self.probe is None or self.probe in self.gone):
            self.state, self.probe = "open", None
        if self.state == "probing":
            return who == self.probe
        return self.state == "closed" or now >= self.again_at

    def ask(self, who: int, now: float) -> bool:
        passes = self.may_pass(who, now)
        if passes and self.state == "open":
            self.state, self.probe = "probing", who
        return passes

    def succeed(self, who: int, now: float) -> None:
        if self.state == "closed":
            self.in_row = 0
            while self.times and now - self.good_since >= OPEN_S:
                self.times -= 1
                self.good_since += OPEN_S
        elif self.state == "probing" and self.probe == who:
            self.state, self.probe, self.in_row, self.good_since = "closed", None, 0, now

    def fail(self, who: int, now: float) -> None:
        probed = self.state == "probing" and self.probe == who
        self.in_row += self.state == "closed"
        if probed or (self.state == "closed" and self.in_row >= FAILURES):
            self.times = min(self.times + 1, 4)
            self.state, self.probe = "open", None
            self.again_at = now + min(self.times * OPEN_S, MAX_OPEN_S / 1.2)


@given(SEEDS)
def test_a_breaker_does_what_its_rule_says(seed: int) -> None:
    real, naive, now = breaker(), Naive(), 0.0
    names = [Trial() for _ in range(4)]
    for what, value, seconds in steps_of(seed):
        who = names[value]
        match what:
            case "tick":
                now += seconds
            case "ask":
                wait_s = real.wait_s(now, who)
                passes = naive.ask(value, now)
                assert (wait_s is None) == passes
                if wait_s is None:
                    real.admit(who, now)
                elif naive.state == "open":
                    assert wait_s == pytest.approx(naive.again_at - now)
                else:
                    assert wait_s == PROBE_RETRY_S
            case "succeed":
                real.succeed(who, now)
                naive.succeed(value, now)
            case "fail":
                real.fail(who, now, "why")
                naive.fail(value, now)
            case "drop":
                who.settled = True
                naive.gone.add(value)
                names[value] = Trial()
                if naive.probe == value:  # another one has its name from now on
                    naive.probe = None
                naive.gone.discard(value)
        assert real.closed == (naive.state == "closed")


@given(SEEDS, st.floats(0.0, 1.0))
def test_there_are_never_two_probes_and_it_can_always_be_reached_again(seed: int, jitter: float) -> None:
    real, now = breaker(jitter), 0.0
    names, probe = [Trial() for _ in range(4)], None
    for what, value, seconds in steps_of(seed):
        now += seconds if what == "tick" else 0.0
        who = names[value]
        match what:
            case "ask" if not real.closed and real.wait_s(now) is None:
                assert probe is None
                real.admit(who, now)
                probe = who
            case "succeed":
                real.succeed(who, now)
            case "fail":
                real.fail(who, now, "why")
            case "drop":
                who.settled = True
                names[value] = Trial()
        probe = None if probe is who and what in ("succeed", "fail", "drop") else probe
        assert (real.wait_s(now) or 0.0) <= MAX_OPEN_S * (1 + 1e-9)
    for each in names:
        each.settled = True
    assert real.wait_s(now + MAX_OPEN_S + 1.0) is None
    last = Trial()
    real.admit(last, now + MAX_OPEN_S + 1.0)
    real.succeed(last, now + MAX_OPEN_S + 1.0)
    assert real.closed


@given(st.integers(1, 50), st.floats(0.01, 1000.0), st.floats(0.01, 1000.0), st.floats(0.0, 1.0))
def test_pauses_grow_within_their_bounds(times: int, open_s: float, max_open_s: float, jitter: float) -> None:
    pause = pause_s(times, open_s, max_open_s, jitter)
    middle = min(open_s * times, max_open_s / (1 + SPREAD))
    assert 0 < pause <= max_open_s * (1 + 1e-9)
    assert middle * (1 - SPREAD) <= pause * (1 + 1e-9)
    assert pause <= middle * (1 + SPREAD) * (1 + 1e-9)
    assert pause_s(times + 1, open_s, max_open_s, jitter) >= pause


def opened(real: Breaker, now: float) -> float:
    """Have it open by failures in a row, or by that of its probe; return the seconds."""
    probe = Trial()
    real.admit(probe, now)
    while not real.fail(probe, now, "why"):
        assert real.closed
    assert real.until is not None
    return real.until - now


def test_each_opening_is_longer_and_success_takes_that_back_step_by_step() -> None:
    real, now, seconds = breaker(), 0.0, []
    for _ in range(5):
        seconds.append(opened(real, now))
        now += seconds[-1]
    assert seconds == pytest.approx([30.0, 60.0, MAX_OPEN_S / 1.2, MAX_OPEN_S / 1.2, MAX_OPEN_S / 1.2])
    probe = Trial()
    real.admit(probe, now)
    assert real.succeed(probe, now)
    real.succeed(probe, now + OPEN_S * 2.5)  # two whole pauses since it closed
    real.succeed(probe, now + OPEN_S * 3)  # and one more
    assert opened(real, now + OPEN_S * 3) == pytest.approx(OPEN_S * 2)
    assert real.reset()
    assert real.fresh
    assert opened(real, now) == pytest.approx(OPEN_S)


def test_a_reason_of_its_own_opens_it_before_its_time() -> None:
    real = breaker()
    assert real.fail(Trial(), 0.0, "why", trip=True)
    assert (real.failures, real.reason, math.isclose(real.seconds, OPEN_S)) == (1, "why", True)
