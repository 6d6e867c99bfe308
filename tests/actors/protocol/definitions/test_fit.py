"""Entries of lists in every wrong shape become what the protocol has, or nothing; right ones stay as they were."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import msgspec
import pytest
from jsonschema import Draft7Validator, Draft202012Validator

from actors.protocol.agreement.versions import Era
from actors.protocol.definitions import ENTRIES, MAX_FAULTS, Unfit, fit, is_ecmascript
from actors.protocol.listing import METHODS, Kind
from tests.fakes.misshapen import RIGHT, SCHEMA, misshapen

ERAS: tuple[Era, ...] = ("legacy", "modern")
METASCHEMA = Draft202012Validator(Draft202012Validator.META_SCHEMA)
DRAFT_7 = Draft7Validator(Draft7Validator.META_SCHEMA)
OBJECT = {"type": "object"}
each_kind = pytest.mark.parametrize("kind", METHODS)
each_era = pytest.mark.parametrize("era", ERAS)


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value).encode())


def made(entry: Any, kind: Kind = "tools", era: Era = "modern") -> Any:
    return json.loads(bytes(fit(raw(entry), kind, era).definition))


def arguments(schema: Any, era: Era = "modern") -> Any:
    return made({"name": "a", "inputSchema": schema}, "tools", era)["inputSchema"]


def parameter(schema: Any) -> Any:
    """What becomes of a schema inside of another one."""
    return arguments({"type": "object", "properties": {"p": schema}})["properties"]["p"]


@each_era
@each_kind
def test_a_right_entry_stays_the_bytes_it_was(kind: Kind, era: Era) -> None:
    text = msgspec.Raw(json.dumps({**RIGHT[kind], "x-own": [None, 1.0]}, indent=3).encode())
    assert fit(text, kind, era).definition is text
    assert fit(text, kind, era).faults == ()


@each_era
@each_kind
def test_an_entry_that_is_wrong_anywhere_becomes_one_that_is_right_or_nothing(kind: Kind, era: Era) -> None:
    reasons = []
    for entry in misshapen(kind):
        try:
            fitted = fit(raw(entry), kind, era)
        except Unfit as reason:
            reasons.append(str(reason))
            continue
        msgspec.json.decode(fitted.definition, type=ENTRIES[era][kind])
        assert len(fitted.faults) <= MAX_FAULTS + 1
        assert fit(fitted.definition, kind, era) == fitted.__class__(fitted.definition)
        shown = json.loads(bytes(fitted.definition))
        for schema in (shown.get("inputSchema"), shown.get("outputSchema")):
            assert schema in (None, SCHEMA) or METASCHEMA.is_valid(schema) or DRAFT_7.is_valid(schema)
    assert 5 < len(reasons) < (120 if kind == "skills" else 60)
    assert all(0 < len(reason) < 200 for reason in reasons)


@pytest.mark.parametrize("absent", [{}, {"inputSchema": None}, {"inputSchema": {}}, {"inputSchema": []}])
@each_era
def test_a_tool_that_tells_no_schema_takes_any_object(absent: dict[str, Any], era: Era) -> None:
    assert made({"name": "a", **absent}, "tools", era) == {"name": "a", "inputSchema": OBJECT}


@pytest.mark.parametrize(
    "kind",
    [
        "Object",
        " OBJECT ",
        "dict",
        ["object"],
        ["object", "null"],
        ["null", "object"],
        "array",
        "wat",
        ["string"],
        None,
    ],
)
def test_arguments_are_an_object_whatever_the_schema_calls_it(kind: Any) -> None:
    assert arguments({"type": kind}) == OBJECT


@pytest.mark.parametrize("schema", ["x", 5, ["a"]])
def test_a_tool_whose_arguments_can_be_no_object_is_nothing(schema: Any) -> None:
    with pytest.raises(Unfit, match="inputSchema is "):
        arguments(schema)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({"type": "int"}, {"type": "integer"}),
        ({"type": "STRING"}, {"type": "string"}),
        ({"type": ["str", "None"]}, {"type": ["string", "null"]}),
        ({"type": "date", "description": "n"}, {"description": "n"}),
        ({"type": ["date", "null"]}, {}),
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ({"maximum": 9, "exclusiveMaximum": False}, {"maximum": 9}),
        ({"exclusiveMinimum": True}, {}),
        ({"type": "string", "required": True}, {"type": "string"}),
        ({"enum": None, "format": None, "description": None}, {}),
        ({"anyOf": [], "enum": []}, {}),
        ({"required": "a", "enum": "a"}, {}),
        ({"items": None, "not": {"type": "wat"}}, {"not": {}}),
        ({"anyOf": [{"type": "string"}, None]}, {}),
        ({"anyOf": [{"type": "date"}, {"type": "null"}]}, {"anyOf": [{}, {"type": "null"}]}),
        (
            {"properties": {"a": "string", "b": None, "c": 5}},
            {"properties": {"a": {"type": "string"}, "b": {}, "c": {}}},
        ),
        ({"minLength": "3", "uniqueItems": "true"}, {"minLength": 3, "uniqueItems": True}),
        ({"default": {"type": "any", "required": True}, "type": "any"}, {"default": {"type": "any", "required": True}}),
        (True, True),
        (None, {}),
        ("number", {"type": "number"}),
    ],
)
def test_a_schema_that_no_metaschema_accepts_becomes_one_that_allows_as_much(written: Any, meant: Any) -> None:
    assert parameter(written) == meant


def test_a_schema_of_draft_4_that_is_put_right_is_no_longer_called_so() -> None:
    declared = {"$schema": "http://json-schema.org/draft-04/schema#", "type": "object"}
    assert arguments(declared) == declared
    assert arguments({**declared, "minimum": 1, "exclusiveMinimum": True}) == {**OBJECT, "exclusiveMinimum": 1}


def test_a_boolean_property_is_told_to_older_clients_as_the_object_that_means_the_same() -> None:
    properties = {"any": True, "none": False, "own": {"properties": {"a": True}}}
    schema = {"type": "object", "properties": properties}
    assert arguments(schema) == schema
    assert arguments(schema, "legacy")["properties"] == {**properties, "any": {}, "none": {"not": {}}}


@pytest.mark.parametrize(
    ("kind", "written", "meant"),
    [
        ("tools", {"annotations": {"readOnlyHint": "true", "title": 5}}, {"annotations": {"readOnlyHint": True}}),
        ("tools", {"execution": {"taskSupport": "Optional"}}, {"execution": {"taskSupport": "optional"}}),
        ("tools", {"execution": {"taskSupport": "maybe"}}, {"execution": {}}),
        (
            "tools",
            {"icons": [{"src": "a", "sizes": "any"}, {"sizes": []}]},
            {"icons": [{"src": "a", "sizes": ["any"]}]},
        ),
        ("tools", {"title": 5, "_meta": "x", "icons": "x", "annotations": "x"}, {}),
        (
            "resources",
            {"size": "12", "annotations": {"audience": "user"}},
            {"size": 12, "annotations": {"audience": ["user"]}},
        ),
        ("resources", {"size": "much", "annotations": {"priority": 2, "lastModified": "today"}}, {"annotations": {}}),
        ("prompts", {"arguments": {"a": {}}}, {}),
        (
            "prompts",
            {"arguments": [{"name": "a", "required": "false"}, {}]},
            {"arguments": [{"name": "a", "required": False}]},
        ),
    ],
)
def test_what_is_meant_is_put_right_and_what_is_not_clear_is_left_out(kind: Kind, written: Any, meant: Any) -> None:
    bare: dict[str, dict[str, Any]] = {
        "tools": {"name": "a", "inputSchema": OBJECT},
        "resources": {"uri": "a:b", "name": "a"},
        "prompts": {"name": "a"},
    }
    fitted = fit(raw({**bare[kind], **written}), kind, "modern")
    assert json.loads(bytes(fitted.definition)) == {**bare[kind], **meant}
    assert len(fitted.faults) > 0


def test_a_resource_without_a_name_is_called_as_it_is_told_from_others() -> None:
    assert made({"uri": "a:b"}, "resources") == {"uri": "a:b", "name": "a:b"}
    assert made({"uriTemplate": "a:{b}", "title": "B", "name": 5}, "templates")["name"] == "B"


def test_what_is_wrong_is_told_in_ascii_of_a_bounded_length_and_absences_are_not() -> None:
    entry = {
        "name": "a",
        "title": None,
        "annotations": {"title": "\x1b[2J" * 99},
        "icons": "\u202e" * 99,
        "inputSchema": {},
    }
    told = fit(raw(entry), "tools", "modern").faults
    assert len(told) == 1
    assert told[0].startswith("icons: ")
    assert told[0].isascii()
    assert len(told[0]) < 100
    many = {"name": "a", "inputSchema": {"type": "object", "properties": {f"p{number}": 5 for number in range(99)}}}
    assert fit(raw(many), "tools", "modern").faults[MAX_FAULTS:] == (f"and {99 - MAX_FAULTS} more",)


def test_what_stands_beside_a_fault_keeps_its_bytes() -> None:
    odd = b'{ "n" : 1.0, "big":123456789012345678901234567890, "exponent":1e5 }'
    text = b'{"name":"a","title":5,"inputSchema":{"type":"object","default":' + odd + b'},"x":' + odd + b"}"
    assert bytes(fit(msgspec.Raw(text), "tools", "modern").definition) == text.replace(b'"title":5,', b"")


def test_a_fault_at_any_depth_ends_in_a_definition_that_is_right() -> None:
    for depth in (1, 20, 40, 120):
        schema: Any = {"type": "int"}
        for _ in range(depth):
            schema = {"properties": {"p": schema}}
        assert METASCHEMA.is_valid(arguments({"type": "object", **schema}))


@pytest.mark.parametrize(
    ("written", "compiled"),
    [
        ({"$ref": "#/$defs/none"}, {}),
        ({"$ref": "https://example.com/schema.json"}, {}),
        ({"$ref": "#/$defs/some"}, {"$ref": "#/$defs/some"}),
        ({"$ref": "#"}, {"$ref": "#"}),
        ({"$ref": "#here"}, {"$ref": "#here"}),
        ({"pattern": "(?P<year>\\d+)"}, {}),
        ({"pattern": "^[\\w\\-]+$"}, {"pattern": "^[\\w\\-]+$"}),
        ({"patternProperties": {"(?i)x": {}, "a": {}}, "additionalProperties": False}, {}),
        ({"id": "old", "nullable": True, "formatMaximum": "x"}, {}),
        ({"type": "string", "nullable": True, "properties": {"id": {}}}, None),
        ({"const": {"$ref": "x", "id": 5}}, None),
    ],
)
def test_a_schema_of_results_is_one_that_can_be_compiled(written: Any, compiled: Any) -> None:
    def results(schema: Any) -> Any:
        return {**OBJECT, "properties": {"p": schema}, "$defs": {"some": {"$anchor": "here"}}}

    entry = {"name": "a", "inputSchema": results(written), "outputSchema": results(written)}
    fitted = made(entry)
    assert fitted["inputSchema"] == entry["inputSchema"]
    assert fitted["outputSchema"] == (entry["outputSchema"] if compiled is None else results(compiled))


@pytest.mark.parametrize(
    ("pattern", "known"),
    [
        *(
            (each, True)
            for each in ("", "^a.*b+?$", "[^\\]\\-x]{2,3}", "(?:a|b)(?=c)(?<!d)", "\\p{L}\\u00e9", "(?<y>a)", "[a(]")
        ),
        *(
            (each, False)
            for each in ("(?i)a", "(?P<y>a)", "\\Z", "\\_", "a{,3}", "a++", "}", "]", "(", "[z-a]", "*", "a" * 3000)
        ),
    ],
)
def test_a_pattern_is_kept_where_it_surely_is_one_of_ecmascript(pattern: str, known: bool) -> None:
    assert is_ecmascript(pattern) is known


IN_THREADS = """
import sys
import threading
import msgspec
from actors.protocol.definitions import ENTRIES, Unfit, fit

def read(kinds):
    together.wait()
    for kind in kinds:
        try:
            fit(entry, kind, era)
        except Unfit:
            pass

entry = msgspec.Raw(b'{"name":"n","uri":"u:","inputSchema":{"properties":{"a":{"type":"Object"}}},"icons":[3]}')
sys.setswitchinterval(1e-6)
for era, entries in ENTRIES.items():
    together = threading.Barrier(6)
    threads = [threading.Thread(target=read, args=([*entries][:: 1 - 2 * (number % 2)],)) for number in range(6)]
    [each.start() for each in threads]
    [each.join() for each in threads]
"""


def test_the_lists_of_servers_that_start_together_are_read_in_threads_from_the_first_one_on() -> None:
    read = subprocess.run([sys.executable, "-c", IN_THREADS], capture_output=True, text=True)
    assert (read.returncode, read.stderr) == (0, "")
