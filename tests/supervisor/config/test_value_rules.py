"""What an entry says of values, which of them it takes, and where none can stand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from supervisor.config import Configuration, ServerConfig, parse
from supervisor.config.expansion import Reference, Value
from supervisor.config.value_rules import MAX_ARGUMENTS, MAX_NAMES, MAX_VALUE_CHARS, ValueRule, place_faults


def read(entry: dict[str, Any]) -> Configuration:
    text = json.dumps({"mcpServers": {"s": entry}}, indent=1)
    return parse(text, Path("/x/mcp.json"), {"REGION": "eu", "DOLLAR": "${user:X}"})


def server(entry: dict[str, Any]) -> ServerConfig:
    configuration = read(entry)
    assert [str(problem) for problem in configuration.problems] == []
    return configuration.servers[0]


def fault(entry: dict[str, Any]) -> tuple[str, str]:
    """Return the key, below the entry, and the words of the only problem."""
    (problem,) = read(entry).problems
    return problem.key.removeprefix("mcpServers.s").lstrip("."), problem.message


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


def test_a_server_that_is_off_has_its_rules_checked_all_the_same() -> None:
    off = {"command": "c", "disabled": True, "args": ["${user:X}"], "values": {"X": {"hidden": 1}}}
    assert fault(off) == ("values.X.hidden", "must be true or false")


@pytest.mark.case("N11")
@pytest.mark.parametrize(
    ("entry", "key", "words"),
    [
        ({"url": "${user:X}"}, "url", "behind the host"),
        ({"url": "https://${user:X}.example/mcp"}, "url", "behind the host"),
        ({"url": "https://a.example${user:X}"}, "url", "behind the host"),
        ({"url": "https://me:${user:X}@a.example/"}, "url", "behind the host"),
        ({"url": "https://a.example:${team:PORT}/mcp"}, "url", "behind the host"),
        ({"url": "https://a.example/mcp", "headers": {"hOst": "${user:X}"}}, "headers.hOst", "cannot be the host"),
        ({"command": "c", "env": {"path": "${user:X}"}}, "env.path", "which code is loaded"),
        ({"command": "c", "env": {"LD_PRELOAD": "${team:X}"}}, "env.LD_PRELOAD", "which code is loaded"),
        ({"command": "c", "env": {"NODE_OPTIONS": "-a ${user:X}"}}, "env.NODE_OPTIONS", "which code is loaded"),
        ({"command": "c", "env": {"npm_config_registry": "${user:X}"}}, "env.npm_config_registry", "which code"),
        ({"command": "c", "env": {"HOME": "/home/${user:X}"}}, "env.HOME", "which code"),
        ({"command": "c", "env": {"_JAVA_OPTIONS": "${user:X}"}}, "env._JAVA_OPTIONS", "which code"),
        ({"command": "${user:X}"}, "command", "cannot stand here"),
        ({"command": "c", "cwd": "${team:X}"}, "cwd", "cannot stand here"),
        ({"command": "c", "roots": ["/${team:X}"]}, "roots[0]", "cannot stand here"),
        ({"command": "c", "envFile": "${team:X}"}, "envFile", "cannot stand here"),
        (
            {"url": "https://a.example/", "oauth": {"client_secret": "${user:X}"}},
            "oauth.client_secret",
            "cannot stand here",
        ),
        ({"command": "c", "args": ["a${user:X}"], "values": {"X": {"several": True}}}, "args[0]", 'is "several"'),
        ({"command": "c", "env": {"A": "${user:X}"}, "values": {"X": {"several": True}}}, "env.A", 'is "several"'),
        ({"command": "c", "values": {"X": {"secrett": True}}}, "values.X.secrett", "unknown key"),
        ({"command": "c", "values": {"X": {"options": ["a"] * 101}}}, "values.X.options", "at most 100"),
        ({"command": "c", "values": {f"X{n}": {} for n in range(MAX_NAMES + 1)}}, "values", "more than 100 values"),
        ({"command": "c", "args": [f"${{user:X{n}}}" for n in range(MAX_NAMES + 1)]}, "", "more than 100 values"),
    ],
)
def test_what_cannot_be_is_told_with_its_place(entry: dict[str, Any], key: str, words: str) -> None:
    where, said = fault(entry)
    assert where == key
    assert words in said


X = "${user:X}"


@pytest.mark.case("N11")
@pytest.mark.parametrize(
    ("command", "args"),
    [
        ("npx", [X]),
        ("npx", ["-y", X]),
        ("npx", ["-p", "pkg", X]),
        ("/usr/bin/uvx", ["--from", X, "prog"]),
        ("uv", ["run", X]),
        ("docker", ["run", "--rm", "-v", X, "image"]),
        ("docker", ["run", "--rm", "-e", f"A={X}", "image"]),
        ("bash", ["-c", f"notes {X}"]),
        ("python3.12", ["-c", X]),
        ("python3", ["-W", "ignore", X]),
        (r"C:\bin\node.exe", [X]),
        ("env", [f"A={X}", "notes"]),
    ],
)
def test_no_value_says_what_a_program_starts(command: str, args: list[str]) -> None:
    where, said = fault({"command": command, "args": args})
    assert where.startswith("args[")
    assert said == "a value of a team or a user cannot stand before the name of what is run"


@pytest.mark.parametrize(
    ("command", "args"),
    [
        ("notes", [X]),
        ("npx", ["-y", "notes@1", X]),
        ("npx", ["--", "notes", X]),
        ("uvx", ["--from", "notes==1", "notes-mcp", "--user", X]),
        ("docker", ["run", "-i", "--rm", "notes:1", X]),
        ("docker", ["run", "-e", "A", "-i", "notes:1", f"--user={X}"]),
        ("python3", ["-m", "notes", X]),
        ("python3", ["-u", "notes.py", X]),
        ("bash", ["-c", 'exec notes "$0"', X]),
    ],
)
def test_a_value_can_stand_behind_what_is_started(command: str, args: list[str]) -> None:
    assert server({"command": command, "args": args}).tiered[0].place[0] == "args"


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


def test_a_rule_for_what_stands_nowhere_is_noted() -> None:
    entry = {"command": "c", "args": ["${user:TOKEN}"], "values": {"TOKN": {}, "other": {}}}
    assert [(note.message, note.hint) for note in read(entry).notes] == [
        ("no ${user:TOKN} or ${team:TOKN} is in the entry", 'did you mean "TOKEN"?'),
        ("no ${user:other} or ${team:other} is in the entry", "write it where the value belongs"),
    ]


def test_what_an_ordinary_program_is_told_is_its_own_business() -> None:
    assert list(place_faults((), {})) == []
