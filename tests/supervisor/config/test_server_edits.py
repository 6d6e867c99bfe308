"""Entries are added, changed and removed in the text of a configuration; everything else of it stays."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.errors import ConfigError
from supervisor.config import parse
from supervisor.config.edits import (
    EMPTY,
    add_entry,
    change_entry,
    check_value,
    merge,
    names_in,
    remove_entry,
    supplement,
)
from supervisor.config.jsonc import MAX_DEPTH, read_document
from tests.supervisor.config.test_editing import is_in, layouts

ENTRY = {"command": "x", "args": ["-y"]}
PEOPLE = """\
{
  // mine
  "servers": {
    "git.hub": {"command": "a", "env": {"K": "v"}}, // the first
    "other": {"command": "b", "slug": "short"},
  },
  "supervisor": {"log_level": "info"}
}
"""


def value(text: str) -> Any:
    return read_document(text, "f").value


def refused(words: str, edit: Any, *arguments: Any) -> ConfigError:
    with pytest.raises(ConfigError, match=words) as caught:
        edit(*arguments, "f.json")
    return caught.value


# Texts as people write them -------------------------------------------------------------------------------------------

names = st.sampled_from(["a", "b", "c.d", "É", "A", "team notes", "filesystem-john-abc123"])
entries = st.fixed_dictionaries({"command": st.just("x")}, optional={"args": st.just(["1"]), "slug": names})
sections = st.dictionaries(names, entries, max_size=3)
files = st.fixed_dictionaries(
    {}, optional={"mcpServers": sections, "supervisor": st.just({"log_level": "info"}), "servers": sections}
)


def keys_of(document: Any) -> list[str]:
    return [name for section in ("mcpServers", "servers") for name in document.get(section, {})]


@given(layouts(files), names)
def test_an_entry_is_added_behind_the_others_or_its_name_was_taken(layout: tuple[Any, str], name: str) -> None:
    before, text = layout
    assert names_in(text, [name], "f") in (frozenset(), {name})
    if name in names_in(text, [name], "f"):
        refused("already", add_entry, text, name, ENTRY)
        return
    after = add_entry(text, name, ENTRY, "f")
    section = next((key for key in before if key in ("mcpServers", "servers")), "mcpServers")
    assert value(after) == {**before, section: {**before.get(section, {}), name: ENTRY}}
    assert list(value(after)[section])[-1] == name
    assert is_in(text, after)
    if section in before:
        assert remove_entry(after, name, "f") == text


@given(layouts(files), names)
def test_what_is_removed_is_gone_and_what_was_not_there_or_twice_is_refused(layout: tuple[Any, str], name: str) -> None:
    before, text = layout
    there = keys_of(before).count(name)
    if there != 1:
        refused("two servers of this name" if there else "there is no server", remove_entry, text, name)
        refused("two servers of this name" if there else "there is no server", change_entry, text, name, {"x": 1})
        return
    after = remove_entry(text, name, "f")
    assert keys_of(value(after)) == [each for each in keys_of(before) if each != name]
    assert is_in(after, text)


@given(layouts(files), st.dictionaries(names, st.just(ENTRY), max_size=3))
def test_what_does_not_belong_into_a_text_moves_no_line_of_it(layout: tuple[Any, str], more: dict[str, Any]) -> None:
    before, text = layout
    more = {name: entry for name, entry in more.items() if name not in keys_of(before)}
    after = supplement(text, more, "f")
    assert set(keys_of(value(after))) == {*keys_of(before), *more}
    lines, moved = read_document(text, "f").lines, read_document(after, "f").lines
    behind = {"mcpServers", "servers"} <= before.keys()
    assert {at: line for at, line in moved.items() if at in lines} == lines or behind


def test_a_name_is_taken_only_by_one_that_is_served() -> None:
    for name in ("git.hub", "GIT.HUB", "other", "Short"):
        refused("already", add_entry, PEOPLE, name, ENTRY)
    added = add_entry(PEOPLE, "new one", ENTRY, "f")
    assert '"slug": "short"},\n    "new one": {\n' in added
    assert parse(added, Path("f.json"), {}).problems == ()
    assert names_in(PEOPLE, ["GIT.hub", "short", "x"], "f") == {"GIT.hub", "short"}
    # Two installations of one program are called by their whole names.
    both = json.dumps({"mcpServers": {"files-john-abc123": ENTRY, "files-mary-def456": ENTRY}})
    assert names_in(both, ["files"], "f") == frozenset()


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        (PEOPLE, "other", r"^f\.json:5: servers\.other: there is such a server already \(.*mcpvisor edit other, or"),
        (PEOPLE, "Other", "already; capitals make no difference"),
        (PEOPLE, "short", r"called by the name 'short' already \(set its \"slug\" to another name, or choose"),
        ('{"servers": {"a b": 1}}', "a b", r'servers\["a b"\]: .*mcpvisor edit \'a b\''),
        ('{"mcpServers": {"files-john-abc123": {"command": "x"}}}', "files", "called by the name 'files'"),
        ('{"mcpServers": []}', "a", "mcpServers: must be an object"),
        ("[]", "a", "must be an object"),
        ('{"servers": {}, "servers": {}}', "a", "written twice"),
        ("{", "a", "ends before"),
        ("", "a", "empty"),
    ],
)
def test_a_taken_name_says_by_whom_and_a_text_of_no_use_why(text: str, name: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        add_entry(text, name, ENTRY, "f.json")
    assert re.search(words, str(caught.value)), str(caught.value)


def test_a_file_that_is_not_there_begins_with_the_section_that_most_write() -> None:
    assert add_entry(EMPTY, "a", {"command": "x"}, "f") == (
        '{\n  "mcpServers": {\n    "a": {\n      "command": "x"\n    }\n  }\n}\n'
    )


def test_marks_line_ends_and_comments_stay() -> None:
    text = "\ufeff" + PEOPLE.replace("\n", "\r\n")
    after = change_entry(text, "git.hub", {"env": {"K": "w"}, "cwd": "/"}, "f")
    assert after == text.replace('{"K": "v"}}', '{"K": "w"}, "cwd": "/"}')
    assert remove_entry(text, "git.hub", "f") == text.replace(
        '    "git.hub": {"command": "a", "env": {"K": "v"}}, // the first\r\n', ""
    )


def test_only_the_key_that_changes_is_touched_also_beside_one_that_is_written_twice() -> None:
    text = '{"servers": {"a": {"args": [ 1 ], "x": 1, "x": 2, "y": 1.50}}}'
    assert change_entry(text, "a", {"y": 2, "args": [1]}, "f") == text.replace("1.50", "2")
    refused("written twice", change_entry, text, "a", {"x": 3})
    assert change_entry('{"servers": {"a": 1}}', "a", {"command": "x"}, "f") == ('{"servers": {"a": {"command": "x"}}}')


def test_an_unknown_name_gets_the_nearest_or_those_that_there_are() -> None:
    assert 'did you mean "other"' in str(refused("no server 'othr'", remove_entry, PEOPLE, "othr"))
    assert 'did you mean "other"' in str(refused("no server 'short'", remove_entry, PEOPLE, "short"))
    assert "there are: git.hub, other)" in str(refused("no server", remove_entry, PEOPLE, "zzz"))
    assert "there are: none)" in str(refused("no server", remove_entry, "{}", "zzz"))
    many = json.dumps({"mcpServers": {f"s{n}": ENTRY for n in range(30)}})
    assert "s19 and 10 more)" in str(refused("no server", remove_entry, many, "zzz"))
    assert len(str(refused("no server", remove_entry, "{}", "\x1b" * 9000))) < 500


def test_two_of_one_name_are_named_with_their_lines() -> None:
    error = refused("lines 1 and 2", remove_entry, '{"mcpServers": {"a": {}},\n"servers": {"a": {}}}', "a")
    assert (error.line, error.key, error.path) == (2, "servers.a", "f.json")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"mcpServers": []}', '{"mcpServers": [], "servers": {"e": {"k": 1}}}'),
        ('{"mcpServers": {}, "servers": []}', '{"mcpServers": {}, "servers": []}'),
        ("[]", "[]"),
        (
            '{"servers": {"a": 1}, "mcpServers": {"b": 2}}',
            '{"servers": {"a": 1}, "mcpServers": {"b": 2, "e": {"k": 1}}}',
        ),
        (
            '{"mcpServers": {"b": 2}, "servers": {"a": 1}}',
            '{"mcpServers": {"b": 2}, "servers": {"a": 1, "e": {"k": 1}}}',
        ),
    ],
)
def test_a_text_with_faults_keeps_them_whatever_comes_with_it(text: str, expected: str) -> None:
    assert supplement(text, {"e": {"k": 1}}, "f") == expected
    assert supplement(text, {}, "f") == text


@pytest.mark.parametrize(
    ("before", "patch", "after"),
    [  # the test cases of RFC 7396, appendix A
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": 1}}),
    ],
)
def test_a_patch_is_merged_as_its_standard_says(before: Any, patch: Any, after: Any) -> None:
    assert merge(before, patch) == after


def deep(levels: int) -> Any:
    inner: Any = 1
    for _ in range(levels):
        inner = [inner]
    return inner


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"k": float("nan")}, r"a\.k: this is no number"),
        ({"k": [float("inf")]}, r"a\.k\[0\]: this is no number"),
        ({"k": 2**63}, "too large"),
        ({"k": -(2**70)}, "too large"),
        ({"env": {"K": "se\udcffcret"}}, r"a\.env\.K: this is no text in UTF-8"),
        ({"\ud800": 1}, r'a\["\\ud800"\]: this is no text'),
        ({"k": deep(100_000)}, r"a\.k\[0\]: it is nested too deeply"),
    ],
)
def test_what_no_file_can_hold_is_refused_without_its_value(entry: Any, words: str) -> None:
    for edit in (add_entry, change_entry):
        assert "secret" not in str(refused(words, edit, '{"servers": {"b": {}}}', "a", entry))


def test_what_is_just_not_too_deep_can_be_read_again() -> None:
    levels = MAX_DEPTH - 3
    assert value(add_entry("{}", "a", {"k": deep(levels)}, "f"))["mcpServers"]["a"]["k"] == deep(levels)
    with pytest.raises(ConfigError, match="too deeply"):
        check_value({"a": {"k": deep(levels + 1)}})
    check_value({"a": {"k": [2**63 - 1, -(2**63) + 1, 1.5, True, None, "é"]}})
