"""The object `oauth` of an entry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from supervisor.config import Configuration, OAuthConfig, parse

ENVIRON = {"HOME": "/home/me", "SECRET": "s3cret"}


def read(oauth: Any, **more: Any) -> Configuration:
    entry = {"url": "https://a.example/mcp", "oauth": oauth, **more}
    return parse(json.dumps({"mcpServers": {"far": entry}}), Path("/x/mcp.json"), ENVIRON)


def test_without_it_logins_are_possible() -> None:
    (server,) = parse('{"mcpServers": {"far": {"url": "https://a"}}}', Path("/x/mcp.json"), ENVIRON).servers
    assert server.oauth == OAuthConfig()
    assert server.oauth.enabled


def test_all_of_it_is_read_and_expanded() -> None:
    configuration = read({"client_id": "x", "client_secret": "${SECRET}", "scope": "a b", "enabled": False})
    assert configuration.problems == ()
    oauth = configuration.servers[0].oauth
    assert oauth == OAuthConfig(client_id="x", client_secret="s3cret", scope="a b", enabled=False)
    assert "s3cret" not in repr(oauth)


def test_other_programs_spellings_are_read() -> None:
    foreign = {"clientId": "x", "clientSecret": "y", "scopes": ["a", "b"], "redirectUri": "http://localhost:1/cb"}
    assert read(foreign).servers[0].oauth == OAuthConfig(
        client_id="x", client_secret="y", scope="a b", redirect_uri="http://localhost:1/cb"
    )
    assert read({"_note": 1, "scopes": "a"}).servers[0].oauth == OAuthConfig(scope="a")


@pytest.mark.parametrize(
    ("oauth", "key", "said"),
    [
        ("yes", "oauth", "must be an object"),
        ({"client": "x"}, "client", 'did you mean "client_id"'),
        ({"what": 1}, "what", "known are enabled"),
        ({"clientId": 5}, "clientId", "must be a string"),
        ({"scopes": ["a", 1]}, "scopes", "must be a string"),
        ({"grant": "password"}, "grant", "must be one of"),
        ({"client_secret": "${MISSING}", "client_id": "x"}, "client_secret", "MISSING"),
        ({"client_secret": "y"}, "client_id", "give"),
        ({"grant": "client_credentials", "client_id": "x"}, "grant", "has to be known"),
        ({"grant": "client_credentials", "client_id": "x", "client_secret": "y", "login": "user"}, "login", "no user"),
        ({"login": "team"}, "login", "must be one of"),
        ({"client_metadata_url": "http://a.example/c.json"}, "client_metadata_url", "https://"),
        ({"issuer": "ftp://x"}, "issuer", "not an address"),
        ({"redirect_uri": "http://[::1"}, "redirect_uri", "not an address"),
    ],
)
def test_a_mistake_is_named_with_its_key(oauth: Any, key: str, said: str) -> None:
    configuration = read(oauth)
    assert configuration.servers == ()
    texts = [str(problem) for problem in configuration.problems]
    assert any(key in text and said in text for text in texts), texts


def test_of_a_disabled_server_nothing_is_expanded() -> None:
    (server,) = read({"client_id": "${MISSING}"}, disabled=True).servers
    assert server.oauth.client_id == "${MISSING}"
