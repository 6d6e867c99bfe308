"""The names of metrics keep the rules of Prometheus, as `promtool check metrics` has them, and ours."""

from __future__ import annotations

import re
from itertools import chain

import pytest

from supervisor.metrics.families import FAMILIES, PREFIX, Family

ALL = list(chain.from_iterable(FAMILIES.values()))
CONVENTIONS = ("mcp_", "http_", "process_")
"""Names that others have given."""
RESERVED = ("_sum", "_count", "_bucket", "_created", "_info", "_total")
WRONG_UNITS = re.compile(
    r"_(?:milli|micro|nano|kilo|mega|giga|kibi|mebi)?(?:seconds?|bytes?)_|_(?:ms|minutes|hours|days|kb|mb|percent)(?:_|$)"
)


@pytest.mark.parametrize("family", ALL, ids=lambda family: family.name)
def test_a_name_keeps_the_rules(family: Family) -> None:
    name = family.name
    assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name)
    assert name.startswith((PREFIX, *CONVENTIONS))
    assert name.endswith("_total") is (family.kind == "counter")
    assert family.kind == "counter" or not name.endswith(RESERVED) or name == "mcpvisor_build_info"
    base = name.removesuffix("_total")
    assert not WRONG_UNITS.search(base), "the unit is the last word, and a base unit"
    assert family.kind != "histogram" or family.unit == "seconds"
    assert family.kind not in name.split("_"), "no type in the name"
    for label in family.labels:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", label)
        assert label not in ("le", "quantile", "job", "instance")
    assert not {*family.labels} & {"user", "principal", "client", "session", "path", "query"}, "nothing without a bound"
    assert family.help.endswith(".")
    assert "\n" not in family.help


def test_no_two_have_the_same_name() -> None:
    assert len({family.name.removesuffix("_total") for family in ALL}) == len(ALL)


@pytest.mark.parametrize("family", [each for each in ALL if each.kind == "histogram"], ids=lambda family: family.name)
def test_bounds_grow(family: Family) -> None:
    assert [*family.buckets] == sorted(set(family.buckets))
    assert len(family.buckets) >= 10
