"""Arguments under a wrong name: which are mended, and what is said of the others."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from actors.catalogue.entries import Tool
from supervisor.slips import Slip, slip_of

TEXT = {"type": "string"}


def slip(properties: dict[str, Any], given: dict[str, Any], *required: str) -> Slip:
    schema = msgspec.json.encode({"type": "object", "properties": properties, "required": required})
    tool = Tool(name="t", input_schema=msgspec.Raw(schema), required=required)
    return slip_of(tool, msgspec.Raw(msgspec.json.encode(given)), [name for name in required if name not in given])


@pytest.mark.parametrize(
    ("properties", "given", "mended"),
    [
        ({"rows": {"type": "array"}}, {"values": [1]}, {"rows": [1]}),
        ({"query": TEXT}, {"sql": "x"}, {"query": "x"}),
        ({"path": TEXT, "encoding": TEXT}, {"file_path": "x"}, {"path": "x"}),
        ({"path": TEXT, "limit": {"type": "integer"}}, {"text": "x"}, {"path": "x"}),
        ({"source": TEXT, "from_": TEXT}, {"sources": "x"}, {"source": "x"}),
        ({"count": {"type": "integer"}}, {"number": 5}, {"count": 5}),
        ({"level": {"enum": ["low", "high"]}}, {"severity": "low"}, {"level": "low"}),
    ],
)
def test_one_missing_and_one_unknown_argument_of_the_right_type_are_the_same(
    properties: dict[str, Any], given: dict[str, Any], mended: dict[str, Any]
) -> None:
    found = slip(properties, given, next(iter(properties)))
    assert found.mended is not None
    assert json.loads(bytes(found.mended)) == mended


@pytest.mark.parametrize(
    ("properties", "given", "told"),
    [
        ({"rows": {"type": "array"}}, {"values": "x"}, "missing rows; unknown: values"),
        ({"rows": {"type": ["array", "null"]}}, {"values": [1]}, "missing rows; unknown: values (did you mean rows?)"),
        ({"title": TEXT, "body": TEXT}, {"comment": "x"}, "missing title; unknown: comment (did you mean title?)"),
        ({"count": {"type": "integer"}}, {"number": 5.5}, "missing count; unknown: number"),
        ({"level": {"enum": ["low"]}}, {"severity": "none"}, "missing level; unknown: severity"),
        (
            {"path": TEXT},
            {"file_path": "x", "force": True},
            "missing path; unknown: file_path (did you mean path?), force",
        ),
        ({"path": TEXT}, {}, "missing path"),
    ],
)
def test_what_is_not_certain_is_said_and_not_done(properties: dict[str, Any], given: dict[str, Any], told: str) -> None:
    found = slip(properties, given, next(iter(properties)))
    assert (found.mended, found.told) == (None, told)


def test_names_are_clean_and_few() -> None:
    given = {f"\x1b[31mk{number}": 0 for number in range(900)}
    found = slip({f"p{number}": TEXT for number in range(100)}, given, *(f"p{number}" for number in range(100)))
    assert (len(found.missing), len(found.unknown)) == (20, 20)
    assert "\x1b" not in found.told


def test_a_schema_without_properties_and_an_object_of_thousands_are_only_said_to_lack_something() -> None:
    assert slip({}, {"a": 1}, "b").told == "missing b"
    assert slip({"b": TEXT}, {f"k{number}": 0 for number in range(5000)}, "b").told == "missing b"
