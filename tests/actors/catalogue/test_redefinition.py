"""What differs between two definitions, and that nothing does where they say the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.catalogue.diff import MAX_PARTS, Part, differs, excerpts, parts

SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


def raw(value: Any) -> bytes:
    return json.dumps(value).encode()


def test_places_are_named_and_what_was_not_there_is_none() -> None:
    before = {"name": "a", "inputSchema": {"properties": {"x": {"type": "string"}}, "required": ["x"]}, "old": 1}
    after = {"inputSchema": {"required": ["y"], "properties": {"x": {"type": "number"}, "y": {}}}, "name": "a"}
    assert parts(raw(before), raw(after)) == [
        Part("inputSchema.properties.x.type", "string", "number"),
        Part("inputSchema.properties.y", None, "{}"),
        Part("inputSchema.required[0]", "x", "y"),
        Part("old", "1", None),
    ]


@pytest.mark.parametrize(
    ("before", "after", "number"),
    [
        (b'{"a":1,"b":2}', b'{ "b" : 2, "a" : 1 }', 0),
        (b'{"a":"\\u0041"}', b'{"a":"A"}', 0),
        (b'{"a":1}', b'{"a":true}', 1),
        (b'{"a":[1,2]}', b'{"a":[1]}', 1),
        (b"no json", b'{"a":1}', 1),
        (b"\xff", b"\xfe", 0),
        (b'{"a":' * 40 + b"1" + b"}" * 40, b'{"a":' * 40 + b"2" + b"}" * 40, 1),
        (b"[" * 2000 + b"]" * 2000, b"[" * 1999 + b"]" * 1999, 1),
        (raw({str(n): 0 for n in range(500)}), raw({}), MAX_PARTS),
    ],
)
def test_whatever_a_server_wrote_is_compared(before: bytes, after: bytes, number: int) -> None:
    assert len(parts(before, after)) == number
    assert differs(before, after) == bool(number)


@given(VALUES, VALUES)
def test_two_definitions_differ_if_and_only_if_they_say_something_else(one: Any, other: Any) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert differs(raw(one), raw(other)) != same
    assert not differs(raw(one), raw(one))


def test_of_long_texts_the_part_is_shown_that_differs() -> None:
    before, after = excerpts("a" * 1000 + " reads " + "b" * 1000, "a" * 1000 + " sends " + "b" * 1000)
    assert " reads " in before
    assert " sends " in after
    assert max(len(before), len(after)) < 200
    assert (before[:3], before[-3:]) == ("...", "...")
    grown = excerpts("x" * 500, "x" * 500 + "y" * 5000)
    assert grown == ("..." + "x" * 60, "..." + "x" * 60 + "y" * 340 + "...")


@given(st.text(max_size=900), st.text(max_size=900))
def test_excerpts_of_texts_that_differ_differ_and_are_bounded(one: str, other: str) -> None:
    shown = excerpts(one, other)
    assert all(len(text) <= 406 for text in shown)
    assert (shown[0] != shown[1]) or one == other
    assert excerpts("short", "longer") == ("short", "longer")
