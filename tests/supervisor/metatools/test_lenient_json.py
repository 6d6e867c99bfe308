"""JSON as models write it: what is read as an object, and what is not."""

from __future__ import annotations

import json
import math
import time
from typing import Any

import msgspec
import pytest

from supervisor.metatools import lenient_json
from supervisor.metatools.lenient_json import NotAnObject
from tests.fakes.json_texts import raw


@pytest.mark.parametrize(
    "written",
    [
        "{1: 2}",
        "{'a': {1, 2}}",
        "{'a': b'x'}",
        "{'a': ({1: 2},)}",
        "{'a': open('/etc/passwd')}",
        "{'a'}",
        "{'a': 1",
        "{'a': " + "(" * 300 + ")" * 300 + "}",
        "{'a': '" + "x" * 20_000 + "'}",
        "```python\nprint({})\n```",
        json.dumps(json.dumps(json.dumps(json.dumps({"a": 1})))),
        "[1]",
        "\ud800",
    ],
)
def test_what_is_no_object_is_refused(written: str) -> None:
    with pytest.raises(NotAnObject):
        lenient_json.read(raw(written))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, 5.0),
        ("2.5", 2.5),
        (10**400, math.inf),
        (-(10**400), -math.inf),
        ("x", math.nan),
        (True, math.nan),
        ([], math.nan),
    ],
)
def test_a_number_is_read_out_of_a_text(value: Any, expected: float) -> None:
    number = lenient_json.number(value)
    assert number == expected or (math.isnan(number) and math.isnan(expected))


def test_prose_is_a_text_that_is_not_meant_to_be_json() -> None:
    assert lenient_json.is_prose(raw("create an issue"))
    assert not any(lenient_json.is_prose(raw(text)) for text in ("", " ", "{}", "[1]", "```x", '"x"', 5, None))


LISTS = b"[" + b",".join([b"[]"] * 50_000) + b"]"
MANY = b"{" + b",".join(b'"k%d":0' % number for number in range(30_000)) + b"}"


def test_a_value_of_a_million_parts_is_not_made_into_objects() -> None:
    assert lenient_json.plain(msgspec.Raw(LISTS)) is None
    assert lenient_json.plain(msgspec.Raw(b'"' + b"x" * 100_000 + b'"')) == "x" * 100_000


def test_an_object_with_very_many_members_is_passed_on_but_not_taken_apart() -> None:
    assert bytes(lenient_json.read(msgspec.Raw(MANY)).text) == MANY
    with pytest.raises(lenient_json.TooManyMembers):
        lenient_json.members(msgspec.Raw(MANY))
    with pytest.raises(lenient_json.TooManyMembers):
        lenient_json.members(raw({str(number): 0 for number in range(lenient_json.MAX_MEMBERS + 1)}))
    assert (
        len(lenient_json.members(raw({str(number): 0 for number in range(lenient_json.MAX_MEMBERS)})))
        == lenient_json.MAX_MEMBERS
    )


@pytest.mark.parametrize("value", [MANY, b'{"k1":0,"k 2":{}}'])
def test_what_an_object_lacks_is_known_however_large_it_is(value: bytes) -> None:
    found = lenient_json.read(msgspec.Raw(value))
    assert lenient_json.missing_members(found, ["k1", "a", "class", "a"]) in (["a", "class"], ["a", "class", "a"])
    assert lenient_json.missing_members(found, ["k1"]) == []
    assert lenient_json.missing_members(found, []) == []


def test_a_fence_with_nothing_but_spaces_is_read_in_one_pass() -> None:
    begun = time.process_time()
    with pytest.raises(NotAnObject):
        lenient_json.read(raw("```json\n" + " " * 300_000 + "x"))
    assert time.process_time() - begun < 1  # it took longer than anybody waited


def test_members_are_of_an_object_only() -> None:
    for text in (b"{oops}", b"[1]", b'{"a":1', b"\xff"):
        with pytest.raises(NotAnObject):
            lenient_json.members(msgspec.Raw(text))


@pytest.mark.parametrize(
    ("written", "held"),
    [(b'{"a":1}', True), (b'" {} "', True), (b'"{oops}"', False), (b'"\\x{}"', False), (b"[]", False), (b"", False)],
)
def test_an_object_may_be_held_in_a_text(written: bytes, held: bool) -> None:
    assert lenient_json.holds_object(msgspec.Raw(written)) is held
    assert not lenient_json.holds_object(None)
