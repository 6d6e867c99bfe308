"""What benchmarks find is shown as lists that fit a narrow screen, with every figure."""

from __future__ import annotations

from benchmarks.table import Aim, Row, markdown
from benchmarks.worst_cases import Measured
from benchmarks.worst_cases import markdown as worst
from benchmarks.worst_scene import Answer, Case, Gap, Scene


def test_comparisons_of_one_thing_stand_together_below_it() -> None:
    rows = [
        Row(what="a call", measured="3/s", compared="other: 2/s", ratio="1.5", aim=Aim(">=", 2), value=1.5),
        Row(what="boot", measured="1 s", compared="other: 4 s", ratio="0.25", aim=Aim("<=", 1, "s"), value=1.0),
        Row(what="a call", measured="4/s", compared="third: 2/s", ratio="2.0"),
        Row(what="processes", measured="0", aim=Aim("<=", 0), value=0),
        Row(what="search", measured="2 ms", compared="alone: 1 ms"),
    ]
    assert markdown(rows).splitlines() == [
        "- a call",
        "  - **1.5** compared with other (aim >= 2: **not met**):",
        "    3/s; other: 2/s",
        "  - **2.0** compared with third:",
        "    4/s; third: 2/s",
        "- boot",
        "  - **0.25** compared with other (aim <= 1 s: met):",
        "    1 s; other: 4 s",
        "- processes",
        "  - 0 (aim <= 0: met)",
        "- search",
        "  - 2 ms; alone: 1 ms",
    ]


def test_worst_cases_stand_together_below_their_input() -> None:
    async def nothing(_: Scene) -> Answer:
        return Answer(0, "", "")

    cases = [
        Case(input=name, worst=worst, run=nothing) for name, worst in (("a", "large"), ("b", "deep"), ("a", "odd"))
    ]
    gaps = [Gap(2.0, 2.5), Gap(1.0, 3.5), Gap(3.0, 9.0)]
    rows = [Measured(case, gaps, answer) for case, answer in zip(cases, ("result", "", "-31413"), strict=True)]
    assert worst(rows).splitlines() == [
        "- `a`",
        "  - large: 2.5 (3.5) ms, 1.0 computing; result",
        "  - odd: 2.5 (3.5) ms, 1.0 computing; -31413",
        "- `b`",
        "  - deep: 2.5 (3.5) ms, 1.0 computing",
    ]
