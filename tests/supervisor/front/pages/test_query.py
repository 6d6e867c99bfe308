"""Query parameters: each has a type, and a wrong one is named."""

from __future__ import annotations

from typing import Any

import pytest

from actors.catalogue.criteria import Criteria
from supervisor.front.pages.requests import decode


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([], {}),
        ([("name", "a,b"), ("limit", "7"), ("offset", "3")], {"name": "a,b", "limit": 7, "offset": 3}),
        ([("servers", "a, b"), ("servers", "c,")], {"servers": ("a", "b", "c")}),
        ([("read_only", "true"), ("destructive", "0")], {"read_only": True, "destructive": False}),
        ([("safety", "safe"), ("sort_by", "avg_time")], {"safety": "safe", "sort_by": "avg_time"}),
        ([("name", "5"), ("version", "1.0")], {"name": "5", "version": "1.0"}),
    ],
)
def test_parameters_become_fields(pairs: list[tuple[str, str]], expected: dict[str, Any]) -> None:
    assert decode(pairs, Criteria) == Criteria(**expected)
