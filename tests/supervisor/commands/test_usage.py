"""`usage` and `top`: how figures are written; what the commands show is recorded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.commands.usage import BARS, bars, in_bytes, in_time


@given(st.lists(st.integers(0, 10_000), max_size=200), st.integers(1, 80))
def test_there_is_a_bar_where_something_was_called(counts: list[int], width: int) -> None:
    drawn = bars(counts, width)
    assert len(drawn) <= width
    assert bool(drawn) == any(counts)
    assert set(drawn) <= set(BARS) | {" "}
    assert not any(counts) or BARS[-1] in drawn


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (0.34, "0.3 ms"), (12.4, "12 ms"), (999.0, "999 ms"), (1250.0, "1.2 s")]
)
def test_a_time_is_short(value: float | None, text: str) -> None:
    assert in_time(value) == text


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (25e6, "25 MB"), (9e12, "9000 GB")]
)
def test_a_size_is_short(size: float, text: str) -> None:
    assert in_bytes(size) == text
