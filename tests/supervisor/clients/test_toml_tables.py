"""One table of a TOML text comes and goes; everything else is there byte for byte."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.errors import ConfigError
from supervisor.clients.toml_tables import put_table, read_toml, remove_table
from tests.supervisor.clients.files import CODEX

WHERE = ("mcp_servers", "mcpvisor")
ENTRY: dict[str, Any] = {"url": "http://127.0.0.1:3001/mcp"}

PIECES = (
    "# a comment\n",
    '[mcp_servers.a]\ncommand = "x" # c\n[mcp_servers.a.env]\nK = "[no.header]"\n',
    "[mcp_servers.\"b c\"]\n\turl = 'x'\n\n",
    "[t]\ny = [\n  1, # one\n  2,\n]\n",
    '[u]\ntext = """\n[mcp_servers.mcpvisor]\n"""\n',
    "[v]\nlist = [\n[1],\n['x']\n]\n",
    "[[things]]\na = 1\n[[things.inner]]\nb = 1979-05-27\n",
    "[mcp_servers]\n",
    "\n\n",
)
HEADS = ("", "\ufeff", 'top = "x"\n', "# first\n\ntop = 1\n")


@given(st.sampled_from(HEADS), st.permutations(PIECES), st.integers(0, len(PIECES)), st.booleans())
def test_a_table_comes_and_goes_and_nothing_else_changes(head: str, pieces: list[str], count: int, crlf: bool) -> None:
    text = head + "".join(pieces[:count])
    text = text.replace("\n", "\r\n") if crlf else text
    after = put_table(text, WHERE, ENTRY, "f")
    assert after.startswith(text)
    assert read_toml(after, "f")["mcp_servers"]["mcpvisor"] == ENTRY
    assert ("\n" in after.replace("\r\n", "")) is not (crlf and "\n" in text)
    assert put_table(after, WHERE, ENTRY, "f") == after
    assert remove_table(after, WHERE, "f") == text


def test_a_table_is_replaced_in_its_place_with_those_in_it() -> None:
    text = CODEX.text
    after = put_table(text, ("mcp_servers", "docs"), {"url": "http://d", "enabled": True, "x y": ["\x7f"]}, "f")
    assert after == (
        text[: text.index("[mcp_servers.docs]")]
        + '[mcp_servers.docs]\nurl = "http://d"\nenabled = true\n"x y" = ["\\u007f"]\n\n'
        + text[text.index("[mcp_servers.issues]") :]
    )


def test_a_table_goes_with_those_in_it_and_leaves_the_comment_above_the_next() -> None:
    text = CODEX.text
    after = remove_table(remove_table(text, ("mcp_servers", "docs"), "f"), ("mcp_servers", "issues"), "f")
    assert after == ('# how I like it\nmodel = "o9" # the big one\n\n# how it looks\n[tui]\ntheme = "dark"\n')


def test_the_end_of_a_file_without_a_line_end_gets_one() -> None:
    assert put_table("a = 1", WHERE, {"x": 1}, "f") == "a = 1\n\n[mcp_servers.mcpvisor]\nx = 1\n"
    assert remove_table("[mcp_servers.mcpvisor]\nx = 1", WHERE, "f") == ""


def test_a_table_that_is_not_there_is_removed_already() -> None:
    assert remove_table(CODEX.text, WHERE, "f") == CODEX.text


@pytest.mark.parametrize("text", ['mcp_servers = { mcpvisor = { url = "x" } }\n', 'mcp_servers.mcpvisor.url = "x"\n'])
def test_what_is_written_in_another_way_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        put_table(text, WHERE, {"url": "y"}, "f")
    with pytest.raises(ConfigError, match="cannot be changed safely"):
        remove_table(text, WHERE, "f")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a = 1\nb = canary\n", 2),
        ("a = 1\na = 2\n", 2),
        ("x = [\n", 2),
        ("a = " + "[" * 5000, 1),
        ("\na = " + "9" * 5000, 2),
    ],
)
def test_what_is_no_toml_is_refused_with_its_line_and_repeats_nothing(text: str, line: int) -> None:
    with pytest.raises(ConfigError, match="not TOML") as caught:
        put_table(text, WHERE, ENTRY, "f")
    assert caught.value.line == line
    assert "canary" not in str(caught.value)


def test_what_is_nested_too_deeply_is_refused() -> None:
    assert read_toml(f"[{'a.' * 60}b]\n", "f")
    with pytest.raises(ConfigError, match="more than 64 levels"):
        read_toml(f"[{'a.' * 1100}b]\n", "f")


def test_a_way_through_what_is_no_table_is_refused() -> None:
    with pytest.raises(ConfigError, match="must be a table"):
        put_table("mcp_servers = 1\n", WHERE, ENTRY, "f")


@given(
    st.dictionaries(st.text(min_size=1, max_size=4), st.text(max_size=9) | st.lists(st.text(max_size=3), max_size=2))
)
def test_every_text_is_written_as_it_is_meant(members: dict[str, Any]) -> None:
    after = put_table("", ("s", "a.b c"), members, "f")
    assert tomllib.loads(after) == {"s": {"a.b c": members}}
