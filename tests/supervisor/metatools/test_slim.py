"""Schemas in short accept the same as whole ones, and say less."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from jsonschema.validators import validator_for

from actors.catalogue.offer import Tool
from supervisor.metatools import schemas
from tests.fakes.instances import Instances
from tests.fakes.nasty_tools import SHAPES
from tests.fakes.published import validator


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value, separators=(",", ":")).encode())


@pytest.mark.parametrize("shape", SHAPES)
def test_a_slim_schema_accepts_what_the_whole_accepts_and_says_less(shape: str) -> None:
    whole = schemas.complete(Tool(name="t", input_schema=raw(SHAPES[shape])))
    slim = schemas.slim(whole)
    validator_for(slim).check_schema(slim)
    assert slim.get("properties", {}).keys() == SHAPES[shape].get("properties", {}).keys()
    for everything in (False, True):
        for source in (slim, SHAPES[shape]):
            made = Instances(source, everything=everything).make()
            assert list(validator(SHAPES[shape]).iter_errors(made)) == []
            assert list(validator(slim).iter_errors(made)) == []
    assert len(json.dumps(slim)) <= len(json.dumps(SHAPES[shape])) * 1.5


def test_a_slim_schema_has_short_descriptions_and_no_remarks() -> None:
    slim = schemas.slim(raw(SHAPES["wordy"]))
    for name, schema in slim["properties"].items():
        assert schema == {
            "type": "string",
            "description": f"Parameter {name[1:]}. It is described at length, as generated documentation does.",
        }
    assert schemas.slim(msgspec.Raw(b"broken")) == msgspec.Raw(b"broken")
