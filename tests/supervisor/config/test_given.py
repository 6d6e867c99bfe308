"""What users and teams of a file give: read, with its lines, shown to nobody, remarked on where no server takes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from supervisor.config import Configuration, parse
from supervisor.config.expansion import Given
from supervisor.config.given import in_file, place_of, shown_identity
from supervisor.config.provenance import explain_daemon, explain_server

SERVERS = {
    "s": {
        "command": "c",
        "args": ["${user:MORE:-}", "${user:ONE:-x}"],
        "env": {"TOKEN": "${user:TOKEN}", "HOST": "${team:HOST:-h}"},
        "values": {"MORE": {"several": True, "description": "more"}},
    },
    "off": {"command": "c", "disabled": True},
}


def read(users: Any = None, teams: Any = None) -> Configuration:
    identity = {
        "users": {"ana": {"values": {} if users is None else users}},
        "teams": {"core": {"values": teams or {}}},
    }
    text = json.dumps({"mcpServers": SERVERS, "supervisor": {"identity": identity}}, indent=1)
    return parse(text, Path("/x/mcp.json"), {"SECRET": "hunter22", "DOLLAR": "${user:TOKEN}"})


def test_values_are_texts_lists_or_objects_with_one_of_them() -> None:
    configuration = read(
        {"s": {"TOKEN": "${SECRET}", "MORE": ["a", "${DOLLAR}"], "// why": 1}, "// later": {}},
        {"s": {"HOST": {"value": "ghe", "locked": True}, "MORE": {"value": ["b"]}}},
    )
    identity = configuration.settings.identity
    assert identity.users["ana"].values == {
        "s": {"TOKEN": Given(value="hunter22"), "MORE": Given(value=("a", "${user:TOKEN}"))}
    }
    assert identity.teams["core"].values == {
        "s": {"HOST": Given(value="ghe", locked=True), "MORE": Given(value=("b",))}
    }
    assert (configuration.problems, configuration.notes) == ((), ())
    lines = (configuration.origins["", place_of(*each[:4])].line for each in in_file(identity))
    text = [line.strip() for line in json.dumps({"mcpServers": SERVERS}, indent=1).splitlines()]
    assert min(lines) > len(text) - 2


def test_a_team_may_give_what_a_user_may_not() -> None:
    assert read(None, {"s": {"HOST": "x", "ONE": "-x"}}).notes == ()


def test_no_value_is_shown_with_the_settings_of_the_daemon() -> None:
    canary = "canary plain text"
    configuration = read({"s": {"TOKEN": canary, "MORE": [canary]}}, {"s": {"HOST": {"value": canary}}})
    shown = shown_identity(configuration.settings.identity)
    assert shown["users"]["ana"]["values"]["s"]["MORE"] == {"value": "***", "locked": False}
    assert canary not in json.dumps(shown)
    explained = explain_daemon(configuration, explain_server(configuration, configuration.servers[0], {})[0], {})
    assert canary not in json.dumps([each.value for each in explained])
    assert canary not in repr(configuration)


def test_the_rules_of_values_are_shown_with_their_server() -> None:
    configuration = read()
    shown = {each.key: each.value for each in explain_server(configuration, configuration.servers[0], {})}
    assert shown["values"]["MORE"]["description"] == "more"
