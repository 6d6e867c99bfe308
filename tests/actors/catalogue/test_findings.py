"""Every rule about malformed, misleading or hidden text, each with what breaks it and what does not."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.catalogue.findings import (
    MAX_SCHEMA_DEPTH,
    description_findings,
    duplicates,
    name_findings,
    quote,
    schema_findings,
    skeleton,
    text_findings,
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("read_file", []),
        ("readFile2-x", []),
        ("a" * 64, []),
        ("a" * 65, ["name-length"]),
        ("", ["name-characters"]),
        ("two words", ["name-characters"]),
        ("a/b", ["name-characters"]),
        ("cr\u00e9er", ["name-characters"]),
        ("\u8bfb\u53d6", ["name-characters"]),
        ("2fast", ["name-start"]),
        ("_hidden", ["name-start"]),
        ("a.b", ["name-start"]),
        ("Execute", ["name-reserved"]),
        ("config", ["name-reserved"]),
        ("re\u0430d", ["name-characters", "name-confusable"]),  # a Cyrillic a
        ("\u0441\u043e\u0440\u0443", ["name-characters", "name-confusable"]),  # all Cyrillic, reads "copy"
        ("\u0434\u0430\u0442\u0430", ["name-characters"]),  # a Russian word
        ("\uff52ead", ["name-characters", "name-confusable"]),  # a wide r
        ("\u03bfpen", ["name-characters", "name-confusable"]),  # a Greek o
    ],
)
def test_names_are_judged(name: str, expected: list[str]) -> None:
    assert [finding.code for finding in name_findings(name)] == expected


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ("Reads the file.", []),
        ("x" * 10 + " yes then", []),
        ("", ["description-empty"]),
        ("   \n ", ["description-empty"]),
        ("Reads it.", ["description-short", "description-words"]),
        ("Reads of it in a go.", ["description-words"]),
        ("one two 1234567890", ["description-words"]),
        ("\u8bfb\u53d6\u6587\u4ef6\u7684\u5168\u90e8\u5185\u5bb9\u3002", []),  # no spaces between words
        ("word " * 100, []),
        ("word " * 101, ["description-long"]),
    ],
)
def test_descriptions_are_judged(description: str, expected: list[str]) -> None:
    assert [finding.code for finding in description_findings(description)] == expected


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(depth - 1):
        schema = {"type": "object", "items": schema}
    return schema


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "object"}, []),
        ({"type": "object", "properties": {"a": True, "b": {"type": "string"}}, "required": ["a"]}, []),
        ({"type": "object", "required": []}, []),
        (None, ["schema-missing"]),
        ({}, ["schema-type"]),
        ({"type": "object", "properties": {}, "required": ["a"]}, ["schema-required"]),
        ({"type": "object", "required": ["a"], "anyOf": [{"properties": {"a": {}}}]}, []),
        ({"type": "object", "required": ["a"], "patternProperties": {"a": {}}}, []),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}}, []),
        ({"type": "object", "properties": {"a": {"$ref": "https://evil.example/a"}}}, ["schema-reference"]),
        ({"type": "object", "allOf": [{"$ref": "other.json"}]}, ["schema-reference"]),
        ({"type": "object", "properties": {"$ref": {"type": "string"}}}, []),
        ({"type": "object", "properties": {"a": {"pattern": "a" * 500}}}, []),
        ({"type": "object", "properties": {"a": {"pattern": "a" * 501}}}, ["schema-pattern"]),
        (nested(MAX_SCHEMA_DEPTH), []),
        (nested(MAX_SCHEMA_DEPTH + 1), ["schema-depth"]),
        (nested(50_000), ["schema-depth"]),
    ],
)
def test_schemas_are_judged(schema: Any, expected: list[str]) -> None:
    assert [finding.code for finding in schema_findings(schema)] == expected


def test_a_required_name_that_is_no_property_is_named() -> None:
    (finding,) = schema_findings({"type": "object", "properties": {"b": {}}, "required": ["a", "b", "\x1b[2J"]})
    assert "'a', '\\x1b[2J'" in finding.message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain text,\twith tabs\r\nand lines", []),
        ("caf\u00e9 \u8bfb\u53d6 \u26a0\ufe0f", []),
        ("\U0001f468\u200d\U0001f469 family", []),  # one emoji made of two
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", []),  # Persian needs its joiner
        ("a\u200db", ["text-hidden"]),
        ("end\u200c", ["text-hidden"]),
        ("a\u200bb", ["text-hidden"]),
        ("\ufeffa", ["text-hidden"]),
        ("a\u202eb", ["text-hidden"]),
        ("a\u2066b", ["text-hidden"]),
        ("a\U000e0041", ["text-hidden"]),  # tag characters spell text nobody sees
        ("a\ufe01b", ["text-hidden"]),
        ("a\U000e0101", ["text-hidden"]),
        ("a\ue000", ["text-hidden"]),
        ("a\ud800", ["text-hidden"]),
        ("a\x1b[31mred", ["text-control"]),
        ("a\x9b31m", ["text-control"]),
        ("a\x00b", ["text-control"]),
        ("a\x7f", ["text-control"]),
        ("a\x08\u200b", ["text-control", "text-hidden"]),
    ],
)
def test_text_that_nobody_sees_is_found(text: str, expected: list[str]) -> None:
    assert [finding.code for finding in text_findings([("the title", "fine"), ("it", text)])] == expected


def test_a_finding_says_which_character_is_where() -> None:
    (finding,) = text_findings([("the title", "a\u200bb\u200b"), ("the description", "\u200b")])
    assert finding.message.endswith("(U+200B in the title)")


def test_twins_differ_in_case_separators_or_look_alikes() -> None:
    assert duplicates(["a_b", "aB", "a-b", "c", "d"]) == {
        "a_b": ["aB", "a-b"],
        "aB": ["a_b", "a-b"],
        "a-b": ["a_b", "aB"],
    }
    assert skeleton("R\u0435ad_\uff26ile") == "readfile"
    assert duplicates(["_", "-"]) == {}


@given(st.text(max_size=200), st.integers(4, 80))
def test_quoted_text_is_bounded_and_printable(text: str, limit: int) -> None:
    literal = quote(text, limit)
    assert literal.isascii()
    assert literal.isprintable()
    assert len(literal) <= limit


def test_ten_thousand_names_that_differ_in_separators_alone_are_told_in_little_room() -> None:
    names = [
        "".join(letter + "_" * (number >> place & 1) for place, letter in enumerate("abcdefghijklmno")) + "p"
        for number in range(10_000)
    ]
    tracemalloc.start()
    try:
        found = duplicates(names)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
    assert found.keys() == set(names)
    assert all(len(others) == 3 and name not in others for name, others in found.items())
