"""Schemas of results inside of another: they accept what they did, one level deeper."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.service.fitting.tool_definitions import MAX_BYTES, MAX_DEPTH, is_of_objects, wrap
from tests.fakes.published import validator


def moved(schema: Any) -> Any:
    text = wrap(msgspec.Raw(json.dumps(schema).encode()))
    return None if text is None else json.loads(bytes(text))


TREE = {
    "$defs": {"node": {"type": "array", "items": {"$ref": "#/$defs/node"}}, "leaf": {"const": 1}},
    "anyOf": [{"$ref": "#/$defs/node"}, {"$ref": "#/$defs/leaf"}],
}


def test_references_of_a_schema_to_itself_lead_to_its_new_place_and_others_stay() -> None:
    inner = moved({**TREE, "items": [{"$ref": "#"}, {"$dynamicRef": "#/a"}, {"$ref": "#name"}, {"$ref": "x.json#/a"}]})
    inner = inner["properties"]["result"]
    assert inner["anyOf"] == [{"$ref": "#/properties/result/$defs/node"}, {"$ref": "#/properties/result/$defs/leaf"}]
    assert inner["$defs"]["node"]["items"] == {"$ref": "#/properties/result/$defs/node"}
    assert inner["items"] == [
        {"$ref": "#/properties/result"},
        {"$dynamicRef": "#/properties/result/a"},
        {"$ref": "#name"},
        {"$ref": "x.json#/a"},
    ]


def test_data_that_looks_like_a_reference_and_names_like_keywords_stay_what_they_are() -> None:
    data = {"const": {"$ref": "#"}, "enum": [{"$ref": "#"}], "default": {"$ref": "#"}, "examples": [{"$ref": "#"}]}
    named = {"properties": {"$ref": {"type": "string"}, "const": {"$ref": "#"}, "$id": {"const": "x"}}}
    inner = moved({**data, **named})["properties"]["result"]
    assert {name: inner[name] for name in data} == data
    assert inner["properties"] == {**named["properties"], "const": {"$ref": "#/properties/result"}}


def test_a_part_with_an_identity_of_its_own_keeps_its_references() -> None:
    own = {"$id": "urn:x:y", "items": {"$ref": "#"}}
    assert moved(own)["properties"]["result"] == own
    assert moved({"anyOf": [own, {"$ref": "#"}]})["properties"]["result"]["anyOf"][0] == own
    by_fragment = moved({"$id": "#here", "items": {"$ref": "#"}})["properties"]["result"]
    assert by_fragment["items"] == {"$ref": "#/properties/result"}


def test_the_dialect_is_told_at_the_root() -> None:
    dialect = "http://json-schema.org/draft-07/schema#"
    schema = moved({"$schema": dialect, "items": [{"type": "string"}]})
    assert next(iter(schema)) == "$schema"
    assert schema["$schema"] == dialect
    assert schema["properties"] == {"result": {"items": [{"type": "string"}]}}
    own = {"$schema": dialect, "$id": "urn:x:y"}
    assert moved(own)["properties"] == {"result": own}
    assert moved(own)["$schema"] == dialect
    assert "$schema" not in moved({"$schema": 5})


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"$ref": "#"}
    for _ in range(depth):
        schema = {"not": schema}
    return schema


@pytest.mark.parametrize(
    "schema",
    [True, None, [], "x", {"$recursiveRef": "#"}, {"description": "x" * MAX_BYTES}, nested(MAX_DEPTH), {"$defs": []}],
)
def test_what_is_no_schema_or_cannot_be_moved_is_left_out(schema: Any) -> None:
    assert (moved(schema) is None) == (schema != {"$defs": []})


def test_numbers_and_texts_keep_their_bytes() -> None:
    odd = b'{"anyOf":[{"$ref":"#/a"},{"maximum":1.0e+400, "const":"\\u00e9\\/"}]}'
    text = wrap(msgspec.Raw(odd))
    assert text is not None
    assert b'"maximum":1.0e+400' in bytes(text)
    assert b'"const":"\\u00e9\\/"' in bytes(text)


@pytest.mark.parametrize(
    ("schema", "is_one"),
    [
        (b'{"type":"object"}', True),
        (b'{"type":["object","null"]}', False),
        (b'{"anyOf":[]}', False),
        (b"5", False),
        (b"null", False),
    ],
)
def test_only_a_declared_type_counts(schema: bytes, is_one: bool) -> None:
    assert is_of_objects(msgspec.Raw(schema)) is is_one


NAMES = ("a", "b")
LEAVES: list[Any] = [
    {"type": "number"},
    {"type": "string"},
    {"type": "null"},
    {"const": {"$ref": "#"}},
    *({"$ref": f"#/$defs/{name}"} for name in NAMES),
]
SCHEMAS = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        st.builds(lambda item: {"type": "array", "items": item}, inner),
        st.builds(lambda each: {"anyOf": each}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda one: {"type": "object", "properties": {"$ref": one}, "required": ["$ref"]}, inner),
    ),
    max_leaves=6,
)
JSON = st.recursive(
    st.sampled_from([None, 1, "x", {"$ref": "#"}]),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.fixed_dictionaries({"$ref": inner})),
    max_leaves=6,
)


def verdict(schema: Any, value: Any) -> bool | None:
    """Whether a value fits; None if the schema leads in a circle."""
    try:
        return bool(validator(schema).is_valid(value))
    except RecursionError:
        return None


@given(SCHEMAS, st.fixed_dictionaries(dict.fromkeys(NAMES, SCHEMAS)), JSON)
def test_a_moved_schema_accepts_what_the_first_one_did_and_nothing_else(root: Any, defs: Any, value: Any) -> None:
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **root, "$defs": defs}
    outer = moved(schema)
    assert verdict(outer, {"result": value}) == verdict(schema, value)
    assert verdict(outer, {}) is False
