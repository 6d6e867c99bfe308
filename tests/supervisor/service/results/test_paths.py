"""Paths into JSON: what they select, what they refuse, and that every value has one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.service.results.cutting import MAX_CHARS, shape
from supervisor.service.results.picks import MAX_CHARS as MAX_PATH_CHARS
from supervisor.service.results.picks import MAX_NODES, MAX_PATH_SELECTORS, BadPath, read, select

VALUE = {"items": [{"id": 1, "name": "a"}, {"id": 2}], "odd 'name'": {"x.y": True}, "a/b": {"~": 0}, "": 5}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$", VALUE),
        ("", VALUE),
        ("$.items[0].name", "a"),
        ("items[0].name", "a"),
        (" $.items[-1].id ", 2),
        (".items.[1].id", 2),
        ("$.items[0:1]", [{"id": 1, "name": "a"}]),
        ("$.items[:].id", [1, 2]),
        ("$.items[*].id", [1, 2]),
        ("$.items[ 1 : ].id", [2]),
        ("$['odd \\'name\\'']['x.y']", True),
        ("$[\"odd 'name'\"].*", [True]),
        ("$.items[*]['id', \"name\"]", [1, "a", 2]),
        ("$.items[ -1 , 0 ].id", [2, 1]),
        ("$['a/b','']", [{"~": 0}, 5]),
        ("$.items[::-1].id", [2, 1]),
        ("$.items[0,0,-2,*].id", [1, 2]),
        ("$.items[0:9:2].id", [1]),
        ("/items/1/id", 2),
        ("/a~1b/~0", 0),
        ("/", 5),
    ],
)
def test_a_path_selects(path: str, expected: Any) -> None:
    assert select(VALUE, read(path)) == expected


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("$.items[2]", "nothing is at [2] of $['items']: that is an array of 2"),
        ("$.nothing", "that is an object with 'items', \"odd 'name'\", 'a/b', ''"),
        ("$.items[0].id.x", "that is no object and no array"),
        ("/items/01", "nothing is at ['01']"),
        ("/items/-", "an array of 2"),
        ("$.items['0']", "an array of 2"),
        ("$..id", "not understood from '..id' on"),
        ("$.items[?(@.id>1)]", "not understood from '[?(@.id>1)]' on"),
        ("$.a b", "not understood"),
        ("$.items[0,]", "not understood from '[0,]' on"),
        ("$.items[0", "not understood from '[0' on"),
        ("$.items[::0]", "nothing is at [::0]"),
        ("$.items[0,1].x", "nothing is at ['x'] of $['items'][0,1]"),
        ("$" + ".a" * (MAX_PATH_SELECTORS + 1), "65 names and places, 64 are the most"),
        ("/a" * 65, "65 names"),
        (f"$.items[{'*,' * MAX_PATH_SELECTORS}*]", "66 names"),
        (f"$['{'a' * MAX_PATH_CHARS}']", "4101 characters, 4096 are the most"),
        ("$.items[0][5:]", "nothing is at [5:] of $['items'][0]: that is an object with 'id', 'name'"),
    ],
)
def test_a_path_to_nothing_says_what_is_there(path: str, told: str) -> None:
    with pytest.raises(BadPath) as caught:
        select(VALUE, read(path))
    assert told in str(caught.value)


def test_an_empty_object_and_a_large_one_are_told_in_short() -> None:
    with pytest.raises(BadPath, match=r"that is \{\}"):
        select({}, read("$.a"))
    with pytest.raises(BadPath, match="and more"):
        select({str(number): 0 for number in range(99)}, read("$.a"))


def test_a_place_that_is_named_again_and_again_is_there_once() -> None:
    deep: Any = 0
    for _ in range(16):
        deep = [deep]
    assert select(deep, read("$" + "[0,0,0,0]" * 16)) == [0]


def test_a_path_that_selects_too_much_is_refused() -> None:
    many = [[0] * 200] * 200
    with pytest.raises(BadPath, match=f"over {MAX_NODES} values"):
        select(many, read("$[*][*]"))
    assert len(select(many, read("$[0:10][*]"))) == 2000
    with pytest.raises(BadPath, match=f"over {MAX_NODES} values"):
        select([0] * 1000, read(f"$[{'*,' * 10}*]"))


def places(value: Any, at: str = "$") -> Iterator[tuple[str, Any]]:
    yield at, value
    if isinstance(value, dict):
        for name, item in value.items():
            written = name.replace("\\", "\\\\").replace("'", "\\'")
            yield from places(item, f"{at}['{written}']")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from places(item, f"{at}[{number}]")


@given(VALUES)
def test_every_place_has_a_path(value: Any) -> None:
    for path, expected in places(value):
        assert select(value, read(path)) == expected


@given(VALUES, st.text(st.sampled_from("$.[]*:'\"/~01a\\ -"), max_size=12))
def test_whatever_is_written_selects_or_is_refused(value: Any, path: str) -> None:
    with suppress(BadPath):
        select(value, read(path))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            {"items": [{"id": 1, "name": "x"}] * 3, "total": 3.5, "ok": True, "none": None, "empty": [], "no": {}},
            '{"items": [3 x {"id": number, "name": string}], "total": number, "ok": boolean, "none": null, '
            '"empty": [], "no": {}}',
        ),
        ("x" * 500, "string of 500"),
        ([[[[[[1]]]]]], "[1 x [1 x [1 x [1 x [1 x ...]]]]]"),
        ({"a": {"b": {"c": {"d": {"e": 1}}}}}, '{"a": {"b": {"c": {"d": {...}}}}}'),
        ({"\x1b": 1}, '{"\\\\u001b": number}'),
    ],
)
def test_the_shape_of_a_value_is_one_line(value: Any, expected: str) -> None:
    assert shape(value) == expected


@given(VALUES)
def test_a_shape_is_bounded_and_can_be_seen(value: Any) -> None:
    told = shape(value)
    assert len(told) <= MAX_CHARS
    assert told.isprintable()
    assert json.dumps(told)


def test_many_names_are_counted() -> None:
    assert shape({str(number): 0 for number in range(50)}).endswith("38 more}")
    assert shape({"x" * 100 + str(number): "" for number in range(12)}).endswith("...")
