"""Sums by tool, server, client and user, and over time: every call once, wherever it is looked for."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.principal import Principal
from supervisor.usage.periods import (
    LENGTH_S,
    NAMES,
    WINDOWS,
    By,
    CallSelection,
    Period,
    begin_of,
    rows,
    start_of,
    timeline,
    total,
)
from supervisor.usage.records import OUTCOMES, CallRecord

NOW = 1_800_000_123.0
CALLS = st.lists(
    st.builds(
        CallRecord,
        time=st.floats(NOW - 40 * 86_400, NOW),
        principal=st.sampled_from([Principal("local"), Principal("user:ana"), Principal("user:ana:core")]),
        client=st.sampled_from(["ide", ""]),
        server=st.sampled_from(["desk", "shop", ""]),
        tool=st.sampled_from(["a", "b"]),
        outcome=st.sampled_from(OUTCOMES),
        took_ms=st.floats(0, 1e5),
        bytes_in=st.integers(0, 100),
    ),
    max_size=40,
)


def periods_of(calls: list[CallRecord], window: str) -> list[Period]:
    level = WINDOWS[window].level
    found: dict[int, Period] = {}
    for record in calls:
        start = start_of(level, record.time)
        found.setdefault(start, Period(level, start)).add([record])
    return [found[start] for start in sorted(found)]


@given(CALLS, st.sampled_from(sorted(WINDOWS)), st.sampled_from(sorted(NAMES)), st.booleans())
def test_rows_and_buckets_and_the_sum_agree(calls: list[CallRecord], window: str, by: By, meta_tools: bool) -> None:
    begin, which = begin_of(WINDOWS[window], NOW), CallSelection(meta_tools=meta_tools)
    periods = [period for period in periods_of(calls, window) if period.start >= begin]
    wanted = [
        record
        for record in calls
        if start_of(WINDOWS[window].level, record.time) >= begin and (record.server or meta_tools)
    ]
    whole = total(periods, which)
    assert whole.calls == len(wanted)
    assert whole.outcomes == Counter(record.outcome for record in wanted)
    assert whole.bytes_in == sum(record.bytes_in for record in wanted)
    assert sum(row["calls"] for row in rows(periods, by, which)) == len(wanted)
    buckets = timeline(periods, WINDOWS[window], begin, which)
    assert sum(bucket["calls"] for bucket in buckets) == len(wanted)
    assert [bucket["start"] for bucket in buckets] == [
        begin + number * WINDOWS[window].bucket_s for number in range(len(buckets))
    ]


@given(CALLS)
def test_a_selection_has_what_it_says(calls: list[CallRecord]) -> None:
    periods = periods_of(calls, "30d")
    for user, count in Counter("ana" if "ana" in each.principal else "" for each in calls if each.server).items():
        assert total(periods, CallSelection(user=user)).calls == count
    of_team = total(periods, CallSelection(principal=Principal("user:ana:core"), meta_tools=True)).calls
    assert of_team == sum(each.principal == "user:ana:core" for each in calls)
    of_tool = total(periods, CallSelection(server="desk", tool="a", client="ide")).calls
    assert of_tool == sum((each.server, each.tool, each.client) == ("desk", "a", "ide") for each in calls)


@pytest.mark.parametrize("window", sorted(WINDOWS))
def test_the_newest_bucket_is_under_way(window: str) -> None:
    kind = WINDOWS[window]
    buckets = timeline([], kind, begin_of(kind, NOW))
    assert len(buckets) == kind.length_s // kind.bucket_s
    assert buckets[-1]["start"] <= NOW < buckets[-1]["start"] + kind.bucket_s
    assert all(bucket["took_ms"]["p95"] is None for bucket in buckets)
    assert kind.bucket_s % LENGTH_S[kind.level] == 0


def test_what_was_not_measured_is_no_time() -> None:
    """A server that did not come up in time never heard of the call, and a client that left says nothing of it."""
    calls = [
        CallRecord(time=NOW, server="desk", tool="a", outcome="timeout", waited_ms=60_000.0),
        CallRecord(time=NOW, server="desk", tool="a", outcome="cancelled", took_ms=1.0),
        CallRecord(time=NOW, server="desk", tool="a", took_ms=30.0),
    ]
    (row,) = rows(periods_of(calls, "1h"), "tool")
    assert (row["calls"], row["took_ms"]["count"], row["took_ms"]["mean"]) == (3, 1, 30.0)
    assert row["waited_ms"]["count"] == 1
