"""The geometry of plots: everything is inside, and what there is of bars is what there was of calls."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from supervisor.front.ui.plots import FEW, HEIGHT, WIDTH, bars, height_of, lines


@st.composite
def buckets(draw: st.DrawFn) -> list[dict[str, Any]]:
    made = []
    for place in range(draw(st.integers(1, 60))):
        calls = draw(st.integers(0, 10_000))
        failed = draw(st.integers(0, calls))
        times = sorted(draw(st.tuples(*[st.floats(0, 1e7)] * 3))) if calls else [None] * 3
        took = dict(zip(("p50", "p95", "p99"), times, strict=True))
        made.append(
            {
                "start": place * 60,
                "calls": calls,
                "failed": failed,
                "not_sent": draw(st.integers(0, calls - failed)),
                "took_ms": {"count": calls, **took},
            }
        )
    return made


@given(buckets())
def test_bars_stand_on_the_line_and_stay_inside(given_: list[dict[str, Any]]) -> None:
    drawn = bars(given_)
    assert len(drawn.bars) == len(given_)
    for bar, bucket in zip(drawn.bars, given_, strict=True):
        assert 0 <= bar.x <= bar.x + bar.width <= WIDTH + 0.01
        assert -0.02 <= bar.top <= HEIGHT
        assert abs(bar.ok + bar.failed - HEIGHT * bucket["calls"] / drawn.most) <= 0.02
        assert (bar.calls, bar.bad, bar.unsent) == (bucket["calls"], bucket["failed"], bucket["not_sent"])
        if bucket["calls"]:
            whole = bar.ok + bar.failed
            assert abs(bar.failed - whole * (bucket["failed"] + bucket["not_sent"]) / bucket["calls"]) <= 0.02
    assert [bar.partial for bar in drawn.bars] == [False] * (len(given_) - 1) + [True]
    assert drawn.most == max([1, *(bucket["calls"] for bucket in given_)])


@given(buckets())
def test_each_percentile_is_seen_and_a_gap_breaks_the_line(given_: list[dict[str, Any]]) -> None:
    for line in lines(given_):
        busy = "".join("1" if bucket["calls"] >= FEW else "0" for bucket in given_)
        alone = sum(len(run) == 1 for run in re.findall("1+", busy))
        points = [point for path in line.paths for point in re.findall(r"[ML]([\d.]+) ([\d.]+)", path)]
        assert len(points) == busy.count("1") - alone
        assert len(line.dots) == sum(0 < bucket["calls"] < FEW for bucket in given_) + alone, (
            "what stands alone is a dot"
        )
        assert all(0 <= float(y) <= HEIGHT for _, y in points)
        runs = [run for run in re.findall("1+", busy) if len(run) > 1]
        assert [path.count("L") + 1 for path in line.paths] == [len(run) for run in runs]


@given(st.floats(0, 1e9), st.floats(0, 1e9))
def test_what_takes_longer_is_higher(first: float, second: float) -> None:
    assert (height_of(first) >= height_of(second)) or first > second
    assert 0 <= height_of(first) <= HEIGHT
