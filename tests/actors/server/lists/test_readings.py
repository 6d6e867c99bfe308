"""Readings of lists are counted by how they end, each once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from actors.facts import FactLog, Logged, ReadingEnded
from actors.server.lists import ReadingCount


class Readings:
    """How long each took, and whether it came to its end."""

    kinds = (ReadingEnded,)

    def __init__(self) -> None:
        self.all: list[tuple[float, bool]] = []

    def fold(self, logged: Logged) -> None:
        assert isinstance(logged.fact, ReadingEnded)
        self.all.append((logged.fact.seconds, logged.fact.good))


@given(st.lists(st.sampled_from(["begin", "end", "fail"])))
def test_each_that_was_begun_ends_or_fails_once(steps: list[str]) -> None:
    told, facts = Readings(), FactLog(lambda: 0.0)
    facts.projections.append(told)
    counted, begun, ended, failed, open_ = ReadingCount("a", facts), 0, 0, 0, False
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
        good = [each for _, each in told.all]
        assert (good.count(True), good.count(False)) == (ended, failed)


def test_the_last_one_that_came_to_its_end_is_told() -> None:
    told, facts = Readings(), FactLog(lambda: 0.0)
    facts.projections.append(told)
    counted = ReadingCount("a", facts)
    assert (counted.readings.last_at, counted.readings.last_s) == (None, None)
    counted.begin(1.0)
    counted.end(3.5)
    counted.begin(10.0)
    counted.fail(14.0)
    assert told.all == [(2.5, True), (4.0, False)]
    assert (counted.readings.last_at, counted.readings.last_s) == (3.5, 2.5)
