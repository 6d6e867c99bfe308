"""A tool in one line: types where they are plain, names where they are not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from actors.catalogue.offer import Tool
from supervisor.metatools.schemas import has_parameter, requirements, signature

A: dict[str, Any] = {"properties": {"a": {"type": "string"}}, "required": ["a"]}
B: dict[str, Any] = {"properties": {"b": {"type": "integer"}}}


def shown(schema: Any, *required: str) -> str:
    text = msgspec.json.encode({"properties": {"p": schema}})
    return signature(Tool(name="t", input_schema=msgspec.Raw(text), required=required))


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, "p?: string"),
        ({"type": "integer"}, "p?: integer"),
        ({"type": ["integer", "null"]}, "p?: integer"),
        ({"type": ["integer", "string"]}, "p?: integer|string"),
        ({"type": "array"}, "p?: array"),
        ({"type": "array", "items": {"type": "string"}}, "p?: string[]"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, "p?: array"),
        ({"type": "string", "enum": ["a", "b"]}, 'p?: "a"|"b"'),
        ({"enum": [1, 2, None]}, "p?: 1|2|null"),
        ({"type": "string", "enum": list("abcdef")}, "p?: string"),
        ({"type": "string", "enum": ["x" * 200]}, "p?: string"),
        ({"enum": ["\x1b[31m\u200ba"]}, 'p?: "a"'),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "p?: integer"),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "p?: integer|string"),
        ({"anyOf": [{"type": "integer"}, {"$ref": "#/x"}]}, "p?"),
        ({"anyOf": 7}, "p?"),
        ({"anyOf": [{"type": "integer"}] * 5}, "p?: integer"),
        ({"anyOf": [{"type": "integer"}] * 6}, "p?"),
        ({"$ref": "#/$defs/x"}, "p?"),
        ({"type": "any"}, "p?"),
        ({"type": {"x": 1}}, "p?"),
        (True, "p?"),
        ("odd", "p?"),
    ],
)
def test_a_parameter_has_its_type_where_that_is_plain(schema: Any, expected: str) -> None:
    assert shown(schema) == f"t({expected})"


def test_a_required_parameter_has_no_question_mark() -> None:
    assert shown({"type": "boolean"}, "p") == "t(p: boolean)"


def test_of_many_parameters_those_required_come_first() -> None:
    text = msgspec.json.encode({"properties": {f"p{n}": {} for n in range(30)}})
    found = signature(Tool(name="t", input_schema=msgspec.Raw(text), required=("p29",)), 3)
    assert found == "t(p29, p0?, p1?, ...)"


ITEM = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}, "n": {}},
    "required": ["name", "tags"],
}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "array", "items": ITEM}, "p: {name: string, tags: string[], ...}[]"),
        (ITEM, "p: {name: string, tags: string[], ...}"),
        ({**ITEM, "required": ["n", "name", "tags", "name"]}, "p: {n, name: string, tags: string[]}"),
        ({**ITEM, "properties": {"name": ITEM}, "required": ["name"]}, "p: {name: object}"),
        ({**ITEM, "required": []}, "p: object"),
        ({**ITEM, "required": "name"}, "p: object"),
        ({**ITEM, "required": ["else"]}, "p: object"),
        ({**ITEM, "properties": 5}, "p: object"),
        ({"type": "object", "properties": {name: {} for name in "abcdef"}, "required": list("abcdef")}, "p: object"),
        ({**ITEM, "description": "x" * 4000}, "p: object"),
        ({"type": "array", "items": {**ITEM, "required": []}}, "p: object[]"),
    ],
)
def test_what_an_object_must_have_is_told_where_a_call_needs_it(schema: Any, expected: str) -> None:
    assert shown(schema, "p") == f"t({expected})"
    assert "{" not in shown(schema)


def test_an_object_need_not_have_what_has_a_default() -> None:
    properties = {"a": {"type": "string"}, "b": {"type": "string", "default": "x"}}
    schema = {"type": "object", "properties": properties, "required": ["a", "b"]}
    assert shown(schema, "p") == "t(p: {a: string, ...})"


def test_what_is_required_of_too_many_parameters_is_told_with_dots() -> None:
    for count, expected in ((2, "(p1, ...)"), (1, "(p1)"), (5000, "(p1, ...)")):
        text = msgspec.json.encode({"properties": {f"p{n}": {} for n in range(1, count + 1)}})
        assert requirements(Tool(name="t", input_schema=msgspec.Raw(text), required=("p1",)), 3) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"anyOf": [A, B]}, "t({a: string} | {b?: integer})"),
        ({"oneOf": [{"$ref": "#/$defs/a"}, B], "$defs": {"a": A}}, "t({a: string} | {b?: integer})"),
        (
            {"properties": {"c": {"type": "boolean"}}, "anyOf": [A, B]},
            "t({c?: boolean, a: string} | {c?: boolean, b?: integer})",
        ),
        ({"allOf": [A, B]}, "t(a: string, b?: integer)"),
        ({"properties": A["properties"], "anyOf": [{"required": ["a"]}, {"required": ["x"]}]}, "t(a?: string)"),
        ({"anyOf": [7, {"$ref": "#/none"}, {"$ref": "https://example.com"}]}, "t()"),
        ({"anyOf": [{"properties": {f"p{n}": {}}} for n in range(99)]}, "t({p0?} | {p1?} | {p2?} | {p3?} | {p4?})"),
    ],
)
def test_a_choice_between_objects_is_shown_as_one(schema: Any, expected: str) -> None:
    tool = Tool(name="t", input_schema=msgspec.Raw(msgspec.json.encode({"type": "object", **schema})))
    assert signature(tool) == expected
    assert requirements(tool, 3) == ("()" if expected == "t()" else "(...)")
    assert has_parameter(tool, "a") is ("a" in expected.replace("boolean", ""))
