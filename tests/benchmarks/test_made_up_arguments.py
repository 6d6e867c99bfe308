"""Arguments made up from a schema are valid by it; those made from a signature have what it says is needed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.arguments import from_row, from_schema, guessed, parameters
from benchmarks.strict_server import problems

TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"child": {"$ref": "#/$defs/Node"}},
    "required": ["child"],
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
            "required": ["children"],
        }
    },
}
ONES: list[dict[str, Any]] = [
    {},
    {"type": "string"},
    {"type": ["null", "integer"], "minimum": 5},
    {"type": "string", "minLength": 30},
    {"type": "string", "maxLength": 2},
    {"type": "string", "minLength": 5, "maxLength": 5},
    {"type": "string", "enum": ["b", "a"]},
    {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}to\d{4}-\d{2}-\d{2}$"},
    {"type": "string", "pattern": "^(red|blue)[^a-z1]?.+$"},
    {"type": "string", "pattern": "^[A-Z][A-Z0-9_]+-\\d+$"},
    {"type": "string", "pattern": "^[^/]+//[\\s][\\w-]{3,9}(?:x|y)*$"},
    {"type": "string", "pattern": "^.$"},
    {"type": "string", "pattern": "^[a-f]+?$", "minLength": 3, "maxLength": 5},
    {"type": "string", "pattern": "^secret-\\d$", "default": "secret-7"},
    {"type": "string", "format": "uuid"},
    {"type": "string", "format": "date", "pattern": "^20"},
    {"type": "string", "format": "email"},
    {"type": "string", "format": "ipv6"},
    {"type": "string", "format": "some-other"},
    {"const": {"a": [1]}},
    {"const": None},
    {"type": "null"},
    {"type": "boolean"},
    {"type": "integer", "minimum": 7},
    {"type": "integer", "maximum": -7},
    {"type": "integer", "exclusiveMinimum": 1, "multipleOf": 4},
    {"type": "integer", "minimum": 0, "exclusiveMaximum": 1},
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    {"type": "number", "minimum": 0.25, "maximum": 0.5},
    {"type": "number", "maximum": 3, "multipleOf": 0.5},
    {"minimum": 100},
    {"type": "array", "items": {"type": "integer"}, "minItems": 3, "uniqueItems": True},
    {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2, "uniqueItems": True},
    {
        "type": "array",
        "minItems": 2,
        "uniqueItems": True,
        "items": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
    },
    {"type": "array", "maxItems": 0},
    {"type": "array", "contains": {"const": "x"}},
    {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "boolean"}], "items": False},
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "array",
        "items": [{"type": "null"}],
        "additionalItems": False,
    },
    {"anyOf": [{"type": "null"}, {"type": "integer", "minimum": 3}]},
    {"oneOf": [{"type": "object", "required": ["a"], "properties": {"a": {"type": "boolean"}}}, {"type": "string"}]},
    {"type": "object", "properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
    {
        "type": "object",
        "oneOf": [
            {"properties": {"kind": {"const": kind}, "id": {"type": "string"}}, "required": ["id"]}
            for kind in ("put", "update")
        ],
        "properties": {"kind": {"type": "string"}},
        "required": ["kind"],
    },
    {"allOf": [{"type": "object", "required": ["a"]}, {"required": ["b"], "properties": {"b": {"type": "array"}}}]},
    {"type": "object", "minProperties": 2, "additionalProperties": {"type": "integer"}},
    {"type": "object", "minProperties": 1, "properties": {"a": {"type": "number"}, "b": {}}},
    {"type": "object", "required": ["more"], "additionalProperties": {"type": "array", "items": {"type": "string"}}},
    TREE,
    {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/Json"}}, {"type": "string"}]},
    {"$ref": "#/$defs/with~1slash"},
]
DEFS = {
    "with/slash": {"type": "integer"},
    "Json": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/Json"}}, {"type": "string"}]},
    **TREE["$defs"],
}


@pytest.mark.parametrize("one", ONES, ids=str)
def test_what_a_schema_wants_is_made(one: dict[str, Any]) -> None:
    draft = {"$schema": one["$schema"]} if "$schema" in one else {}
    parameter = {key: value for key, value in one.items() if key != "$schema"}
    schema = {**draft, "type": "object", "properties": {"it": parameter}, "required": ["it"], "$defs": DEFS}
    made = from_schema(schema)
    assert list(made) == ["it"]
    assert problems(schema, made) == []


def test_only_what_is_needed_is_made_and_the_same_each_time() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["b"]}
    assert from_schema(schema) == from_schema(schema) == {"b": "text"}
    assert from_schema({"type": "object", "properties": {"a": {"type": "string"}}}) == {}
    assert from_schema({}) == from_schema(None) == {}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}},
        {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/nowhere/3"}}},
        {"anyOf": []},
        {"required": ["a"], "properties": {"a": {"type": "string", "pattern": "(", "minLength": "x"}}},
        {"required": ["a"], "properties": {"a": {"type": "integer", "minimum": 3, "maximum": 2, "multipleOf": 0}}},
        {"required": ["a"], "properties": {"a": {"type": "array", "items": {"$ref": "#"}, "minItems": 1}}},
    ],
    ids=str,
)
def test_a_schema_that_nothing_satisfies_still_gives_an_object(schema: Any) -> None:
    assert isinstance(from_schema(schema), dict)


def bounded(kind: str, low: int, size: int, *, exclusive: bool) -> dict[str, Any]:
    ends = ("exclusiveMinimum", "exclusiveMaximum") if exclusive else ("minimum", "maximum")
    return {"type": kind, ends[0]: low, ends[1]: low + size + 2}


SCALARS = st.one_of(
    st.builds(
        bounded,
        st.sampled_from(["integer", "number"]),
        st.integers(-99, 99),
        st.integers(0, 9),
        exclusive=st.booleans(),
    ),
    st.builds(
        lambda low, more: {"type": "string", "minLength": low, "maxLength": low + more}, *[st.integers(0, 40)] * 2
    ),
    st.builds(lambda values: {"enum": values}, st.lists(st.integers() | st.text(max_size=5), min_size=1, max_size=4)),
    st.builds(lambda value: {"const": value}, st.none() | st.booleans() | st.text(max_size=5)),
    st.sampled_from([{"type": "boolean"}, {"type": "null"}, {"type": ["string", "null"]}, {"$ref": "#/$defs/Json"}]),
    st.builds(
        lambda pattern: {"type": "string", "pattern": f"^{pattern}$"},
        st.from_regex(r"([a-z]\{1,3\}|\[a-d9\]\+|\\d)*", fullmatch=True),
    ),
)


def nested(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    def thing(properties: dict[str, dict[str, Any]], needed: int, *, closed: bool) -> dict[str, Any]:
        known = {"type": "object", "properties": properties, "required": list(properties)[:needed]}
        return known | ({"additionalProperties": False} if closed else {})

    return st.one_of(
        st.builds(lambda items, low: {"type": "array", "items": items, "minItems": low}, inner, st.integers(0, 3)),
        st.builds(
            thing, st.dictionaries(st.text(max_size=4), inner, max_size=4), st.integers(0, 4), closed=st.booleans()
        ),
        st.builds(lambda choices: {"anyOf": choices}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda one: {"allOf": [one, {"description": "more"}]}, inner),
    )


@given(st.recursive(SCALARS, nested, max_leaves=8))
def test_whatever_can_be_satisfied_is(one: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"it": one}, "required": ["it"], "$defs": DEFS}
    assert problems(schema, from_schema(schema)) == []


@pytest.mark.parametrize(
    ("signature", "expected"),
    [
        ("f()", []),
        ("f", []),
        ("f(a, b?)", [("a", ""), ("b?", "")]),
        ("f(owner: string, level?: integer, ...)", [("owner", "string"), ("level?", "integer")]),
        ('f(kind: "a, b"|"c(d)", tags: string[])', [("kind", '"a, b"|"c(d)"'), ("tags", "string[]")]),
        (
            'f(a: {b: string, c: "x, }"|2, ...}[], d: {e}, g?)',
            [("a", '{b: string, c: "x, }"|2, ...}[]'), ("d", "{e}"), ("g?", "")],
        ),
        ('f($filter?: "x: \\"y\\""|3, a.b: array)', [("$filter?", '"x: \\"y\\""|3'), ("a.b", "array")]),
    ],
)
def test_a_signature_is_read_as_it_is_shown(signature: str, expected: list[tuple[str, str]]) -> None:
    assert list(parameters(signature)) == expected


def test_arguments_are_made_by_the_types_of_a_signature() -> None:
    row = {
        "signature": 'f(a: string|null, b: "x, y"|"z", c: integer, d: boolean, e: number[], g: object, h?: string, i)'
    }
    assert from_row(row) == ({"a": "text", "b": "x, y", "c": 1, "d": True, "e": [1], "g": {}, "i": "text"}, True)


def test_objects_that_a_signature_writes_out_are_made() -> None:
    row = {"signature": 'f(a: {b: string, c: "x, }"|2, ...}[], d: {e: string[], n: integer, count})'}
    assert from_row(row) == ({"a": [{"b": "text", "c": "x, }"}], "d": {"e": ["text"], "n": 1, "count": 1}}, True)


def test_names_without_types_are_guessed_and_so_are_those_that_only_required_tells() -> None:
    row = {
        "signature": "f(owner, issue_number, pageSize, isDraft, body?, ...)",
        "required": ["owner", "body", "hidden"],
    }
    made = {"owner": "text", "issue_number": 1, "pageSize": 1, "isDraft": True, "body": "text", "hidden": "text"}
    assert from_row(row) == (made, False)
    assert from_row({}) == ({}, False)
    assert guessed("$") == "text"
