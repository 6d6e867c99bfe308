"""The goals of reliability in their small forms: what must never happen does not, and times are not off by far."""

from __future__ import annotations

import pytest

from benchmarks.goals.__main__ import GOALS, measure
from benchmarks.goals.figure import Figure, count
from benchmarks.table import Aim

BUSY = 20.0
"""So many times slower may a machine be that does other things meanwhile."""


@pytest.mark.process
@pytest.mark.parametrize("name", GOALS)
def test_a_goal_is_met_but_for_what_a_busy_machine_costs(name: str) -> None:
    figures = measure(name, full=False).figures
    assert figures
    assert [str(figure) for figure in figures if figure.exact and not figure.met] == []
    assert [str(figure) for figure in figures if not figure.exact and _far_off(figure)] == []


def _far_off(figure: Figure) -> bool:
    bound = figure.aim.bound
    return figure.value > bound * BUSY if figure.aim.relation == "<=" else figure.value < bound / BUSY


def test_a_figure_says_what_was_asked_and_whether_it_was_missed() -> None:
    assert str(count("calls lost", 0)) == "calls lost: 0 (asked <= 0)"
    assert str(Figure("the pause", Aim("<=", 20, "ms"), 31.4)) == "the pause: 31.4 ms (asked <= 20 ms), missed"
