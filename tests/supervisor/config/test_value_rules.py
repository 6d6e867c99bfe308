"""What an entry says of values, which of them it takes, and where none can stand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from supervisor.config import Configuration, ServerConfig, parse
from supervisor.config.expansion import Reference, Value
from supervisor.config.value_rules import MAX_ARGUMENTS, MAX_VALUE_CHARS, ValueRule, place_faults


def read(entry: dict[str, Any]) -> Configuration:
    text = json.dumps({"mcpServers": {"s": entry}}, indent=1)
    return parse(text, Path("/x/mcp.json"), {"REGION": "eu", "DOLLAR": "${user:X}"})


def server(entry: dict[str, Any]) -> ServerConfig:
    configuration = read(entry)
    assert [str(problem) for problem in configuration.problems] == []
    return configuration.servers[0]


def test_places_are_kept_and_the_fields_have_the_defaults() -> None:
    read = server(
        {
            "command": "c",
            "args": ["${REGION}", "--x=${user:X:-$}", "${team:Y}"],
            "env": {"A": "${team:A:-a}", "B": "$${team:B}", "C": "${DOLLAR}"},
            "values": {"Y": {"several": True, "description": "more"}, "// later": {}},
        }
    )
    assert read.args == ("eu", "--x=$", "")
    assert read.env == {"A": "a", "B": "${team:B}", "C": "${user:X}"}
    assert [(text.place, text.parts) for text in read.tiered] == [
        (("args", 1), ("--x=", Reference("user", "X", "$"))),
        (("args", 2), (Reference("team", "Y"),)),
        (("env", "A"), (Reference("team", "A", "a"),)),
    ]
    assert read.values == {"Y": ValueRule(several=True, description="more")}
    assert [text.is_argument for text in read.tiered] == [False, True, False]


@pytest.mark.parametrize(
    ("rule", "value", "words"),
    [
        (ValueRule(), "x", ""),
        (ValueRule(), "", "is not empty"),
        (ValueRule(), ("x",), "is one text"),
        (ValueRule(several=True), "x", "is a list of arguments"),
        (ValueRule(several=True), (), ""),
        (ValueRule(several=True), ("",), ""),
        (ValueRule(several=True), ("x",) * (MAX_ARGUMENTS + 1), "at most 256 arguments"),
        (ValueRule(several=True), ("x" * 40_000,) * 2, "at most 65536 characters"),
        (ValueRule(), "x" * (MAX_VALUE_CHARS + 1), "at most 65536 characters"),
        (ValueRule(), "x" * MAX_VALUE_CHARS, ""),
        (ValueRule(), "a\nb", "of one line"),
        (ValueRule(), "a\rb", "of one line"),
        (ValueRule(), "a\0b", "of one line"),
        (ValueRule(), "a\ud800", "surrogate"),
        (ValueRule(several=True), ("a", "\0"), "of one line"),
        (ValueRule(options=("a", "b")), "c", "is one of a, b"),
        (ValueRule(options=("a", "b")), "b", ""),
        (ValueRule(options=("a", "b"), several=True), ("a", "c"), "is one of a, b"),
    ],
)
def test_a_value_that_is_not_taken_says_why(rule: ValueRule, value: Value, words: str) -> None:
    assert words in rule.fault(value)
    assert bool(rule.fault(value)) == bool(words)


@pytest.mark.parametrize(
    ("rule", "name", "value", "secret"),
    [
        (ValueRule(), "API_TOKEN", (), True),
        (ValueRule(), "HOST", (), False),
        (ValueRule(), "HOST", "ghp_abcdefghijklmnopqrst1234", True),
        (ValueRule(), "HOST", ("a", "ghp_abcdefghijklmnopqrst1234"), True),
        (ValueRule(), "HOST", "a.example", False),
        (ValueRule(secret=False), "API_TOKEN", "ghp_abcdefghijklmnopqrst1234", False),
        (ValueRule(secret=True), "HOST", "a.example", True),
        (ValueRule(hidden=True), "HOST", "a.example", True),
        (ValueRule(hidden=True, secret=False), "HOST", "a.example", False),
    ],
)
def test_a_secret_is_what_is_said_to_be_one_or_looks_like_one(
    rule: ValueRule, name: str, value: Value, secret: bool
) -> None:
    assert rule.is_secret(name, value) is secret


def test_what_an_ordinary_program_is_told_is_its_own_business() -> None:
    assert list(place_faults((), {})) == []
