"""Query parameters: each has a type, and a wrong one is named."""

from __future__ import annotations

from typing import Any

import pytest

from actors.catalogue.criteria import Criteria
from actors.errors import InvalidArguments
from supervisor.front.pages.requests import decode
from supervisor.front.pages.tools import HistoryQuery


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


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("limit", "many", "must be a whole number"),
        ("limit", "0", "must be a whole number, at least 1"),
        ("limit", "501", "must be a whole number, at most 500"),
        ("limit", "", "must be a whole number"),
        ("offset", "-1", "must be a whole number, at least 0"),
        ("read_only", "perhaps", "must be true or false"),
        ("safety", "harmless", "known are: dangerous, moderate, safe"),
        ("sort_by", "beauty", "known are: avg_time, calls, name, success_rate, tokens"),
        ("name", "x" * 201, "must be a string of at most 200 characters"),
        ("servers", "a," * 51, "must be a list of at most 50 items"),
    ],
)
def test_a_bad_value_names_its_parameter(name: str, value: str, said: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        decode([(name, value)], Criteria)
    assert repr(name) in caught.value.message
    assert said in caught.value.message
    assert caught.value.data()["parameter"] == name


def test_a_parameter_that_takes_one_value_may_not_come_twice() -> None:
    with pytest.raises(InvalidArguments, match="more than once"):
        decode([("limit", "1"), ("limit", "2")], Criteria)


def test_an_unknown_parameter_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InvalidArguments, match="'nmae'; known are: category, complexity") as caught:
        decode([("nmae", "x")], Criteria)
    assert caught.value.data()["known"] == sorted(Criteria.__struct_fields__)


def test_a_parameter_without_a_default_is_asked_for() -> None:
    with pytest.raises(InvalidArguments, match="the parameter 'path': it is needed") as caught:
        decode([], HistoryQuery)
    assert caught.value.data()["parameter"] == "path"
