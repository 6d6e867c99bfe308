"""A scan for names in quotes finds them wherever they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.service.fitting.marks import LARGE_BYTES, MAX_QUOTES, holds

MARKS = (b'"audio"', b'"resource_link"')


@pytest.mark.parametrize("quotes", [0, 5, MAX_QUOTES - 1, MAX_QUOTES, MAX_QUOTES + 1, 3 * MAX_QUOTES])
@pytest.mark.parametrize("filling", [0, LARGE_BYTES])
def test_a_mark_is_seen_behind_any_number_of_quotes(quotes: int, filling: int) -> None:
    before = b'"' * quotes + b"x" * filling
    for mark in MARKS:
        assert holds(before + mark, MARKS)
        assert holds(mark + before, MARKS)
        assert not holds(before + mark[:-1], MARKS)
        assert not holds(before + mark[1:], (b'"' + mark[1:-1] + b"'",))
    assert not holds(before, MARKS)


@given(st.lists(st.sampled_from([b'"', b"audio", b'"audio"', b"x" * LARGE_BYTES, b'"' * MAX_QUOTES]), max_size=6))
def test_it_is_the_same_as_to_look_for_each(parts: list[bytes]) -> None:
    text = b"".join(parts)
    assert holds(text, MARKS) == any(mark in text for mark in MARKS)
