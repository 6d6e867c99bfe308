"""Users and teams of a configuration: read as they are written, and nothing half of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from actors.errors import ConfigError
from supervisor.config import Configuration, parse
from supervisor.identity.people import People, Team, User

FILE = Path("/x/mcp.json")


def read(identity: Any) -> Configuration:
    text = json.dumps({"mcpServers": {"s": {"command": "c"}}, "supervisor": {"identity": identity}}, indent=1)
    return parse(text, FILE, {})


def test_users_and_teams_are_read() -> None:
    written = {
        "users": {"ana": {"role": "admin"}, "ben": {}, "// later": {}},
        "teams": {"core": {"members": ["ben"], "servers": ["s"], "_why": "x"}},
    }
    configuration = read(written)
    assert configuration.settings.identity == People(
        users={"ana": User(role="admin"), "ben": User()},
        teams={"core": Team(members=("ben",), servers=("s",))},
    )
    assert (configuration.problems, configuration.notes) == ((), ())
    assert read({}).settings.identity == People()


@pytest.mark.parametrize(
    ("identity", "key", "words"),
    [
        ([], "identity", "must be an object"),
        ({"user": {}}, "identity.user", 'did you mean "users"'),
        ({"users": []}, "identity.users", "must be an object of objects"),
        ({"users": {"ana": "admin"}}, "identity.users.ana", "must be an object"),
        ({"users": {"ana": {"role": "root"}}}, "identity.users.ana.role", "one of"),
        ({"users": {"ana": {"rol": "admin"}}}, "identity.users.ana.rol", 'did you mean "role"'),
        ({"users": {"a:b": {}}}, 'identity.users["a:b"]', "rename it"),
        ({"teams": {"core": {"members": "ana"}}}, "identity.teams.core.members", "must be a list of strings"),
        ({"teams": {"core": {"zzz": 1}}}, "identity.teams.core.zzz", "docs/reference/identity.md"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_taken(identity: Any, key: str, words: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read(identity)
    assert key in raised.value.key
    assert words in str(raised.value)


def test_a_name_that_means_nobody_is_told() -> None:
    configuration = read({"users": {"ana": {}}, "teams": {"core": {"members": ["anna"], "servers": ["t"]}}})
    assert [(note.key, note.message, note.hint) for note in configuration.notes] == [
        ("supervisor.identity.teams.core.members", "there is no user 'anna'", 'did you mean "ana"?'),
        ("supervisor.identity.teams.core.servers", "there is no server 't'", ""),
    ]
