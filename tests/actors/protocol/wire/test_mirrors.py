"""Which arguments the head of a call repeats: the rules of the annotation, and the values."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.protocol.wire.mirrors import (
    MAX_MIRRORS,
    MAX_SAFE_INTEGER,
    Mirror,
    MisplacedMirror,
    agree,
    arguments_in,
    header_texts,
    mirrors_in,
)

REGION = {"type": "string", "x-mcp-header": "Region"}
MIRROR = Mirror("mcp-param-region", ("region",))


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def call(arguments: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "params": {"name": "t", "arguments": arguments}}).encode()


def value(of: Any) -> str | None:
    return header_texts((MIRROR,), call({"region": of})).get("mcp-param-region")


def test_annotated_properties_are_mirrored_wherever_only_properties_lead() -> None:
    inner = schema(zone=REGION | {"x-mcp-header": "Zone-1"}, plain={"type": "string"})
    assert set(mirrors_in(schema(region=REGION, place=inner))) == {
        MIRROR,
        Mirror("mcp-param-zone-1", ("place", "zone")),
    }
    assert mirrors_in(schema(plain={"type": "string"})) == ()


@pytest.mark.parametrize("schema_", [None, [], "x", True, {"properties": [1]}, {"properties": {"a": 1}}])
def test_what_is_no_schema_has_none(schema_: Any) -> None:
    assert mirrors_in(schema_) == ()


@pytest.mark.parametrize("keyword", ["const", "default", "enum", "examples"])
def test_data_are_no_annotations_nor_are_properties_of_that_name(keyword: str) -> None:
    assert mirrors_in(schema(a={"type": "object", keyword: [{"x-mcp-header": "A"}]})) == ()
    assert mirrors_in(schema(**{"x-mcp-header": {"type": "string"}})) == ()


@pytest.mark.parametrize("type_", ["string", "integer", "boolean"])
def test_three_types_may_be_mirrored(type_: str) -> None:
    assert mirrors_in(schema(region={"type": type_, "x-mcp-header": "region"})) == (MIRROR,)


@pytest.mark.parametrize("type_", ["number", "object", "array", "null", ["string", "null"], None])
def test_no_other_type_may(type_: Any) -> None:
    with pytest.raises(MisplacedMirror, match="no string, integer or boolean"):
        mirrors_in(schema(region={"type": type_, "x-mcp-header": "Region"}))


@pytest.mark.parametrize("name", ["", "a b", "a\r\nX-Evil: 1", "é", "a:", 7, None, "a" * 129, "a\n"])
def test_a_name_is_a_token(name: Any) -> None:
    with pytest.raises(MisplacedMirror, match="no token"):
        mirrors_in(schema(region={"type": "string", "x-mcp-header": name}))


@pytest.mark.parametrize(
    "misplaced",
    [
        REGION,
        {"allOf": [schema(region=REGION)]},
        {"if": schema(region=REGION)},
        {"$defs": {"a": REGION}},
        {"definitions": {"properties": schema(region=REGION)}},
        {"patternProperties": {"^a": REGION}},
        schema(rows={"type": "array", "items": REGION}),
        schema(rows={"type": "array", "items": schema(region=REGION)}),
        schema(either={"anyOf": [REGION, {"type": "null"}]}),
        {"oneOf": [{"allOf": [{"not": REGION}]}]},
        {"someKeyword": {"properties": {"a": REGION}}},
    ],
)
def test_no_other_way_may_lead_there(misplaced: dict[str, Any]) -> None:
    with pytest.raises(MisplacedMirror, match="where no path of properties leads"):
        mirrors_in(misplaced)


def test_a_name_is_there_once_in_whichever_case_and_not_at_any_number_of_properties() -> None:
    with pytest.raises(MisplacedMirror, match="twice"):
        mirrors_in(schema(a=REGION, b=REGION | {"x-mcp-header": "REGION"}))
    many = {f"p{number}": REGION | {"x-mcp-header": f"h{number}"} for number in range(MAX_MIRRORS)}
    assert len(mirrors_in(schema(**many))) == MAX_MIRRORS
    with pytest.raises(MisplacedMirror, match="over 64"):
        mirrors_in(schema(**many, more=REGION))


@pytest.mark.parametrize(
    ("given_", "text"),
    [
        ("us-west1", "us-west1"),
        ("", ""),
        (True, "true"),
        (False, "false"),
        (-7, "-7"),
        (42.0, "42"),
        (MAX_SAFE_INTEGER, "9007199254740991"),
        (MAX_SAFE_INTEGER + 1, None),
        (10**400, None),
        (1.5, None),
        (None, None),
        ([], None),
        ({}, None),
    ],
)
def test_values_become_texts(given_: Any, text: str | None) -> None:
    assert value(given_) == text


def test_what_is_not_there_has_no_field() -> None:
    deep = (Mirror("mcp-param-a", ("x", "y", "z")), Mirror("mcp-param-b", ("x", "y", "w")))
    assert header_texts(deep, call({"x": {"y": {"z": "1", "w": 2}}})) == {"mcp-param-a": "1", "mcp-param-b": "2"}
    others: list[Any] = [{}, {"x": 1}, {"x": {"y": []}}, {"x": {"y": {}}}, [], None, "x"]
    for arguments in others:
        assert header_texts(deep, call(arguments)) == {}
    assert header_texts((MIRROR,), b'{"params":{"name":"t"}}') == {}
    assert header_texts((MIRROR,), b"{") == {}
    assert header_texts((MIRROR,), b'{"params":{"arguments":{"region":"\\ud800"}}}') == {}


@pytest.mark.parametrize(
    ("argument", "text", "agrees"),
    [
        (b'"us"', "us", True),
        (b'"us"', "eu", False),
        (b'"us"', None, False),
        (b'"42"', "42.0", False),
        (b"42", "42", True),
        (b"42", "42.0", True),
        (b"-42.0", "-42", True),
        (b"42", "42.5", False),
        (b"42", "4" * 5000, False),
        (b"42", None, False),
        (b"true", "true", True),
        (b"true", "1", False),
        (b"null", None, True),
        (b"null", "null", False),
        (None, None, True),
        (None, "us", False),
        (b"[1]", "us", True),
        (b"[1]", None, True),
    ],
)
def test_a_text_repeats_an_argument_exactly_or_as_the_same_integer(
    argument: bytes | None, text: str | None, agrees: bool
) -> None:
    assert agree(None if argument is None else msgspec.Raw(argument), text) == agrees


def test_the_arguments_of_a_call_are_those_of_its_params() -> None:
    read = arguments_in((MIRROR,), msgspec.Raw(b'{"arguments":{"region":"us"},"name":"t"}'))
    assert read == {MIRROR.field: msgspec.Raw(b'"us"')}
    assert arguments_in((MIRROR,), msgspec.Raw(b'{"name":"t"}')) == {MIRROR.field: None}
    assert arguments_in((MIRROR,), msgspec.Raw(b'{"arguments":[]}')) == {}


def test_arguments_of_any_depth_do_no_harm() -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    assert header_texts((MIRROR,), b'{"params":{"arguments":{"a":' + deep + b',"region":"x"}}}') in (
        {},
        {"mcp-param-region": "x"},
    )


SCALARS = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(max_size=20)
SCHEMAS = st.recursive(
    SCALARS | st.just(REGION),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["properties", "items", "type", "allOf", "x-mcp-header", "$defs", "enum", "a", "b"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(SCHEMAS, SCHEMAS)
def test_of_any_schema_and_any_arguments_come_distinct_fields_with_the_values_at_their_paths(
    schema_: Any, arguments: Any
) -> None:
    try:
        mirrors = mirrors_in(schema_)
    except MisplacedMirror:
        return
    assert len({mirror.field for mirror in mirrors}) == len(mirrors)
    fields = header_texts(mirrors, call(arguments))
    for mirror in mirrors:
        at = arguments
        for name in mirror.path:
            at = at.get(name) if isinstance(at, dict) else None
        assert (fields.get(mirror.field) == at) if isinstance(at, str) else fields.get(mirror.field) != ""
