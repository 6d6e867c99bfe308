"""The fit of the curve: what tells served queries from others gets its weight, and wrong refusals cost more."""

from __future__ import annotations

import numpy as np
import pytest

from actors.search.certainty import MEANINGS, WORDS, Evidence
from benchmarks.fit_scores import AWAY, Case, chance, costs, fitted

START = np.array(WORDS)


def case(share: float, *, served: bool, kind: str = "a") -> Case:
    evidence = Evidence(
        share=share, terms=2, unknown=0.0, elsewhere=np.zeros(1, np.float32), said=np.zeros(1, np.bool_)
    )
    return Case(kind, 0, served, served, [evidence.of(0)])


def test_evidence_has_a_value_for_each_weight_of_a_curve() -> None:
    values = case(0.5, served=True).readings[0]
    assert len(values) == len(WORDS._fields) == len(MEANINGS._fields)


def test_what_matches_better_is_surer_after_the_fit() -> None:
    given = [case(0.1 * n, served=served) for n in range(1, 10) for served in ([n > 4] if n % 4 else [True, False])]
    weights = fitted(given, START)
    chances = [chance(case(0.1 * n, served=True), weights) for n in range(1, 10)]
    assert chances == sorted(chances)
    assert chances[0] < 0.5 < chances[-1]


def test_to_refuse_what_is_served_costs_more_and_a_kind_as_much_as_another() -> None:
    given = [case(0.5, served=True, kind="many")] * 9 + [case(0.5, served=True, kind="few")]
    given += [case(0.5, served=False), case(0.5, served=False, kind=AWAY)]
    cost = costs(given)
    assert cost[:9].sum() == pytest.approx(cost[9])
    assert cost[:10].sum() > 2 * cost[10:].sum()
    assert cost[10] > cost[11]
