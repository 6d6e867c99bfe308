"""Profiles in a configuration: read, and what is wrong with them, with its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from actors.catalogue.views import ViewProfile
from actors.errors import ConfigError
from supervisor.config import Configuration, parse
from supervisor.config.values import SeveralErrors

SERVERS = {"github": {"command": "c"}, "my-notes": {"command": "c", "slug": "notes"}}


def read(supervisor: Any) -> Configuration:
    """Return the configuration with these settings, one key per line: the first one of `supervisor` is on line 3."""
    return parse(json.dumps({"supervisor": supervisor, "mcpServers": SERVERS}, indent=1), Path("mcp.json"), {})


def test_profiles_are_read_by_name_and_one_may_be_everybodys() -> None:
    profiles = {
        "work": {"servers": ["github"], "tools": ["notes:*"], "deny": ["*:delete_*"], "_why": "no surprises"},
        "all but": {"deny": ["notes"]},
        "none": {"servers": []},
        "//": "a comment",
    }
    settings = read({"profiles": profiles, "profile": "work"}).settings
    assert settings.profile == "work"
    assert settings.profiles == {
        "work": ViewProfile(servers=("github",), tools=("notes:*",), deny=("*:delete_*",)),
        "all but": ViewProfile(deny=("notes",)),
        "none": ViewProfile(servers=()),
    }
    assert read({}).settings.profiles == {}
    assert read({}).settings.profile == ""


@pytest.mark.parametrize(
    ("supervisor", "key", "line", "message", "hint"),
    [
        ({"profiles": []}, ".profiles", 3, "must be an object of objects", ""),
        ({"profiles": {"a": []}}, ".profiles.a", 4, "must be an object", ""),
        ({"profiles": {"a": {"sevrers": []}}}, ".profiles.a.sevrers", 5, "unknown key", 'did you mean "servers"?'),
        ({"profiles": {"a": {"zzz": []}}}, ".profiles.a.zzz", 5, "unknown key", "known are servers"),
        ({"profiles": {"a": {"servers": "github"}}}, ".profiles.a.servers", 5, "must be a list of at most 1000", ""),
        ({"profiles": {"a": {"deny": ["x", 5]}}}, ".profiles.a.deny[1]", 7, "must be a string", "quotes"),
        ({"profiles": {"a": {"tools": ["read"]}}}, ".profiles.a.tools[0]", 6, "not the path of a tool", "server:tool"),
        ({"profiles": {"a": {"tools": ["x:y", ":y"]}}}, ".profiles.a.tools[1]", 7, "not the path of a tool", ""),
        ({"profiles": {"a:b": {}}}, '.profiles["a:b"]', 4, 'the name holds ":"', "rename it"),
        ({"profile": 5}, ".profile", 3, "must be a string", ""),
        ({"profile": "work"}, ".profile", 3, "there is no such profile", 'must be one of "profiles"'),
        ({"profile": "wrok", "profiles": {"work": {}}}, ".profile", 3, "no such profile", 'did you mean "work"?'),
    ],
)
def test_a_wrong_profile_is_a_problem_of_the_file(
    supervisor: Any, key: str, line: int, message: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read(supervisor)
    error = caught.value
    assert (error.key, error.line) == (f"supervisor{key}", line)
    assert message in error.message
    assert hint in error.hint


def test_all_that_is_wrong_with_profiles_is_told_at_once() -> None:
    with pytest.raises(SeveralErrors) as caught:
        read({"profiles": {"a": {"tools": ["x"], "b": 1}, "c": {"deny": 1}}, "profile": "d"})
    assert len(caught.value.errors) == 4


def test_a_pattern_that_fits_no_server_is_noted_with_the_nearest() -> None:
    profiles = {
        "work": {"servers": ["githb", "git*", "my-notes"], "tools": ["note:*", "*:x"], "deny": ["nots", "n*:y"]}
    }
    notes = read({"profiles": profiles}).notes
    assert [(note.key, note.line, note.hint) for note in notes] == [
        ("supervisor.profiles.work.servers[0]", 6, 'did you mean "github"?'),
        ("supervisor.profiles.work.servers[2]", 8, 'did you mean "notes"?'),
        ("supervisor.profiles.work.tools[0]", 11, 'did you mean "notes"?'),
        ("supervisor.profiles.work.deny[0]", 15, 'did you mean "notes"?'),
    ]


def test_a_pattern_that_can_fit_no_tool_is_noted() -> None:
    rules = {"deny": ["drop_*"], "rename": {"get": "fetch", "wipe": "clean"}}
    servers = {"db": {"command": "c", "tools": rules}, "db2": {"command": "c"}}
    tools = ["db:drop_all", "db:get", "db:fetch", "db:drop_*", "db*:get", "db:read", "db2:get"]
    profiles = {"work": {"tools": tools, "deny": ["db2:", "db:wipe"]}}
    text = json.dumps({"supervisor": {"profiles": profiles}, "mcpServers": servers}, indent=1)
    notes = parse(text, Path("mcp.json"), {}).notes
    assert [(note.key.removeprefix("supervisor.profiles.work."), note.message, note.hint) for note in notes] == [
        ("tools[0]", "its server's entry hides this tool", "remove it, or change tools of the entry"),
        ("tools[1]", "its server's entry gives this tool another name", 'write "fetch"'),
        ("deny[0]", "names no tool, so it fits none", "write server:tool, or server:* for all"),
        ("deny[1]", "its server's entry gives this tool another name", 'write "clean"'),
    ]
