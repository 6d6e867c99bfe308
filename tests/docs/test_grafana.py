"""The dashboard for Grafana is the present one, and names only metrics and labels that there are."""

from __future__ import annotations

import json
import re
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from docs import grafana
from supervisor.metrics.families import FAMILIES, Family

ROOT = Path(__file__).parents[2]
BY_NAME = {family.name: family for family in chain.from_iterable(FAMILIES.values())}
WORDS = frozenset(["sum", "by", "rate", "le", "histogram_quantile", "label_values"])
DASHBOARD: dict[str, Any] = json.loads((ROOT / grafana.FILE).read_text(encoding="utf-8"))
EXPRESSIONS = [
    *(target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]),
    *(each["query"] for each in DASHBOARD["templating"]["list"] if each["type"] == "query"),
]


def test_the_file_is_the_present_one() -> None:
    assert (ROOT / grafana.FILE).read_text(encoding="utf-8") == grafana.dashboard(), "run: python -m docs.grafana"


def family_of(name: str) -> Family | None:
    family = BY_NAME.get(name)
    if family is None and name.endswith("_bucket"):
        family = BY_NAME.get(name.removesuffix("_bucket"))
        assert family is None or family.kind == "histogram"
    return family


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_metric_and_label_that_it_names_exists(expression: str) -> None:
    plain = re.sub(r'"[^"]*"', '""', expression).replace("$__rate_interval", "")
    names = set(re.findall(r"[a-z_]{2,}", plain)) - WORDS
    families = [family for name in names if (family := family_of(name)) is not None]
    assert families
    labels = set(chain.from_iterable(family.labels for family in families))
    assert {name for name in names if family_of(name) is None} <= labels
    for family in families:
        assert ("rate(" in expression) is (family.kind != "gauge")


def test_panels_do_not_lie_on_one_another() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken
        assert max(x for x, _ in cells) < grafana.WIDTH
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
