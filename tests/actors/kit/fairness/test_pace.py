"""How fast is taken what comes unasked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.kit.fairness.share import LinePace


def test_a_burst_may_come_at_once_and_then_as_many_as_the_rate_has() -> None:
    pace = LinePace(100, 50)
    pace.take(50, 10.0)
    assert pace.rest_s(10.0) == 0.0
    pace.take(20, 10.0)
    assert pace.rest_s(10.0) == pytest.approx(0.2)
    assert pace.rest_s(10.2) == pytest.approx(0.0)
    pace.take(10, 10.2)
    assert pace.rest_s(10.2) == pytest.approx(0.1)
    pace.take(50, 60.0)
    assert pace.rest_s(60.0) == pytest.approx(0.0), "the credit is there again"
    pace.take(1_000_000, 60.0)
    assert pace.rest_s(60.0) == pytest.approx(0.5)


@given(st.lists(st.tuples(st.floats(0, 5), st.integers(0, 50)), max_size=50))
def test_who_rests_never_takes_more_than_rate_and_burst_and_what_came_last(steps: list[tuple[float, int]]) -> None:
    pace, now, taken, last = LinePace(100, 50), 0.0, 0, 0
    for pause_s, count in steps:
        now += pause_s + pace.rest_s(now + pause_s)
        assert taken - last <= 50 + 100 * now + 1e-6
        pace.take(count, now)
        taken, last = taken + count, count
