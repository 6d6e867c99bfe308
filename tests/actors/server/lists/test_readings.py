"""Readings of lists are counted by how they end, each once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from actors.server.lists import ReadingCount


@given(st.lists(st.sampled_from(["begin", "end", "fail"])))
def test_each_that_was_begun_ends_or_fails_once(steps: list[str]) -> None:
    told: list[bool] = []
    counted, begun, ended, failed, open_ = ReadingCount(lambda seconds, *, good: told.append(good)), 0, 0, 0, False
    for now, step in enumerate(steps):
        if step == "begin":
            failed += open_
            begun, open_ = begun + 1, True
            counted.begin(now)
        elif step == "end":
            ended, open_ = ended + open_, False
            counted.end(now)
        else:
            failed, open_ = failed + open_, False
            counted.fail(now)
        assert (counted.readings.count, counted.readings.failures) == (ended, failed)
        assert begun == ended + failed + open_
        assert (told.count(True), told.count(False)) == (ended, failed)


def test_the_last_one_that_came_to_its_end_is_told() -> None:
    told: list[tuple[float, bool]] = []
    counted = ReadingCount(lambda seconds, *, good: told.append((seconds, good)))
    assert (counted.readings.last_at, counted.readings.last_s) == (None, None)
    counted.begin(1.0)
    counted.end(3.5)
    counted.begin(10.0)
    counted.fail(14.0)
    assert told == [(2.5, True), (4.0, False)]
    assert (counted.readings.last_at, counted.readings.last_s) == (3.5, 2.5)
