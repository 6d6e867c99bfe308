"""Users and teams of a configuration: read as they are written, and nothing half of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from actors.errors import ConfigError
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
        ({"users": {"ana": {"confirm": "always"}}}, "identity.users.ana.confirm", "one of"),
        ({"users": {"ana": {"confirm": ["write_note"]}}}, "identity.users.ana.confirm[0]", 'write "server:tool"'),
        ({"teams": {"core": {"confirm": "none"}}}, "identity.teams.core.confirm", "one of"),
        ({"teams": {"core": {"zzz": 1}}}, "identity.teams.core.zzz", "known are members"),
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


@pytest.mark.parametrize(
    ("identity", "key", "words"),
    [
        ({"issuers": {}}, "identity.issuers", "a list of at most 8 objects"),
        ({"issuers": [{"issuer": f"{GOOD}/{n}"} for n in range(9)]}, "identity.issuers", "at most 8"),
        ({"issuers": ["x"]}, "identity.issuers[0]", "must be an object"),
        *(
            ({"issuers": [{"issuer": wrong}]}, "identity.issuers[0].issuer", "https address")
            for wrong in ("", "id.example", "http://id.example", f"{GOOD}?a", f"{GOOD}#a", "https://a:b@id.example")
        ),
        ({"issuers": [{}]}, "identity.issuers[0].issuer", "https address"),
        ({"issuers": [{"issuer": GOOD}, {"issuer": GOOD}]}, "identity.issuers[1].issuer", "twice"),
        ({"issuers": [{"issuer": GOOD, "algorithms": ["HS256"]}]}, "algorithms[0]", "one of RS256"),
        ({"issuers": [{"issuer": GOOD, "algorithms": ["none"]}]}, "algorithms[0]", "one of RS256"),
        ({"issuers": [{"issuer": GOOD, "algorithms": []}]}, "algorithms", "none"),
        ({"issuers": [{"issuer": GOOD, "audiences": []}]}, "audiences", 'did you mean "audience"'),
        ({"issuers": [{"issuer": GOOD, "introspection": {"client_id": "a"}}]}, "introspection", "who asks"),
        ({"issuers": [{"issuer": GOOD, "introspection": {"client": "a"}}]}, "introspection", "client"),
        (
            {
                "issuers": [
                    {
                        "issuer": GOOD,
                        "introspection": {**dict.fromkeys(("client_id", "client_secret"), "a"), "endpoint": "x"},
                    }
                ]
            },
            "endpoint",
            "address",
        ),
        ({"users": {"ana": {"subject": "1"}}}, "users.ana.issuer", "add it"),
        (
            {"issuers": [{"issuer": GOOD}, {"issuer": "https://b.example"}], "users": {"ana": {"subject": "1"}}},
            "users.ana.issuer",
            "which one",
        ),
        (
            {"issuers": [{"issuer": GOOD}], "users": {"a": {"subject": "1"}, "b": {"subject": "1"}}},
            "b.subject",
            "one user",
        ),
    ],
)
def test_what_is_wrong_of_a_provider_is_named(identity: Any, key: str, words: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read(identity)
    assert key in str(raised.value)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"auth": "oauth"}, "auth"),
        ({"public_url": "https://a/b"}, "public_url"),
        ({"public_url": "ws://a"}, "public_url"),
        ({"trusted_proxies": ["proxy.example"]}, "trusted_proxies"),
        ({"tls_key": "key.pem"}, "tls_key"),
    ],
)
def test_settings_that_lead_nowhere_are_told(settings: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse(json.dumps({"mcpServers": {}, "supervisor": settings}), FILE, {})
    assert key in raised.value.key


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
