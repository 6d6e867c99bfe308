"""Arguments that miss a schema by a slip are set right; everything else stays the bytes it was."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.catalogue.offer import Tool
from supervisor.metatools.arguments import ARGUMENT_KEYS
from supervisor.metatools.lenient_json import read
from supervisor.metatools.slips import coerce_arguments

PROPERTIES: dict[str, Any] = {
    "list": {"type": "array"},
    "map": {"type": "object"},
    "count": {"type": "integer"},
    "ratio": {"type": "number"},
    "on": {"type": "boolean"},
    "text": {"type": "string"},
    "either": {"type": ["integer", "string"]},
    "choice": {"type": "integer", "enum": [1, 2]},
    "maybe": {"type": "string", "nullable": True},
    "any": True,
}
SCHEMA = {"type": "object", "properties": PROPERTIES, "required": ["text"]}
TOOL = Tool(name="t", input_schema=msgspec.Raw(json.dumps(SCHEMA).encode()), required=("text",))


def fitted(value: Any, tool: Tool = TOOL) -> Any:
    arguments = coerce_arguments(tool, read(msgspec.Raw(json.dumps(value).encode())), ARGUMENT_KEYS)
    assert arguments == read(arguments.text)
    return json.loads(bytes(arguments.text))


@pytest.mark.parametrize(
    ("name", "written"),
    [
        *(("list", text) for text in ('{"a": 1}', "a, b", "", "[1,")),
        *(("count", text) for text in ("1.5", "five", "true", "1e999", "NaN")),
        *(("on", text) for text in ("yes", "1", "null")),
        *(("text", text) for text in ("5", "[1]", "null", "true")),
        ("either", "5"),
        ("choice", "1"),
        ("any", "5"),
        ("unknown", "5"),
        ("maybe", None),
        ("text", None),
        ("any", None),
    ],
)
def test_what_is_not_plain_stays(name: str, written: Any) -> None:
    assert fitted({name: written}) == {name: written}


@pytest.mark.parametrize("key", ARGUMENT_KEYS)
def test_arguments_inside_a_wrapper_are_taken_out(key: str) -> None:
    assert fitted({key: {"text": "x"}}) == {"text": "x"}
    assert fitted({key: json.dumps({"text": "x", "count": "1"})}) == {"text": "x", "count": 1}
    assert fitted({key: {"text": "x"}, "count": 1}) == {key: {"text": "x"}, "count": 1}
    assert fitted({key: [1]}) == {key: [1]}
    assert fitted({key: "some text"}) == {key: "some text"}


@pytest.mark.parametrize("schema", [b'{"type":"object"}', b'{"properties":5}', b"[]", b"broken", b'{"properties":{}}'])
def test_a_schema_that_says_nothing_changes_nothing(schema: bytes) -> None:
    given = read(msgspec.Raw(b'{ "arguments": {"a": "1"} }'))
    assert coerce_arguments(Tool(name="t", input_schema=msgspec.Raw(schema)), given, ARGUMENT_KEYS) is given


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8), lambda inner: st.lists(inner, max_size=2)
)


@given(st.dictionaries(st.sampled_from([*PROPERTIES, "arguments", "x"]), values, max_size=5))
def test_right_arguments_keep_their_bytes(value: Any) -> None:
    given = read(msgspec.Raw(json.dumps(value).encode()))
    found = coerce_arguments(TOOL, given, ARGUMENT_KEYS)
    assert isinstance(json.loads(bytes(found.text)), dict)
    if value.keys() != {"arguments"} and not any(item is None or isinstance(item, str) for item in value.values()):
        assert found is given


def test_an_object_of_thousands_of_members_passes_as_it_is() -> None:
    given = read(msgspec.Raw(json.dumps({"count": "5", **{f"k{number}": 0 for number in range(2000)}}).encode()))
    assert coerce_arguments(TOOL, given, ARGUMENT_KEYS) is given
