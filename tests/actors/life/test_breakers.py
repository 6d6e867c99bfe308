"""The breakers of one launch together: what counts for which, what is remembered, what is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.life.breakers import SLOTS, BreakerPolicy, Breakers, OpenBreaker, RecentCalls, Trial

Told = list[tuple[str, str, bool]]


def breakers(told: Told | None = None, **policy: Any) -> Breakers:
    def tell(breaker: OpenBreaker, *, opened: bool) -> None:
        if told is not None:
            told.append((breaker.breaker, breaker.tool, opened))

    return Breakers(BreakerPolicy(**policy), lambda: 0.5, tell)


def fail(all_: Breakers, tools: Sequence[str], now: float = 0.0) -> None:
    """Have calls of these tools fail one after the other."""
    for tool in tools:
        all_.fail([(tool, Trial())], "it did not answer", now)


def scopes(all_: Breakers) -> list[str]:
    return [row.tool or row.breaker for row in all_.rows()]


def test_a_server_opens_after_five_failures_in_a_row_and_an_answer_begins_anew() -> None:
    all_ = breakers()
    fail(all_, "abcd")
    all_.succeed("a", Trial(), 0.0)
    fail(all_, "efgh")
    assert not all_.troubled
    fail(all_, "i")
    assert scopes(all_) == ["server"]
    refusal = all_.refusal("anything", 0.0)
    assert refusal is not None
    assert (refusal.by.breaker, refusal.wait_s, refusal.by.reason) == ("server", 30.0, "it did not answer")


def test_a_tool_opens_alone_and_its_probes_say_nothing_of_its_server() -> None:
    all_ = breakers()
    fail(all_, "aaa")
    assert scopes(all_) == ["a"]
    assert all_.refusal("b", 1.0) is None
    now = 0.0
    for _ in range(20):
        refusal = all_.refusal("a", now)
        assert refusal is not None
        now += refusal.wait_s
        probe = Trial()
        all_.admit("a", probe, now)
        all_.fail([("a", probe)], "it did not answer", now)
    assert scopes(all_) == ["a"]


def test_half_of_ten_recent_calls_open_a_server_and_nine_do_not() -> None:
    all_ = breakers()
    for number in range(4):
        all_.succeed("a", Trial(), 0.0)
        fail(all_, [f"t{number}"])
    all_.succeed("a", Trial(), 0.0)
    assert not all_.troubled
    fail(all_, ["t9"])
    assert scopes(all_) == ["server"]


def test_calls_of_more_than_a_minute_ago_do_not_count() -> None:
    all_ = breakers()
    for number in range(4):
        all_.succeed("a", Trial(), 0.0)
        fail(all_, [f"t{number}"])
    all_.succeed("a", Trial(), 0.0)
    fail(all_, ["t9"], now=60.0)
    assert not all_.troubled


@given(st.lists(st.tuples(st.booleans(), st.floats(0.0, 20.0)), max_size=60), st.floats(1.0, 90.0))
def test_recent_calls_are_those_of_the_newest_twelve_parts_of_the_time(
    calls: list[tuple[bool, float]], window_s: float
) -> None:
    recent, now, all_ = RecentCalls(window_s), 0.0, list[tuple[bool, int]]()
    slot_s = window_s / SLOTS
    for good, later_s in calls:
        now += later_s
        slot = int(now // slot_s)
        all_.append((good, slot))
        if good:
            recent.succeed(now)
            continue
        counted = [each for each, of in all_ if of > slot - SLOTS]
        assert recent.fail(now) == (counted.count(False), len(counted))


def test_what_failed_before_a_success_of_the_probe_does_not_count_any_more() -> None:
    all_ = breakers()
    fail(all_, "aaabc")
    probe = Trial()
    all_.admit("a", probe, 30.0)
    all_.succeed("a", probe, 30.0)
    for _ in range(5):
        all_.succeed("b", Trial(), 31.0)
    fail(all_, "d", now=31.0)
    assert not all_.troubled
    fail(all_, "aaa", now=31.0)  # but each opening is longer than the one before
    refusal = all_.refusal("a", 31.0)
    assert refusal is not None
    assert refusal.wait_s == 60.0


def test_one_death_is_one_failure_of_the_server_however_many_calls_it_took() -> None:
    all_ = breakers()
    for _ in range(2):
        all_.fail([(f"t{number}", Trial()) for number in range(40)] + [("t0", Trial())], "exit code 1", 0.0)
    assert not all_.troubled
    all_.fail([("t0", Trial()), ("t0", Trial())], "exit code 1", 0.0)
    assert scopes(all_) == ["t0"]


def test_the_longest_wait_is_told() -> None:
    all_ = breakers()
    fail(all_, "aaa", now=0.0)
    fail(all_, "bc", now=20.0)
    refusal = all_.refusal("a", 20.0)
    assert refusal is not None
    assert (refusal.by.breaker, refusal.wait_s) == ("server", 30.0)
    all_.note_refusal(refusal)
    assert [row.refused for row in all_.rows()] == [1, 0]


def test_a_call_that_one_breaker_refuses_takes_the_place_of_no_probe() -> None:
    all_ = breakers(breaker_max_open_s=1000.0)
    fail(all_, "aaabc")
    probe = Trial()
    all_.admit("a", probe, 30.0)  # both pauses are over, so it is the probe of both
    assert all_.refusal("b", 30.0) is not None
    assert all_.refusal("a", 30.0, probe) is None
    all_.succeed("a", probe, 31.0)
    assert not all_.troubled


def test_discovery_has_a_breaker_of_its_own_and_is_a_probe_of_the_server() -> None:
    told: Told = []
    all_ = breakers(told)
    for _ in range(2):
        all_.read(Trial(), 0.0, "not in time")
    refusal = all_.refusal_to_read(0.0)
    assert refusal is not None
    assert refusal.wait_s == 60.0
    assert all_.refusal("a", 0.0) is None
    assert all_.refusal("a", 0.0, reads=True) is not None
    fail(all_, "abcde")
    trial = Trial()
    all_.admit("", trial, 60.0, reads=True)
    assert all_.refusal("a", 60.0) is not None
    all_.read(trial, 61.0)
    assert told == [("discovery", "", True), ("server", "", True), ("discovery", "", False), ("server", "", False)]
    assert not all_.troubled


def test_a_probe_that_is_no_call_opens_the_server_again() -> None:
    all_ = breakers()
    fail(all_, "abcde")
    trial = Trial()
    all_.prove(trial, 1.0, "nobody asked it")
    all_.admit("", trial, 30.0)
    all_.prove(trial, 31.0, "it is silent")
    refusal = all_.refusal("", 31.0)
    assert refusal is not None
    assert (refusal.wait_s, refusal.by.reason) == (60.0, "it is silent")


def test_an_operator_closes_all_at_once() -> None:
    told: Told = []
    all_ = breakers(told)
    fail(all_, "aaabc")
    assert scopes(all_) == ["server", "a"]
    all_.close()
    assert not all_.troubled
    assert told[2:] == [("server", "", False), ("tool", "a", False)]
    fail(all_, "aa")
    assert not all_.troubled
    fail(all_, "b")
    assert not all_.troubled


def test_it_can_be_switched_off() -> None:
    all_ = breakers(breaker=False)
    fail(all_, "a" * 100)
    for _ in range(9):
        all_.read(Trial(), 0.0, "not in time")
    assert (all_.troubled, all_.rows()) == (False, ())


def test_nobody_is_told_after_the_end() -> None:
    told: Told = []
    all_ = breakers(told)
    all_.end()
    fail(all_, "aaa")
    assert (scopes(all_), told) == (["a"], [])


STEPS = st.lists(
    st.tuples(st.sampled_from(["succeed", "fail", "tick"]), st.integers(0, 12), st.floats(0.0, 40.0)), max_size=80
)


@given(STEPS)
def test_no_more_tools_are_remembered_than_may_be(steps: list[tuple[str, int, float]]) -> None:
    all_ = breakers(breaker_max_tools=4, breaker_failures=1_000, breaker_min_calls=1_000)
    now = 0.0
    for what, number, seconds in steps:
        tool, probe = f"t{number}", Trial()
        now += seconds if what == "tick" else 0.0
        if all_.refusal(tool, now) is None:
            all_.admit(tool, probe, now)
            if what == "succeed":
                all_.succeed(tool, probe, now)
            elif what == "fail":
                all_.fail([(tool, probe)], "why", now)
        probe.settled = True
        assert len(all_._tools) <= 4
        assert all_.troubled == bool(all_.rows())
        assert all_._calm == (all_._server.fresh and not all_._tools)


def test_the_closed_tool_that_failed_longest_ago_is_forgotten_first() -> None:
    all_ = breakers(breaker_max_tools=2)
    fail(all_, "aab")
    all_.succeed("x", Trial(), 0.0)
    fail(all_, "ac")  # `a` opens, so `b` has to go
    assert (scopes(all_), [*all_._tools]) == (["a"], ["a", "c"])
    all_.succeed("x", Trial(), 0.0)
    fail(all_, "ccd")  # both are open, so `d` is not remembered
    assert [*all_._tools] == ["a", "c"]


@pytest.mark.parametrize("calls", [[], [("", Trial())]])
def test_what_is_about_no_tool_counts_for_the_server_alone(calls: list[tuple[str, Trial]]) -> None:
    all_ = breakers()
    for _ in range(5):
        all_.fail(calls, "why", 0.0)
    assert scopes(all_) == (["server"] if calls else [])
