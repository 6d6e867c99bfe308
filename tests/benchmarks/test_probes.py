"""The benchmark of the times of probes: it asks for everything, and shows what is furthest apart first."""

from __future__ import annotations

from benchmarks.probes import Compared, Took, measure, shown
from tests.supervisor.test_probes_of_daemon import PROBES


async def test_every_probe_is_timed() -> None:
    compared = await measure(1)
    assert {each.probe for each in compared} == PROBES.keys()
    assert all(each.foreign.wall > 0 and each.never.wall > 0 for each in compared)
    assert [each.apart for each in compared] == sorted((each.apart for each in compared), reverse=True)


def test_what_is_shown_says_how_many_are_close() -> None:
    compared = [
        Compared("a", Took(0.0008, 0.0008), Took(0.0010, 0.0008)),
        Compared("b", Took(0.0021, 0.001), Took(0.0020, 0.001)),
    ]
    assert shown(compared, 0.1).splitlines() == [
        "- **0.80** (1.00) a: 0.80 ms, never there 1.00 ms",
        "- **1.05** (1.00) b: 2.10 ms, never there 2.00 ms",
        "",
        "1 of 2 are within 10%.",
    ]
