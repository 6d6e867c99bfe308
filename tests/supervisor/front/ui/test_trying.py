"""A form for a tool's arguments, made of whatever schema a server has; what was typed becomes what the tool takes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.catalogue.offer import Tool
from actors.protocol.wire.jsonrpc import encode
from supervisor.front.ui.trying import MAX_FIELDS, arguments, fields_of, format_schema, make_visible

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


def tool(schema: Any) -> Tool:
    return Tool(name="t", input_schema=msgspec.Raw(encode(schema)), required=("count",))


@given(JSON | st.fixed_dictionaries({"properties": JSON, "required": JSON, "type": JSON}))
def test_any_schema_has_a_form_or_none(schema: Any) -> None:
    fields = fields_of(tool(schema))
    assert len(fields) <= MAX_FIELDS
    assert {field.type for field in fields} <= {"string", "number", "integer", "boolean", "object", "array", "any"}
    assert format_schema(tool(schema).input_schema)


PROPERTIES = {
    "text": {"type": "string"},
    "count": {"type": "integer", "description": "how many"},
    "agree": {"type": "boolean"},
    "list": {"type": "array"},
    "any": {},
    "one": {"type": "string", "enum": ["a", 1]},
}


def test_fields_say_what_they_take() -> None:
    fields = {field.name: field for field in fields_of(tool({"properties": PROPERTIES, "required": ["count"]}))}
    assert fields["count"].required
    assert fields["count"].description == "how many"
    assert fields["agree"].choices == ["true", "false"]
    assert fields["one"].choices == ["a", "1"]
    assert fields["any"].type == "any"


@pytest.mark.parametrize(
    ("typed", "taken"),
    [
        ({"text": "5"}, {"text": "5"}),
        ({"count": "5", "agree": "true"}, {"count": 5, "agree": True}),
        ({"list": '["a"]', "any": "{}"}, {"list": ["a"], "any": {}}),
        ({"count": "five"}, {"count": "five"}),
        ({"text": "", "unknown": "x"}, {"unknown": "x"}),
    ],
)
def test_what_is_typed_is_what_the_tool_takes(typed: dict[str, str], taken: dict[str, Any]) -> None:
    assert arguments(tool({"properties": PROPERTIES}), typed) == taken


@given(st.text())
def test_what_is_shown_hides_nothing(written: str) -> None:
    assert all(line.isprintable() for line in make_visible(written).split("\n"))
