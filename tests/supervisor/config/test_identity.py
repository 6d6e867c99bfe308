"""Users and teams of a configuration: read as they are written, and nothing half of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from supervisor.config import Configuration, parse
from supervisor.config.expansion import DEFAULT
from supervisor.config.keys import name_fault
from supervisor.config.provenance import EffectiveValue, explain_daemon
from supervisor.identity.people import Issuer, People, Team, User

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


def test_a_tool_that_somebody_has_to_confirm_has_the_name_of_its_server() -> None:
    servers = {"s": {"command": "c", "tools": {"rename": {"wipe": "clean"}}}}
    people = {"users": {"ana": {"confirm": ["s:clean", "s:wipe", "s:other"]}}, "teams": {"core": {"confirm": ["s:"]}}}
    text = json.dumps({"mcpServers": servers, "supervisor": {"identity": people}}, indent=1)
    assert [(note.key, note.hint) for note in parse(text, FILE, {}).notes] == [
        ("supervisor.identity.users.ana.confirm[0]", 'write "wipe"'),
        ("supervisor.identity.teams.core.confirm[0]", "write server:tool, or server:* for all"),
    ]


GOOD = "https://id.example"


def test_identity_providers_are_read_and_their_secrets_are_not_shown() -> None:
    asking = {"client_id": "mcpvisor", "client_secret": "${env:S3}-x"}
    users = {"ana": {"subject": "1"}, "ben": {"subject": "2", "issuer": GOOD}}
    text = {"issuers": [{"issuer": GOOD, "audience": ["a"], "introspection": asking, "// why": 1}], "users": users}
    read = parse(
        json.dumps({"mcpServers": {}, "supervisor": {"auth": "both", "identity": text}}), FILE, {"S3": "s3cr3t"}
    )
    people = read.settings.identity
    (issuer,) = people.issuers
    assert (issuer.issuer, issuer.audience, issuer.asks) == (GOOD, ("a",), True)
    assert issuer.introspection.client_secret == "s3cr3t-x"
    assert "s3cr3t" not in repr(read.settings)
    shown = explain_daemon(read, EffectiveValue(key="data_dir", value="", origin=DEFAULT), {"S3": "s3cr3t"})
    assert "s3cr3t" not in repr(shown)
    assert people.subject(GOOD, "1") == ("ana", "member")
    assert people.subject(GOOD, "2") == ("ben", "member")
    assert people.subject(GOOD, "3") is None
    assert people.subject("https://other.example", "1") is None


def test_where_no_users_are_named_whoever_signs_in_is_one_that_nobody_can_guess() -> None:
    people = People(issuers=(Issuer(issuer=GOOD), Issuer(issuer="https://b.example")))
    ana, other = people.subject(GOOD, "ana@example.org"), people.subject("https://b.example", "ana@example.org")
    assert ana is not None
    assert other is not None
    assert ana[0] != other[0]
    assert re.fullmatch(r"u_[a-z2-7]{24}", ana[0])
    assert ana[1] == "member"
    assert people.subject(GOOD, "") is None
    assert name_fault(ana[0]) is None
    assert people.subject(GOOD, "\ud800") is not None
