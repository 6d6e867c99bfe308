"""Schemas as a model reads them: references inlined where that ends, names in a line."""

from __future__ import annotations

import json
import time
import tracemalloc
from typing import Any
from urllib.parse import unquote

import msgspec
import pytest

from actors.catalogue.offer import Tool
from actors.protocol.wire.jsonrpc import encode
from supervisor.metatools import schemas
from supervisor.metatools.schemas import signature
from tests.fakes.json_texts import raw


def inlined(schema: Any) -> Any:
    rendered = schemas.inline_references(raw(schema))
    return json.loads(bytes(rendered)) if isinstance(rendered, msgspec.Raw) else rendered


def test_a_schema_without_references_keeps_its_bytes() -> None:
    text = msgspec.Raw(b'{ "type":"object", "x" : 1.0 }')
    assert schemas.inline_references(text) is text


def test_references_are_replaced_and_the_definitions_go() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"items": [{"$ref": "#/definitions/B"}]}},
        "$defs": {"A": {"type": "array", "items": {"$ref": "#/definitions/B"}}},
        "definitions": {"B": {"type": "string"}},
    }
    assert inlined(schema) == {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "string"}}, "b": {"items": [{"type": "string"}]}},
    }


def test_what_stands_beside_a_reference_wins() -> None:
    schema = {"properties": {"a": {"$ref": "#/$defs/A", "description": "mine"}}, "$defs": {"A": {"description": "x"}}}
    assert inlined(schema)["properties"]["a"] == {"description": "mine"}


@pytest.mark.parametrize(
    ("pointer", "name"), [("a~1b", "a/b"), ("a~0b", "a~b"), ("a~01b", "a~1b"), ("a%20b", "a b"), ("", "")]
)
def test_pointers_may_be_escaped(pointer: str, name: str) -> None:
    schema = {"x": {"$ref": f"#/$defs/{pointer}"}, "$defs": {name: {"type": "null"}}}
    assert inlined(schema) == {"x": {"type": "null"}}


def test_a_pointer_may_lead_into_a_list() -> None:
    assert inlined({"anyOf": [{"type": "null"}, {"$ref": "#/anyOf/0"}]})["anyOf"] == [{"type": "null"}] * 2


@pytest.mark.case("L10", "L11")
@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "#"}}},
        {"properties": {"a": {"$ref": "#/properties/a"}}},
        {"x": {"$ref": "#/$defs/A"}, "$defs": {"A": {"items": {"$ref": "#/$defs/B"}}, "B": {"$ref": "#/$defs/A"}}},
        {"x": {"$ref": "#/$defs/Missing"}, "$defs": {}},
        {"x": {"$ref": "https://example.com/schema.json"}},
        {"x": {"$ref": "other.json#/a"}},
        {"x": {"$ref": "#x$defs/A"}, "$defs": {"A": {}}},
        {"x": {"$ref": "$$$defs/A"}, "$defs": {"A": {}}},
        {"anyOf": [{"$ref": "#/anyOf/7"}]},
        {"anyOf": [{"$ref": "#/anyOf/1"}]},
        {"anyOf": [{"$ref": "#/anyOf/²"}, {}]},
        {"anyOf": [{"$ref": "#/anyOf/x"}, {}]},
        {"anyOf": [{"$ref": "#/anyOf/" + "1" * 5000}, {}]},
        {"x": {"$ref": "#/title/0"}, "title": "0"},
        {"x": {"$ref": "#/minimum/0"}, "minimum": 0},
    ],
)
def test_what_does_not_end_or_lead_anywhere_is_given_whole(schema: Any) -> None:
    assert inlined(schema) == schema


def test_a_property_may_have_the_name_of_a_keyword() -> None:
    properties = {"definitions": {"$ref": "#/$defs/A"}, "$ref": {"type": "string"}, "enum": {"$ref": "#/$defs/A"}}
    schema = {"properties": properties, "$defs": {"A": {"type": "null"}}}
    shown = inlined(schema)["properties"]
    assert shown == {"definitions": {"type": "null"}, "$ref": {"type": "string"}, "enum": {"type": "null"}}


def test_data_that_looks_like_a_reference_is_data() -> None:
    schema = {"a": {"$ref": "#/$defs/A"}, "default": {"$ref": "#/no"}, "enum": [{"$ref": "#"}], "$defs": {"A": {}}}
    assert inlined(schema) == {"a": {}, "default": {"$ref": "#/no"}, "enum": [{"$ref": "#"}]}


@pytest.mark.case("L11")
def test_references_that_double_with_each_level_are_given_up_soon() -> None:
    levels = {f"L{n}": {"a": {"$ref": f"#/$defs/L{n + 1}"}, "b": {"$ref": f"#/$defs/L{n + 1}"}} for n in range(18)}
    schema = {"x": {"$ref": "#/$defs/L0"}, "$defs": {**levels, "L18": {"type": "string"}}}
    started = time.perf_counter()
    assert inlined(schema) == schema
    assert time.perf_counter() - started < 1.0


@pytest.mark.parametrize(("levels", "whole"), [(20, False), (21, True)])
def test_references_are_followed_through_twenty_others_and_no_more(levels: int, whole: bool) -> None:
    defined: dict[str, Any] = {f"L{n}": {"$ref": f"#/$defs/L{n + 1}"} for n in range(1, levels)}
    schema = {"x": {"$ref": "#/$defs/L1"}, "$defs": {**defined, f"L{levels}": {"type": "null"}}}
    assert inlined(schema) == (schema if whole else {"x": {"type": "null"}})


@pytest.mark.parametrize(("items", "whole"), [(9996, False), (9997, True)])
def test_a_schema_of_more_than_ten_thousand_parts_keeps_its_references(items: int, whole: bool) -> None:
    schema = {"a": {"$ref": "#/$defs/a"}, "x": [0] * items, "$defs": {"a": {}}}
    assert inlined(schema) == (schema if whole else {"a": {}, "x": [0] * items})


def test_a_reference_to_what_is_no_object_stands_for_that() -> None:
    assert inlined({"x": {"$ref": "#/$defs/a", "title": "A"}, "$defs": {"a": True}}) == {"x": True}


def test_a_reference_as_long_as_a_schema_is_not_read_again_for_each_that_leads_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []

    def unquoted(text: str) -> str:
        read.append(text)
        return unquote(text)

    monkeypatch.setattr(schemas, "unquote", unquoted)
    name = "A" * 3000
    schema = {
        "properties": {f"p{number}": {"$ref": "#/$defs/a"} for number in range(500)},
        "$defs": {"a": {"$ref": "#/$defs/" + "%41" * len(name)}, name: {"type": "string"}},
    }
    tool = Tool(name="t", input_schema=raw(schema))
    schemas.complete(tool)
    assert sum(map(len, read)) <= 2 * len(tool.input_schema)


def test_what_references_may_become_counts_before_a_schema_is_shown() -> None:
    plain = Tool(name="t", input_schema=raw({"properties": {"a": {"type": "string"}}}))
    growing = Tool(name="t", input_schema=raw({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {}}}))
    assert schemas.growth(plain) == 0
    assert schemas.growth(growing) >= 4 * len(growing.input_schema)


def test_a_nest_as_deep_as_the_stack_is_given_as_it_is() -> None:
    text = msgspec.Raw(b'{"a":' * 900 + b'{"$ref":"#/b"}' + b"}" * 900)
    assert schemas.inline_references(text) is text


def test_a_list_is_no_schema() -> None:
    text = msgspec.Raw(b'[{"$ref":"#/x"}]')
    assert schemas.inline_references(text) is text


def test_a_signature_is_bounded() -> None:
    many = raw({"properties": {f"{number}" + "x" * 500: {} for number in range(500)}})
    found = signature(Tool(name="t", input_schema=many))
    assert len(found) < 1500
    assert found.endswith(", ...)")


def test_texts_in_a_complete_schema_are_clean() -> None:
    schema = raw({"properties": {"a": {"description": "say\x1b[31m\u200b hi\u202e"}}})
    assert schemas.complete(Tool(name="t", input_schema=schema)) == {"properties": {"a": {"description": "say hi"}}}


def test_a_reference_to_much_data_does_not_multiply_it() -> None:
    data = {"enum": ["x" * 100] * 160, "default": "y" * 1000}
    text = raw({"properties": {f"p{n}": {"$ref": "#/$defs/a"} for n in range(300)}, "$defs": {"a": data}})
    assert schemas.inline_references(text) is text


@pytest.mark.parametrize("key", ["enum", "const", "default", "examples", "description", "pattern"])
def test_whatever_a_reference_stands_for_is_counted(key: str) -> None:
    data = {key: ["x" * 5000] if key in ("enum", "examples") else "x" * 5000}
    few, many = (
        raw({"properties": {f"p{n}": {"$ref": "#/$defs/a"} for n in range(count)}, "$defs": {"a": data}})
        for count in (3, 300)
    )
    assert schemas.inline_references(few) == {"properties": {f"p{n}": data for n in range(3)}}
    assert schemas.inline_references(many) is many


def test_a_schema_of_a_megabyte_costs_no_more_memory_than_itself() -> None:
    values = ["x" * 100] * 8500
    properties = {f"p{n}": {"$ref": "#/$defs/a"} for n in range(200)}
    text = raw({"properties": properties, "required": ["p1"], "$defs": {"a": {"enum": values}}})
    tool = Tool(name="t", input_schema=text, required=("p1",))
    tracemalloc.start()
    try:
        assert schemas.complete(tool) is text
        assert tracemalloc.get_traced_memory()[1] < 5 * len(bytes(text))
    finally:
        tracemalloc.stop()


def test_a_large_schema_in_which_something_could_hide_is_not_shown() -> None:
    tool = Tool(name="t", input_schema=raw({"description": "x" * 70_000 + "\u200b"}), required=("a\u200b",))
    found = schemas.complete(tool)
    assert found["required"] == ["a"]
    assert "too large to be shown" in found["description"]


def test_a_signature_of_very_many_parameters_shows_those_required() -> None:
    many = raw({"properties": {f"p{number}": {} for number in range(5000)}})
    assert signature(Tool(name="t", input_schema=many, required=("p7",))) == "t(p7, ...)"


@pytest.mark.parametrize(("name", "there"), [("p7", True), ("p", False)])
def test_a_parameter_is_found_in_a_schema_of_any_size(name: str, there: bool) -> None:
    for count in (10, 30_000):
        many = raw({"properties": {f"p{number}": {} for number in range(count)}})
        assert schemas.has_parameter(Tool(name="t", input_schema=many), name) is there


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (
            {"$schema": "http://json-schema.org/draft-07/schema#", "title": "ReadArguments", "type": "object"},
            {"type": "object"},
        ),
        (
            {"properties": {"repo_path": {"title": "Repo Path", "type": "string"}, "n": {"title": "How many"}}},
            {"properties": {"repo_path": {"type": "string"}, "n": {"title": "How many"}}},
        ),
        (
            {"properties": {"title": {"title": "Title", "type": "string"}, "$schema": {"const": {"title": "x"}}}},
            {"properties": {"title": {"type": "string"}, "$schema": {"const": {"title": "x"}}}},
        ),
        ({"properties": {"a": {"items": {"title": "A"}}}}, {"properties": {"a": {"items": {"title": "A"}}}}),
        ({"additionalProperties": False, "title": "x"}, {"additionalProperties": False}),
    ],
)
def test_what_says_nothing_is_left_out_of_a_schema(schema: Any, expected: Any) -> None:
    shown = schemas.complete(Tool(name="read", input_schema=raw(schema)))
    assert json.loads(encode(shown)) == expected


def test_an_older_dialect_stays_where_the_newest_one_would_read_it_otherwise() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"a": {"items": [{"type": "string"}]}},
    }
    assert json.loads(encode(schemas.complete(Tool(name="t", input_schema=raw(schema))))) == schema


@pytest.mark.parametrize("schema", [b"7", b'{"properties":7}', b'{"properties":[]}', b"{oops}", b"{}"])
def test_a_schema_of_another_shape_has_no_parameter(schema: bytes) -> None:
    assert not schemas.has_parameter(Tool(name="t", input_schema=msgspec.Raw(schema)), "a")


@pytest.mark.parametrize("schema", [b'["title"]', b'{"title":oops}', b'"$schema"'])
def test_what_is_no_schema_is_not_made_quieter(schema: bytes) -> None:
    found = schemas.quiet(msgspec.Raw(schema))
    assert (bytes(found) if isinstance(found, msgspec.Raw) else msgspec.json.encode(found)) == schema
