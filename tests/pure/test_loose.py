"""JSON as models write it: what is read as an object, and what is not."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest

from supervisor import loose
from supervisor.loose import NotAnObject


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value).encode())


@pytest.mark.parametrize(
    "written",
    [
        '{"a": 1}',
        "{'a': 1}",
        '{"a": 1,}',
        '```json\n{"a": 1}\n```',
        "```\n{'a': 1}```",
        '"{\\"a\\": 1}"',
    ],
)
def test_an_object_is_read_out_of_a_string(written: str) -> None:
    assert json.loads(bytes(loose.object_text(raw(written)))) == {"a": 1}


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
        loose.object_text(raw(written))


@pytest.mark.parametrize("nothing", [b"", b"null", b'""', b'"null"', b"[]", b'"[]"', b"  "])
def test_nothing_is_an_empty_object(nothing: bytes) -> None:
    assert loose.object_text(msgspec.Raw(nothing)) == loose.EMPTY


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
    found = loose.number(value)
    assert found == expected or (math.isnan(found) and math.isnan(expected))


def test_prose_is_a_text_that_is_not_meant_to_be_json() -> None:
    assert loose.is_prose(raw("create an issue"))
    assert not any(loose.is_prose(raw(text)) for text in ("", " ", "{}", "[1]", "```x", '"x"', 5, None))
