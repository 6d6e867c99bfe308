"""Counts in buckets: quantiles are exact to a tenth, and sums of histograms are histograms of sums."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.usage.periods import LEAST_MS, MOST_MS, Histogram, limit_of

TIMES = st.floats(0, MOST_MS, allow_nan=False)


def histogram(times: list[float]) -> Histogram:
    made = Histogram({})
    made.add(times)
    return made


@given(TIMES)
def test_a_time_is_in_the_one_bucket_that_has_room_for_it(milliseconds: float) -> None:
    (bucket,) = histogram([milliseconds]).counts
    assert milliseconds <= limit_of(bucket) * (1 + 1e-9)
    assert bucket == 0 or milliseconds > limit_of(bucket - 1) * (1 - 1e-9)


@given(
    st.lists(TIMES.filter(lambda each: each > LEAST_MS), min_size=1, max_size=200), st.sampled_from([0.5, 0.95, 0.99])
)
def test_a_quantile_is_exact_to_a_tenth(times: list[float], share: float) -> None:
    exact = sorted(times)[(math.ceil(share * len(times)) or 1) - 1]
    assert histogram(times).quantile(share) == pytest.approx(exact, rel=0.1)


@given(st.lists(TIMES, max_size=50), st.lists(TIMES, max_size=50))
def test_histograms_add_up(first: list[float], second: list[float]) -> None:
    joined = histogram(first)
    joined.merge(histogram(second))
    assert joined.counts == histogram(first + second).counts
    assert joined.count == len(first) + len(second)
    assert joined.total_ms == pytest.approx(sum(first + second))


@pytest.mark.parametrize("odd", [-1.0, 0.0, math.nan, math.inf, 1e300])
def test_what_no_clock_says_is_counted_too(odd: float) -> None:
    (bucket,) = histogram([odd]).counts
    assert bucket in (*histogram([0.0]).counts, *histogram([MOST_MS]).counts)


def test_nothing_has_no_quantile() -> None:
    assert Histogram({}).quantile(0.5) is None
