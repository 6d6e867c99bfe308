"""Arguments that are repeated in headers, and the annotations that ask for it."""

from __future__ import annotations

from typing import Any

import pytest

from supervisor.front.http.param_headers import ParamHeader, disagreement, param_headers


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def annotated(kind: Any = "string", token: Any = "Region") -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": token}


REGION = (ParamHeader(b"mcp-param-region", ("region",)),)


@pytest.mark.parametrize("kind", ["string", "integer", "boolean"])
def test_simple_properties_may_be_annotated(kind: str) -> None:
    assert param_headers(schema(region=annotated(kind), other={"type": "string"})) == REGION


def test_nested_properties_are_found_by_their_path() -> None:
    found = param_headers(schema(a=schema(b=annotated(token="B-x"))))
    assert found == (ParamHeader(b"mcp-param-b-x", ("a", "b")),)


@pytest.mark.parametrize(
    "found",
    [
        schema(region=annotated("number")),
        schema(region=annotated(["string", "null"])),
        schema(region=annotated("object")),
        schema(region={"x-mcp-header": "Region"}),
        schema(region=annotated(token="")),
        schema(region=annotated(token="a b")),
        schema(region=annotated(token="a\r\nX-Evil: 1")),
        schema(region=annotated(token="é")),
        schema(region=annotated(token=7)),
        schema(a=annotated(token="Same"), b=annotated(token="sAME")),
        schema(a={"type": "array", "items": schema(region=annotated())}),
        schema(a={"anyOf": [schema(region=annotated())]}),
        {"$defs": {"a": schema(region=annotated())}},
        {"properties": {"region": True}},
        {"properties": []},
        True,
        None,
    ],
)
def test_an_annotation_of_another_kind_or_place_does_not_count(found: Any) -> None:
    assert param_headers(found) == ()


def test_a_bottomless_schema_is_not_followed_for_ever() -> None:
    bottomless: dict[str, Any] = {"type": "object"}
    bottomless["properties"] = {"a": bottomless, "region": annotated()}
    assert param_headers(bottomless) == ()  # the same token many times


@pytest.mark.parametrize(
    ("argument", "values", "agrees"),
    [
        ("eu", [b"eu"], True),
        ("eu", [b" eu "], True),
        ("eu", [b"EU"], False),
        ("eu", [b"us"], False),
        ("eu", [], False),
        ("eu", [b"eu", b"eu"], False),
        ("", [b""], True),
        ("Hello", [b"=?base64?SGVsbG8=?="], True),
        ("Hello", [b"=?base64?SGVsbG8?="], False),
        ("Hello", [b"=?base64?SGVs!!!bG8=?="], False),
        ("SGVsbG8=", [b"SGVsbG8="], True),
        ("ü", [b"=?base64?w7w=?="], True),
        (None, [], True),
        (None, [b"null"], False),
        (..., [], True),
        (..., [b"eu"], False),
        (True, [b"true"], True),
        (True, [b"True"], False),
        (False, [b"false"], True),
        (True, [b"1"], False),
        (42, [b"42"], True),
        (42, [b"42.0"], True),
        (42.0, [b"42"], True),
        (42, [b"42.5"], False),
        (42, [b"0x2a"], False),
        (42, [b"NaN"], False),
        (2**70, [str(2**70).encode()], True),
        (2**70, [str(2**70 + 1).encode()], False),
        ([1], [b"1"], False),
    ],
)
def test_header_and_argument_must_agree(argument: Any, values: list[bytes], agrees: bool) -> None:
    arguments = {} if argument is ... else {"region": argument}
    headers = [(b"mcp-param-region", value) for value in values]
    expected = None if agrees else "mcp-param-region"
    assert disagreement(REGION, arguments, [(b"mcp-param-unknown", b"x"), *headers]) == expected


@pytest.mark.parametrize("arguments", [None, 7, [], {"region": {}}])
def test_arguments_of_another_shape_agree_with_no_header(arguments: Any) -> None:
    wanted = (ParamHeader(b"mcp-param-a", ("region", "a")),)
    assert disagreement(wanted, arguments, []) is None
