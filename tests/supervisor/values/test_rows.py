"""What is shown of values: of one's own servers, without secrets, and without a trace of what is hidden."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins

from actors.errors import InvalidArguments
from supervisor.config import Configuration, parse
from supervisor.config.provenance import explain_server
from supervisor.identity.people import Given, GivenValues, Person
from supervisor.servers.deployment import Deployment, deploy
from supervisor.values.rows import (
    ExplainedServer,
    ValueRow,
    awaits_team,
    explain_values,
    rows_of_server,
    stored_of,
    team_of,
    tiered_servers,
)
from tests.fakes.deployments import KEY

SERVERS: dict[str, Any] = {
    "github": {
        "command": "c",
        "args": ["${user:MORE:-}", "--pin=${user:PIN:-}"],
        "env": {"TOKEN": "${user:TOKEN}", "HOST": "${team:HOST:-h}", "LOG": "${user:LOG:-info}", "KEY": "${user:KEY}"},
        "values": {
            "MORE": {"several": True, "secret": True},
            "KEY": {"hidden": True},
            "LOG": {"options": ["info", "debug"], "description": "How much it says."},
        },
    },
    "maps": {"url": "https://a.example/${user:REGION}?token=${user:TOKEN}"},
    "vault": {"command": "c", "users": ["ana"], "env": {"PIN": "${user:PIN}"}},
    "plain": {"command": "c"},
}
IDENTITY: dict[str, Any] = {
    "users": {"ana": {"role": "admin"}, "ben": {"values": {"github": {"TOKEN": "canary 1"}}}},
    "teams": {"core": {"members": ["ben"], "values": {"github": {"LOG": {"value": "debug", "locked": True}}}}},
}
STORED = [
    (("team", "core"), "github", "KEY", "canary 2"),
    (("team", "core"), "github", "HOST", "ghe"),
    (("user", "ben"), "github", "MORE", ("canary 3", "canary 4")),
    (("user", "ben"), "github", "LOG", "info"),
    (("user", "ben"), "github", "PIN", "7"),
    (("user", "ben"), "maps", "TOKEN", "canary 5"),
]


def configuration(identity: dict[str, Any] = IDENTITY) -> Configuration:
    text = json.dumps({"mcpServers": SERVERS, "supervisor": {"identity": identity}}, indent=1)
    return parse(text, Path("/x/mcp.json"), {})


def stored() -> GivenValues:
    given = GivenValues()
    for owner, server, name, value in STORED:
        given = given.with_value(owner, server, name, Given(value=value))  # type: ignore[arg-type]  # a table of any
    return given


def deployed(given: GivenValues, identity: dict[str, Any] = IDENTITY) -> Deployment:
    return deploy(configuration(identity), key=KEY, given=given)


def person(deployment: Deployment, user: str) -> Person:
    found = deployment.person(user, role="admin", team="")
    assert found is not None
    return found


def rows(deployment: Deployment, server: str, user: str = "", team: str = "") -> dict[str, ValueRow]:
    who = person(deployment, user) if user else None
    of = team_of(deployment, who, server) if who is not None else team
    return {row.name: row for row in rows_of_server(deployment, server, user=who, team=of)}


def test_a_user_sees_what_holds_and_whose_it_is() -> None:
    deployment = deployed(stored())
    shown = rows(deployment, "github", "ben")
    assert [*shown] == ["MORE", "PIN", "TOKEN", "HOST", "LOG"]
    assert {name: (row.value, row.by, row.owner, row.kept) for name, row in shown.items()} == {
        "MORE": (("***", "***"), "user", "ben", "daemon"),
        "PIN": ("***", "user", "ben", "daemon"),
        "TOKEN": ("***", "user", "ben", "file"),
        "HOST": ("ghe", "team", "core", "daemon"),
        "LOG": ("debug", "team", "core", "file"),
    }
    assert (shown["TOKEN"].line or 0) > (shown["MORE"].line or 0)
    assert (shown["LOG"].locked, shown["HOST"].tier, shown["LOG"].options) == (True, "team", ("info", "debug"))
    assert shown["LOG"].description == "How much it says."
    assert "canary" not in repr(to_builtins([*shown.values()]))


def test_what_is_missing_is_told_but_not_what_is_hidden() -> None:
    deployment = deployed(GivenValues())
    shown = rows(deployment, "github", "ana")
    assert {name: (row.by, row.value, row.missing) for name, row in shown.items() if row.missing} == {
        "TOKEN": (None, None, True)
    }
    assert "KEY" not in shown
    ana = person(deployment, "ana")
    assert awaits_team(deployment.entries["github"], deployment.effective_for("github", ana))
    assert not awaits_team(deployment.entries["vault"], deployment.effective_for("vault", ana))
    assert tiered_servers(deployment, ana) == ["github", "maps", "vault"]
    assert tiered_servers(deployment, person(deployment, "ben")) == ["github", "maps"]
    assert tiered_servers(deployment, None) == ["github", "maps", "vault"]


def test_a_team_is_shown_what_it_gives_itself() -> None:
    shown = rows(deployed(stored()), "github", team="core")
    assert (shown["KEY"].value, shown["KEY"].hidden, shown["KEY"].by) == ("***", True, "team")
    assert shown["TOKEN"].by is None
    assert rows(deployed(stored()), "github")["HOST"].by is None, "without a team nobody gives anything"


# explain --user -------------------------------------------------------------------------------------------------------


def as_a_daemon_says() -> GivenValues:
    deployment = deployed(stored())
    of_user = [row for server in ("github", "maps") for row in rows(deployment, server, "ben").values()]
    return stored_of(to_builtins([*of_user, *rows(deployment, "github", team="core").values()]))


def explained(server: str, given: GivenValues, user: str = "ben", team: str = "") -> ExplainedServer:
    read = configuration()
    (entry,) = (each for each in read.servers if each.name == server)
    return explain_values(read, entry, given, user=user, team=team)


def test_what_holds_is_explained_without_secrets() -> None:
    holds = explained("github", as_a_daemon_says())
    assert (holds.missing, holds.faults, holds.team) == ({}, (), "core")
    assert holds.config.args == ("***", "***", "--pin=***")
    assert holds.config.env == {"TOKEN": "***", "HOST": "ghe", "LOG": "debug", "KEY": "***"}
    by = {row.name: (row.by, row.kept) for row in holds.rows}
    assert by["KEY"] == ("team", "daemon")
    assert by["TOKEN"] == ("user", "file")
    values = explain_server(configuration(), holds.config, {})
    assert "canary" not in repr([each.value for each in values])
    assert "canary" not in repr(to_builtins(holds.rows))


def test_an_address_is_explained_without_secrets_and_says_what_is_missing() -> None:
    holds = explained("maps", as_a_daemon_says())
    assert holds.missing == {"REGION": "user"}
    assert holds.config.url == "https://a.example/?token=***"


def test_the_file_alone_is_explained_too() -> None:
    holds = explained("github", GivenValues())
    assert holds.missing == {"KEY": "team"}
    assert holds.config.env["LOG"] == "debug"
    assert explained("github", GivenValues(), user="", team="core").missing == {"TOKEN": "user", "KEY": "team"}


def test_what_was_given_as_a_secret_may_have_options() -> None:
    given = GivenValues().with_value(("user", "ana"), "github", "LOG", Given(value="***"))
    assert explained("github", given, user="ana").config.env["LOG"] == "***"


def test_explain_refuses_no_value_that_the_daemon_accepts_and_accepts_none_that_it_refuses() -> None:
    for value, faults, missing in (("-v", (), {}), ("--other", (), {"LEVEL": "user"})):
        servers = {"a": {"command": "c", "args": ["${user:LEVEL}"], "values": {"LEVEL": {"options": ["-v", "-q"]}}}}
        text = json.dumps({"mcpServers": servers, "supervisor": {"identity": {"users": {"ben": {}}}}})
        read = parse(text, Path("/x/mcp.json"), {})
        given = GivenValues().with_value(("user", "ben"), "a", "LEVEL", Given(value=value))
        deployment = deploy(read, key=KEY, given=given)
        by_daemon = deployment.effective_for("a", person(deployment, "ben"))
        assert (by_daemon.faults, by_daemon.missing) == (faults, missing)
        holds = explain_values(read, read.servers[0], given, user="ben", team="")
        assert (holds.faults, holds.missing) == (faults, missing)
        assert [row.options for row in holds.rows] == [("-v", "-q")]


@pytest.mark.parametrize(
    ("user", "team", "said"), [("zed", "", "no user 'zed' in"), ("ana", "core", "no user 'ana' in the team 'core'")]
)
def test_nobody_is_told(user: str, team: str, said: str) -> None:
    with pytest.raises(InvalidArguments, match=said):
        explained("github", GivenValues(), user=user, team=team)
