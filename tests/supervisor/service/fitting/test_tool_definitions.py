"""Definitions of tools for clients of every revision."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.protocol.agreement.versions import LEGACY_VERSIONS, MODERN_VERSIONS
from actors.protocol.definitions import ENTRIES, Unfit
from supervisor.service.fitting.tool_definitions import fit, fit_page, is_projected
from tests.fakes.json_texts import OBJECTS, VALUES, arrays, members, objects

VERSIONS = (*LEGACY_VERSIONS, *MODERN_VERSIONS)
INPUT = {"type": "object"}
OBJECT = {"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {}}}
ARRAY = {"type": "array", "items": {}}


def shown(definition: Any, version: str) -> Any:
    raw = msgspec.Raw(json.dumps(definition).encode())
    result = fit(raw, "tools", version)
    assert (json.loads(bytes(result)) == definition) == (result is raw)
    return json.loads(bytes(result))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_schema_of_results_is_told_where_there_are_structured_ones(version: str) -> None:
    own = {"name": "t", "inputSchema": INPUT, "outputSchema": OBJECT}
    assert ("outputSchema" in shown(own, version)) == (version >= "2025-06-18")
    other = shown({**own, "outputSchema": ARRAY}, version).get("outputSchema")
    if version in ("2025-06-18", "2025-11-25"):
        assert other == {"type": "object", "properties": {"result": ARRAY}, "required": ["result"]}
    else:
        assert other == (ARRAY if version in MODERN_VERSIONS else None)


def test_what_cannot_be_put_into_an_object_is_left_out_and_its_results_are_not_wrapped() -> None:
    tool = {"name": "t", "inputSchema": INPUT, "outputSchema": {"$recursiveRef": "#"}}
    assert "outputSchema" not in shown(tool, "2025-11-25")
    assert not is_projected(msgspec.Raw(json.dumps(tool).encode()), "2025-11-25")
    assert shown(tool, "2026-07-28") == tool


def test_results_are_wrapped_by_the_schema_that_is_shown_not_by_the_one_that_was_written() -> None:
    odds: list[tuple[Any, bool]] = [("x", False), ([], True), ({"type": "Object"}, False), ({"type": "Array"}, True)]
    for odd, wrapped in odds:
        tool = {"name": "t", "inputSchema": INPUT, "outputSchema": odd}
        assert is_projected(msgspec.Raw(json.dumps(tool).encode()), "2025-11-25") is wrapped
        assert ("result" in shown(tool, "2025-11-25").get("outputSchema", {}).get("properties", {})) is wrapped


def test_what_is_no_list_is_passed_and_what_is_no_entry_is_left_out() -> None:
    for odd in (b"5", b'["outputSchema"]', b'"x"', b'{"outputSchema":null}'):
        assert not is_projected(msgspec.Raw(odd), "2025-11-25")
    for page in (b"5", b'{"tools":5}', b"{}", b"["):
        assert fit_page(page, "tools", "2024-11-05") is page
    for page in (
        b'{"tools":null}',
        b'{"tools":[5]}',
        b'{"tools":[null, {}]}',
        b'{"tools":[{"name":"a","inputSchema":5}]}',
    ):
        assert fit_page(page, "tools", "2024-11-05") == b'{"tools":[]}'


@pytest.mark.parametrize("cursor", [None, 5, ["x"], {}])
def test_a_page_has_no_cursor_that_is_no_text(cursor: Any) -> None:
    page = json.dumps({"resources": [], "nextCursor": cursor, "_meta": None, "x": 1}).encode()
    assert json.loads(fit_page(page, "resources", "2025-06-18")) == {"resources": [], "x": 1}


def test_of_two_definitions_of_one_name_the_first_stays() -> None:
    first, second, other = ({"uri": f"a:{n}", "name": name} for n, name in ((1, "a"), (1, "b"), (2, "a")))
    page = json.dumps({"resources": [first, other, second]}).encode()
    assert json.loads(fit_page(page, "resources", "2026-07-28")) == {"resources": [first, other]}


def test_a_page_with_nothing_to_change_keeps_its_bytes() -> None:
    page = b'{ "tools" : [ {"inputSchema":{"type":"object"}, "name" : "a" } ], "x":1.0}'
    assert fit_page(page, "tools", "2025-11-25") is page
    prompts = b'{"prompts":[{"name":"a","outputSchema":5}],"nextCursor":""}'
    assert fit_page(prompts, "prompts", "2024-11-05") is prompts


def test_what_is_beside_a_tool_that_is_changed_keeps_its_bytes() -> None:
    tool = b'{"name":"a","inputSchema":{ "type":"object"},"x":1e5'
    page = b'{"nextCursor":"1","tools":[' + tool + b'},{"name":"b","inputSchema":{}},' + tool.replace(b'"a"', b'"c"')
    changed = fit_page(page + b',"execution":{}}],"x":1.0}', "tools", "2025-06-18")
    assert changed == page.replace(b"{}", b'{"type":"object"}') + b'}],"x":1.0}'


SCHEMAS = st.one_of(objects(VALUES, type=st.sampled_from(['"object"', '"array"', '["object"]']), items=VALUES), VALUES)
TOOLS = objects(
    VALUES, name=st.just('"a"'), inputSchema=SCHEMAS, outputSchema=SCHEMAS, execution=OBJECTS, _meta=OBJECTS
)


@given(TOOLS, st.sampled_from(VERSIONS))
def test_every_definition_becomes_one_that_its_client_takes_and_keeps_the_rest(text: str, version: str) -> None:
    definition = msgspec.Raw(text.encode())
    try:
        result = fit(definition, "tools", version)
    except Unfit:
        return
    before, after = members(text.encode()), members(bytes(result))
    entry = ENTRIES["modern" if version in MODERN_VERSIONS else "legacy"]["tools"]
    msgspec.json.decode(result, type=entry)
    for name in before.keys() - {field.encode_name for field in msgspec.structs.fields(entry)}:
        assert after[name] == before[name]
    if is_projected(definition, version):
        assert dict(after["outputSchema"])["required"] == ["result"]
    assert fit(result, "tools", version) is result


@given(objects(VALUES, tools=st.one_of(arrays(TOOLS), VALUES)), st.sampled_from(VERSIONS))
def test_every_page_keeps_what_is_not_its_tools(text: str, version: str) -> None:
    before, after = members(text.encode()), members(fit_page(text.encode(), "tools", version))
    assert {**before, "tools": 0} == {**after, "tools": 0}
