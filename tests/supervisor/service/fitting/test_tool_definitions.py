"""Definitions of tools for clients of every revision."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.protocol.agreement.versions import LEGACY_VERSIONS, MODERN_VERSIONS
from supervisor.service.fitting.tool_definitions import fit, fit_page, is_projected, wrap
from tests.fakes.json_texts import OBJECTS, VALUES, arrays, members, objects, read

VERSIONS = (*LEGACY_VERSIONS, *MODERN_VERSIONS)
INPUT = {"type": "object"}
OBJECT = {"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}}
ARRAY = {"type": "array", "items": {}}


def fit_text(definition: msgspec.Raw, version: str) -> msgspec.Raw:
    members = msgspec.json.decode(definition, type=dict[str, msgspec.Raw])
    fitted = fit(members, "tools", version)
    return definition if fitted is members else msgspec.Raw(msgspec.json.encode(fitted))


def shown(definition: Any, version: str) -> Any:
    raw = msgspec.Raw(json.dumps(definition).encode())
    result = fit_text(raw, version)
    assert (json.loads(bytes(result)) == definition) == (result is raw)
    return json.loads(bytes(result))


@pytest.mark.parametrize("version", VERSIONS)
def test_execution_is_told_in_the_revision_that_has_it(version: str) -> None:
    tool = {"name": "t", "inputSchema": INPUT, "execution": {"taskSupport": "forbidden"}, "x": 1.0}
    assert ("execution" in shown(tool, version)) == (version == "2025-11-25")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_schema_of_results_is_told_where_there_are_structured_ones(version: str) -> None:
    own = {"name": "t", "inputSchema": INPUT, "outputSchema": OBJECT}
    assert ("outputSchema" in shown(own, version)) == (version >= "2025-06-18")
    other = shown({**own, "outputSchema": ARRAY}, version).get("outputSchema")
    if version in ("2025-06-18", "2025-11-25"):
        assert other == {"type": "object", "properties": {"result": ARRAY}, "required": ["result"]}
    else:
        assert other == (ARRAY if version in MODERN_VERSIONS else None)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_schema_of_arguments_without_a_type_gets_the_one_that_is_required(version: str) -> None:
    properties = {"a": {"type": "string"}}
    assert shown({"inputSchema": {"properties": properties}, "name": "t"}, version) == {
        "inputSchema": {"type": "object", "properties": properties},
        "name": "t",
    }
    odds: list[Any] = [{"type": "array"}, True, []]
    for odd in odds:
        tool = {"name": "t", "inputSchema": odd}
        assert shown(tool, version) == tool


@pytest.mark.parametrize("version", VERSIONS)
def test_a_tool_without_a_schema_of_arguments_takes_anything(version: str) -> None:
    assert shown({"name": "t"}, version) == {"name": "t", "inputSchema": {"type": "object"}}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_property_that_is_a_boolean_is_the_object_that_means_the_same(version: str) -> None:
    properties = {"any": True, "none": False, "own": {"default": True, "properties": {"a": True}}}
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    meant = {**schema, "properties": {**properties, "any": {}, "none": {"not": {}}}}
    tool = shown({"name": "t", "inputSchema": schema, "outputSchema": schema}, version)
    assert tool["inputSchema"] == (schema if version in MODERN_VERSIONS else meant)
    if version >= "2025-06-18":
        assert tool["outputSchema"] == tool["inputSchema"]
    untyped = shown({"name": "t", "inputSchema": {"properties": properties}}, version)["inputSchema"]
    assert untyped == {"type": "object", "properties": tool["inputSchema"]["properties"]}
    for odd in ({"a": {"default": True}}, ["x", {"a": True}]):
        kept = {"name": "t", "inputSchema": {"type": "object", "properties": odd}}
        assert shown(kept, version) == kept


def test_what_cannot_be_put_into_an_object_is_left_out_and_its_results_are_not_wrapped() -> None:
    odds: list[Any] = [True, [], {"$recursiveRef": "#"}]
    for odd in odds:
        tool = {"name": "t", "inputSchema": INPUT, "outputSchema": odd}
        assert "outputSchema" not in shown(tool, "2025-11-25")
        assert not is_projected(msgspec.Raw(json.dumps(tool).encode()), "2025-11-25")
        assert shown(tool, "2026-07-28") == tool


def test_what_is_no_definition_is_passed() -> None:
    for odd in (b"5", b'["outputSchema"]', b'"x"', b'{"outputSchema":null}'):
        assert not is_projected(msgspec.Raw(odd), "2025-11-25")
    for page in (b"5", b'{"tools":5}', b"{}", b'{"tools":[5]}', b'{"tools":[null]}', b"["):
        assert fit_page(page, "tools", "2024-11-05") is page


def test_a_page_with_nothing_to_change_keeps_its_bytes() -> None:
    page = b'{ "tools" : [ {"inputSchema":{"type":"object"}, "name" : "a" } ], "x":1.0}'
    assert fit_page(page, "tools", "2025-11-25") is page
    prompts = b'{"prompts":[{"name":"a","outputSchema":5}]}'
    assert fit_page(prompts, "prompts", "2024-11-05") is prompts


def test_what_is_beside_a_tool_that_is_changed_keeps_its_bytes() -> None:
    tool = b'{"name":"a","inputSchema":{ "type":"object"},"x":1e5'
    page = b'{"nextCursor":"1","tools":[' + tool + b'},{"name":"b","inputSchema":{}},' + tool.replace(b"a", b"c", 2)
    changed = fit_page(page + b',"execution":{}}],"x":1.0}', "tools", "2025-06-18")
    assert changed == page.replace(b"{}", b'{"type":"object"}') + b'}],"x":1.0}'


SCHEMAS = st.one_of(objects(VALUES, type=st.sampled_from(['"object"', '"array"', '["object"]']), items=VALUES), VALUES)
TOOLS = objects(VALUES, inputSchema=SCHEMAS, outputSchema=SCHEMAS, execution=OBJECTS, _meta=OBJECTS)


def without_nulls(pairs: Any) -> list[Any]:
    return [pair for pair in pairs if pair[1] is not None]


@given(TOOLS, st.sampled_from(VERSIONS))
def test_every_definition_stays_whole_but_for_what_its_client_cannot_take(text: str, version: str) -> None:
    definition = msgspec.Raw(text.encode())
    result = bytes(fit_text(definition, version))
    before, after = dict(without_nulls(read(text.encode()))), members(result)
    gone = {"execution", "outputSchema"} - after.keys()
    kept = [name for name in before if name not in gone | {"inputSchema"}]
    assert [name for name, _ in read(result) if name != "inputSchema"] == kept
    for name in after.keys() - {"inputSchema", "outputSchema"}:
        assert after[name] == before[name]
    arguments = before.get("inputSchema", ())
    if after["inputSchema"] != arguments:
        own = [pair for pair in arguments if pair[0] not in ("type", "properties")]
        assert [pair for pair in after["inputSchema"] if pair[0] not in ("type", "properties")] == own
    if is_projected(definition, version):
        assert dict(after["outputSchema"])["required"] == ["result"]
    assert bytes(fit_text(msgspec.Raw(result), version)) == result


@given(objects(VALUES, tools=st.one_of(arrays(TOOLS), VALUES)), st.sampled_from(VERSIONS))
def test_every_page_stays_whole_but_for_its_tools(text: str, version: str) -> None:
    before, after = read(text.encode()), read(fit_page(text.encode(), "tools", version))
    if after != before:
        assert [name for name, _ in after] == [name for name, _ in without_nulls(before)]
        assert [pair for pair in after if pair[0] != "tools"] == [
            pair for pair in without_nulls(before) if pair[0] != "tools"
        ]


@given(OBJECTS)
def test_an_output_schema_of_any_shape_is_kept_whole_inside(text: str) -> None:
    outer = wrap(msgspec.Raw(text.encode()))
    assert outer is not None
    inner = [name for name, _ in dict(members(bytes(outer))["properties"])["result"]]
    assert inner == [name for name in members(text.encode()) if name != "$schema"]
