"""Definitions as the protocol has them: what is put right, and that everything else keeps its bytes."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from actors.protocol.agreement.versions import Era
from actors.protocol.listing import MEMBERS, Kind
from supervisor.metatools.answers import well_formed

ODD = b'{ "type" : "object", "n":1.0, "big":123456789012345678901234567890, "default":null }'


def definition(kind: Kind = "tools", era: Era = "legacy", **members: Any) -> Any:
    written = {name: msgspec.Raw(json.dumps(value).encode()) for name, value in members.items()}
    proper = well_formed.definition(written, kind, era)
    return {name: json.loads(bytes(value)) for name, value in proper.items()}


def page(*entries: Any, kind: Kind = "tools", **more: Any) -> Any:
    return json.loads(well_formed.page(json.dumps({MEMBERS[kind]: entries, **more}).encode(), kind, "legacy"))


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({}, {"type": "object"}),
        ({"properties": {"a": {}}}, {"type": "object", "properties": {"a": {}}}),
        ({"type": "object", "a": None}, {"type": "object", "a": None}),
        ({"type": ["object"]}, {"type": ["object"]}),
        ([1], [1]),
    ],
)
def test_a_schema_has_a_type(schema: Any, shown: Any) -> None:
    assert definition(name="a", inputSchema=schema) == {"name": "a", "inputSchema": shown}


def test_a_tool_has_a_schema_and_nothing_else_has() -> None:
    assert definition(name="a") == {"name": "a", "inputSchema": {"type": "object"}}
    assert definition(name="a", inputSchema=None) == {"name": "a", "inputSchema": {"type": "object"}}
    assert definition("prompts", name="a") == {"name": "a"}


@pytest.mark.parametrize(("era", "there"), [("legacy", True), ("modern", False)])
def test_execution_is_told_where_it_means_something(era: Era, there: bool) -> None:
    assert ("execution" in definition(era=era, name="a", execution={"taskSupport": "forbidden"})) is there


def test_what_is_null_is_left_out_where_it_may_not_be() -> None:
    schema = {"type": "object", "properties": {"a": {"default": None}}}
    annotations = {"title": None, "readOnlyHint": False}
    shown = definition(name="a", title=None, _meta={"own": None}, inputSchema=schema, annotations=annotations)
    assert shown == {
        "name": "a",
        "_meta": {"own": None},
        "inputSchema": schema,
        "annotations": {"readOnlyHint": False},
    }
    arguments = [{"name": "b", "description": None}, {"name": "c", "required": True}]
    shown = definition("prompts", name="a", description=None, arguments=arguments)
    assert shown == {"name": "a", "arguments": [{"name": "b"}, {"name": "c", "required": True}]}


@pytest.mark.parametrize("odd", [[None], "null", {"a": [None]}])
def test_what_is_of_another_shape_stays_the_servers_mistake(odd: Any) -> None:
    shown = definition("prompts", name="a", arguments=odd, annotations=[None])
    assert shown == {"name": "a", "arguments": odd, "annotations": [None]}


def test_a_page_without_a_mistake_stays_the_bytes_it_was() -> None:
    body = b' { "tools" : [ {"name":"a","inputSchema":' + ODD + b'} ], "nextCursor" : "" } '
    assert well_formed.page(body, "tools", "modern") is body


def test_what_is_next_to_a_mistake_keeps_its_bytes() -> None:
    good = b'{"name":"a","inputSchema":' + ODD + b',"x":' + ODD + b"}"
    body = b'{"tools":[' + good + b',{"name":"b"}],"x-own":' + ODD + b"}"
    shown = well_formed.page(body, "tools", "legacy")
    assert shown == b'{"tools":[' + good + b',{"name":"b","inputSchema":{"type":"object"}}],"x-own":' + ODD + b"}"


def test_a_page_has_no_cursor_that_is_null() -> None:
    assert page(kind="resources", nextCursor=None, _meta=None) == {"resources": []}


def test_of_two_definitions_of_one_name_the_first_stays() -> None:
    first, second = {"uri": "a:1", "name": "a"}, {"uri": "a:1", "name": "b"}
    assert page(first, {"uri": "a:2"}, second, kind="resources") == {"resources": [first, {"uri": "a:2"}]}
    assert page({"x": 1}, {"x": 1}, kind="resources") == {"resources": [{"x": 1}, {"x": 1}]}


@pytest.mark.parametrize("body", [b"{}", b'{"tools":7}', b'{"tools":[1]}', b'{"tools":[{"name":"a"},null]}', b"[]"])
def test_what_cannot_be_read_is_passed_on(body: bytes) -> None:
    assert well_formed.page(body, "tools", "legacy") is body
