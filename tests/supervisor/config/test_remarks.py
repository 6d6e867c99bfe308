"""What is allowed in an entry but hardly meant is said, with the line and what to write instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

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


@pytest.mark.parametrize("text", ["~/notes", "~", "--root=~/notes"])
def test_a_tilde_in_an_argument_is_said_to_stay_as_it_is(text: str) -> None:
    ((key, message, hint),) = noted({"command": "c", "args": ["-v", text]})
    assert key == "args[1]"
    assert "only a shell replaces it" in message
    assert "${HOME}" in hint


@pytest.mark.parametrize("text", ["$HOME/notes", "$HOME", "--root=$HOME/x"])
def test_a_variable_without_braces_is_said_to_stay_as_it_is(text: str) -> None:
    assert [(key, hint) for key, _, hint in noted({"command": "c", "args": [text]})] == [("args[0]", "write ${NAME}")]
    assert [key for key, _, _ in noted({"command": "c", "env": {"ROOT": text}})] == ["env.ROOT"]


@pytest.mark.parametrize("text", ["%USERPROFILE%\\notes", "C:%HOMEPATH%"])
def test_a_variable_of_windows_is_named_as_such(text: str) -> None:
    ((key, message, hint),) = noted({"command": "c", "args": [text]})
    assert (key, "Windows" in message, "${HOME}" in hint) == ("args[0]", True, True)


@pytest.mark.parametrize("text", ["C:\\Users\\me\\notes", "d:/data", "--db=C:\\x.db", "file:///C:/x"])
def test_a_path_of_windows_is_named_as_such(text: str) -> None:
    ((key, message, _),) = noted({"command": "c", "args": [text]})
    assert (key, message) == ("args[0]", "this is a path of Windows")


@pytest.mark.parametrize("command", ["cmd", "npx.cmd", "C:\\nodejs\\npx.cmd"])
def test_a_start_by_windows_is_named_as_such(command: str) -> None:
    assert any("Windows" in message for _, message, _ in noted({"command": command, "args": ["/c", "npx"]}))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "<YOUR_TOKEN>",
            "postgresql://me:<password>@localhost/db",
            "your-api-key-here",
            "YOUR_API_KEY",
            "ghp_xxxxxxxx",
        ),
        *(
            "/path/to/allowed/files",
            "REPLACE_ME",
            "changeme",
            "sk-...",
            "ntn_****",
            "PASTE_YOUR_KEY_HERE",
            "key-goes-here",
        ),
        *("postgresql://username:password@localhost:5432/db", "https://user:pass@h"),
    ],
)
def test_a_placeholder_of_an_example_is_noticed(text: str) -> None:
    ((key, message, hint),) = noted({"command": "c", "env": {"TOKEN": text}})
    assert (key, message) == ("env.TOKEN", "this looks like a placeholder of an example")
    assert "real value" in hint


@pytest.mark.parametrize(
    "text",
    [
        *("${HOME}/x", "pa$$word", "a~b", "100%", "50%-60%", "http://x/%7Eme", "x: y", "https://a.b", "key=$$", "a<b"),
        *("/home/me/data", "@scope/name@1.2.3", "--flag", "yours", "x", "^a.*$", "S3cr3t$", "me@your.host"),
        *("src/**/*.py", "postgres://me:pass@h", "/home/where", "0 * * * *"),
    ],
)
def test_ordinary_texts_are_not_remarked_on(text: str) -> None:
    assert noted({"command": "c", "args": [text], "env": {"A": text}}) == []


def test_the_line_is_said_and_no_text_of_the_entry_is_repeated() -> None:
    entry = {"command": "c", "args": ["$CANARY/x", "~/CANARY"], "env": {"A": "<CANARY>", "B": "C:\\CANARY"}}
    notes = parsed(entry).notes
    assert [note.line for note in notes] == [6, 7, 10, 11]
    assert not [note for note in notes if "CANARY" in str(note) + str(note.data())]


def test_a_disabled_entry_is_left_alone() -> None:
    assert noted({"command": "c", "args": ["~/x"], "disabled": True}) == []


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


def test_arguments_in_one_string_are_answered_with_an_example() -> None:
    (problem,) = parsed({"command": "npx", "args": "-y some-package"}).problems
    assert problem.message == "must be a list of strings"
    assert '["-y", "some-package"]' in problem.hint


def test_a_list_of_servers_is_answered_with_the_form_it_must_have() -> None:
    with pytest.raises(ConfigError) as caught:
        parse('{"mcpServers": [{"name": "a", "command": "c"}]}', FILE, ENVIRON)
    assert caught.value.key == "mcpServers"
    assert '{"NAME": {"command": ...}, ...}' in caught.value.hint


def test_a_line_is_said_once_where_a_file_has_one_line_only() -> None:
    entries = {f"s{number}": {"command": "npx", "args": ["p"]} for number in range(3)}
    (line,) = lines(parse(json.dumps({"mcpServers": entries}), FILE, ENVIRON).notes)
    assert line.endswith("(name@1.2.3 pins it; lines 1)")
