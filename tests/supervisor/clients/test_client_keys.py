"""Every key that a client documents: `run` and `check` take its entry, `import` too, and what is lost is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from _pytest.mark import ParameterSet

from supervisor.clients.entries import Taken, take
from supervisor.config import Configuration, parse
from supervisor.config.client_table import CLIENTS, client_of_file
from supervisor.config.clients import ClientKey, Machine
from tests.supervisor.config.test_client_table import BY_NAME

ENVIRON = {"HOME": "/home/me", "V": "v"}
MACHINE = Machine(platform="linux", environ=ENVIRON, home="/home/me")
VALUES: Final[dict[str, Any]] = {
    "command": "x",
    "args": ["a"],
    "env": {"A": "b"},
    "cwd": "/d",
    "url": "http://h/mcp",
    "headers": {"A": "b"},
    "envFile": None,
    "disabled": True,
    "description": "what it is for",
    "oauth": {},
    "tools": ["a"],
    "type": "http",
    "env_http_headers": {"A": "V"},
    "bearer_token_env_var": "V",
    "env_vars": ["V"],
    "enabled": True,
    "trust": True,
    "oauth.enabled": True,
    "oauth.redirectUri": "https://h/back",
    "oauth.redirect_uri": "https://h/back",
    "oauth.issuer": "https://h",
    "oauth.scopes": ["a"],
}
"""By our key, or theirs, where a word does not do."""


def rows(fits: Callable[[ClientKey], bool]) -> list[ParameterSet]:
    return [
        pytest.param(name, key, id=f"{name}-{key.name}")
        for name, client in BY_NAME.items()
        for key in client.keys
        if fits(key)
    ]


def value_of(key: ClientKey) -> Any:
    match key.meaning:
        case "time":
            return 3000
        case "allow" | "deny" | "approve":
            return ["a"]
    return VALUES[key.name] if key.name in VALUES else VALUES.get(key.to, "word")


def entry_with(key: ClientKey) -> dict[str, Any]:
    outer, dot, inner = key.name.partition(".")
    members = {outer: {inner: value_of(key)} if dot else value_of(key)}
    if "secret" in inner.lower():
        members[outer] |= {"client_id": "id"}
    ways = {"command", "url", "type", "http_headers", "headers"}
    is_remote = {key.name, key.to} & ways - {"command"} or key.name.startswith("oauth")
    if "command" not in (key.name, key.to) and "url" not in (key.name, key.to):
        members |= {"url": "http://h/mcp"} if is_remote else {"command": "x"}
    return members


def parsed(members: dict[str, Any], path: str) -> Configuration:
    return parse(json.dumps({"mcpServers": {"s": members}}), Path(path), ENVIRON)


@pytest.mark.parametrize(("name", "key"), rows(lambda key: True))
def test_a_documented_key_refuses_no_entry_and_is_named_if_it_does_nothing(name: str, key: ClientKey) -> None:
    members, client = entry_with(key), BY_NAME[name]
    for path in ("/p/mcp.json", "/p/cline_mcp_settings.json"):
        configuration = parsed(members, path)
        assert configuration.problems == ()
        assert len(configuration.servers) == 1
    taken = take(members, client)
    assert isinstance(taken, Taken)
    outer = key.name.partition(".")[0]
    if key.meaning == "unused":
        noted = [note.key for note in parse_as(members, name).notes if note.message.startswith("not used here")]
        assert noted == [f"mcpServers.s.{key.name}"]
        assert {outer, key.name} & {*taken.left_out}
    elif outer != "oauth":
        assert taken.left_out == ()
    again = parsed(taken.entry, "/p/mcp.json")
    assert again.problems == ()
    assert len(again.servers) == 1


def parse_as(members: dict[str, Any], name: str) -> Configuration:
    """Return what `run` makes of the entry in a file of the client, in whatever form it keeps them otherwise."""
    text = json.dumps({"mcpServers": {"s": members}})
    return parse(text, Path("/p/mcp.json"), ENVIRON, client=BY_NAME[name])


@pytest.mark.parametrize(("name", "key"), rows(lambda key: key.meaning == "time"))
def test_a_time_means_the_same_by_run_and_by_import(name: str, key: ClientKey) -> None:
    members = entry_with(key)
    seconds = 3000 * key.unit_s
    (server,) = parse_as(members, name).servers
    assert getattr(server, key.to) == seconds
    taken = take(members, BY_NAME[name])
    assert isinstance(taken, Taken)
    assert taken.entry[key.to] == seconds


@pytest.mark.parametrize(("name", "key"), rows(lambda key: "." not in key.name))
def test_null_is_as_if_the_key_were_not_there(name: str, key: ClientKey) -> None:
    members = {"command": "x", key.name: None} if key.name != "command" else {"url": "http://h/mcp", "command": None}
    configuration = parse_as(members, name)
    assert configuration.problems == ()
    taken = take(members, BY_NAME[name])
    assert isinstance(taken, Taken)
    assert key.name not in taken.entry or key.name == "command"
    assert taken.left_out == ()


def test_a_variable_that_is_null_is_not_passed_on() -> None:
    members = {"command": "x", "env": {"A": None, "B": "b", "C": 2.5}}
    text = json.dumps({"supervisor": {"pass_env": ["A"]}, "servers": {"s": members}})
    (server,) = parse(text, Path("/p/mcp.json"), {"A": "a"}).servers
    assert server.env == {"B": "b", "C": "2.5"}


@pytest.mark.parametrize("name", [client.name for client in CLIENTS])
def test_the_file_of_a_client_is_known_as_one_by_its_path(name: str) -> None:
    place = BY_NAME[name].places(MACHINE)[-1]
    client = client_of_file(Path(place))
    assert client is not None
    assert client.name == name
    assert client_of_file(Path("/home/me/mcp.json")) is None
