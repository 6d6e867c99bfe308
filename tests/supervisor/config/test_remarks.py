"""What is allowed in an entry but hardly meant is said, with the line and what to write instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from actors.errors import ConfigError
from supervisor.config import Configuration, parse, placeholders
from supervisor.config.remarks import lines

FILE = Path("/etc/mcp/mcp.json")
ENVIRON = {"HOME": "/home/me"}


def parsed(entry: dict[str, Any]) -> Configuration:
    """Return the configuration of one entry, one key per line: the first key of the entry is on line 4."""
    return parse(json.dumps({"mcpServers": {"s": entry}}, indent=1), FILE, ENVIRON)


def noted(entry: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return key, message and hint of each note on an entry that can be used."""
    configuration = parsed(entry)
    assert configuration.problems == ()
    return [(note.key.removeprefix("mcpServers.s."), note.message, note.hint) for note in configuration.notes]


def test_the_line_is_said_and_no_text_of_the_entry_is_repeated() -> None:
    entry = {"command": "c", "args": ["$CANARY/x", "~/CANARY"], "env": {"A": "<CANARY>", "B": "C:\\CANARY"}}
    notes = parsed(entry).notes
    assert [note.line for note in notes] == [6, 7, 10, 11]
    assert not [note for note in notes if "CANARY" in str(note) + str(note.data())]


def test_variables_that_have_an_examples_value_are_named() -> None:
    env = {"TOKEN": "<your-token>", "KEY": "YOUR_API_KEY", "URL": "https://example.com", "LONG": "xxxx" * 9000}
    assert placeholders(env) == ("TOKEN", "KEY")


def test_a_very_long_text_costs_nothing() -> None:
    assert noted({"command": "c", "args": ["x" * 100_000, "%" * 100_000]}) == []


def test_what_is_said_of_many_servers_is_one_line() -> None:
    entries = {f"s{number}": {"command": "npx", "args": ["-y", "p"]} for number in range(36)}
    configuration = parse(json.dumps({"mcpServers": entries}, indent=1), FILE, ENVIRON)
    assert len(configuration.notes) == 36
    (line,) = lines(configuration.notes)
    assert line.startswith("/etc/mcp/mcp.json: s0, s1, s2, s3, s4 and 31 more: the package has no fixed version")
    assert line.endswith("(name@1.2.3 pins it; lines 5, 12, 19, 26, 33 and 31 more)")


def test_what_is_said_once_keeps_its_key_and_line() -> None:
    note = ConfigError("odd", path="f", key="k", line=3, hint="do", server="s")
    assert lines([note]) == ["f:3: k: odd (do)"]


def test_a_line_is_said_once_where_a_file_has_one_line_only() -> None:
    entries = {f"s{number}": {"command": "npx", "args": ["p"]} for number in range(3)}
    (line,) = lines(parse(json.dumps({"mcpServers": entries}), FILE, ENVIRON).notes)
    assert line.endswith("(name@1.2.3 pins it; lines 1)")
