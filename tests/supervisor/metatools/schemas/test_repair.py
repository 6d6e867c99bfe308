"""Schemas that are no JSON Schema are shown as one; all others as they are; short ones accept the same."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from jsonschema.validators import validator_for

from actors.catalogue.offer import Tool
from supervisor.metatools.schemas import rendering
from supervisor.metatools.schemas.repair import repair
from tests.fakes.instances import Instances
from tests.fakes.nasty_tools import SHAPES
from tests.fakes.published import validator


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value, separators=(",", ":")).encode())


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ({"maximum": 9, "exclusiveMaximum": False}, {"maximum": 9}),
        ({"exclusiveMinimum": True}, {}),
        ({"type": "any"}, {}),
        ({"type": "int", "description": "n"}, {"description": "n"}),
        ({"type": ""}, {}),
        ({"type": "string", "required": True}, {"type": "string"}),
        ({"type": "string", "enum": None, "format": None, "description": None}, {"type": "string"}),
        ({"anyOf": [], "type": "string"}, {"type": "string"}),
        ({"type": ["date", "null"], "items": {"type": "any"}}, {"type": ["date", "null"]}),
        ({"type": "array", "items": None}, {"type": "array"}),
        ({"type": "any", "items": True, "not": {"type": "int"}}, {"items": True, "not": {}}),
        ({"anyOf": [{"type": "date"}, {"type": "null"}]}, {"anyOf": [{}, {"type": "null"}]}),
    ],
)
def test_what_is_wrong_is_left_out(written: Any, expected: Any) -> None:
    schema = {"type": "object", "properties": {"p": written, "type": {"type": "string"}}, "required": ["p"]}
    found = json.loads(bytes(repair(raw(schema))))
    if written.get("type") == ["date", "null"]:
        expected = {"items": {}}
    assert found == {**schema, "properties": {"p": expected, "type": {"type": "string"}}}
    validator_for(found).check_schema(found)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_valid_schema_keeps_its_meaning(shape: str) -> None:
    text = raw(SHAPES[shape])
    assert json.loads(bytes(repair(text))) == SHAPES[shape]


def test_data_that_looks_wrong_stays() -> None:
    schema = {"type": "object", "default": {"type": "any", "required": True}, "properties": {"p": {"type": "any"}}}
    assert json.loads(bytes(repair(raw(schema)))) == {**schema, "properties": {"p": {}}}


@pytest.mark.parametrize("text", [b'{"type":"any"', b'{"type":"any","x":' + b"[" * 3000 + b"]" * 3000 + b"}"])
def test_what_cannot_be_read_stays_as_it_is(text: bytes) -> None:
    assert bytes(repair(msgspec.Raw(text))) == text


@pytest.mark.parametrize("shape", SHAPES)
def test_a_slim_schema_accepts_what_the_whole_accepts_and_says_less(shape: str) -> None:
    whole = rendering.complete(Tool(name="t", input_schema=raw(SHAPES[shape])))
    slim = rendering.slim(whole)
    validator_for(slim).check_schema(slim)
    assert slim.get("properties", {}).keys() == SHAPES[shape].get("properties", {}).keys()
    for everything in (False, True):
        for source in (slim, SHAPES[shape]):
            made = Instances(source, everything=everything).make()
            assert list(validator(SHAPES[shape]).iter_errors(made)) == []
            assert list(validator(slim).iter_errors(made)) == []
    assert len(json.dumps(slim)) <= len(json.dumps(SHAPES[shape])) * 1.5


def test_a_slim_schema_has_short_descriptions_and_no_remarks() -> None:
    slim = rendering.slim(raw(SHAPES["wordy"]))
    for name, schema in slim["properties"].items():
        assert schema == {
            "type": "string",
            "description": f"Parameter {name[1:]}. It is described at length, as generated documentation does.",
        }
    assert rendering.slim(msgspec.Raw(b"broken")) == msgspec.Raw(b"broken")
