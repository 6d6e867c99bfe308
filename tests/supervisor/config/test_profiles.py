"""Profiles in a configuration: read, and what is wrong with them, with its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from actors.catalogue.views import ViewProfile
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
