"""Variables for all local servers: by name from the daemon's environment, or set for all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from supervisor.config import ServerConfig, launch_digest, parse

FILE = Path("/etc/mcp/mcp.json")
ENVIRON = {
    "HOME": "/home/me",
    "KUBECONFIG": "/k",
    "AWS_PROFILE": "dev",
    "AWS_REGION": "eu",
    "AWSX": "no",
    "EVIL": "() { :; }",
}


def server(supervisor: dict[str, Any], entry: dict[str, Any] | None = None) -> ServerConfig:
    document = {"mcpServers": {"s": {"command": "c", **(entry or {})}}, "supervisor": supervisor}
    (found,) = parse(json.dumps(document), FILE, ENVIRON).servers
    return found


def test_variables_that_are_named_pass_to_every_local_server() -> None:
    assert server({"pass_env": ["KUBECONFIG", "NOT_SET"]}).env == {"KUBECONFIG": "/k"}
    assert server({"pass_env": ["AWS_*"]}).env == {"AWS_PROFILE": "dev", "AWS_REGION": "eu"}
    assert server({}).env == {}


def test_a_function_of_a_shell_does_not_pass() -> None:
    assert server({"pass_env": ["E*", "H*"]}).env == {"HOME": "/home/me"}


def test_variables_that_are_set_for_all_are_expanded_and_give_way_to_an_entrys_own() -> None:
    supervisor = {"pass_env": ["KUBECONFIG", "AWS_REGION"], "env": {"AWS_REGION": "us", "ROOT": "${HOME}/r"}}
    found = server(supervisor, {"env": {"ROOT": "/own"}})
    assert found.env == {"KUBECONFIG": "/k", "AWS_REGION": "us", "ROOT": "/own"}
    assert found.passed == ("KUBECONFIG",)


def test_a_remote_or_disabled_server_gets_none() -> None:
    shared = {"env": {"A": "b"}}
    assert server(shared, {"disabled": True}).env == {}
    remote = json.dumps({"mcpServers": {"s": {"url": "https://x.example"}}, "supervisor": shared})
    assert parse(remote, FILE, ENVIRON).servers[0].env == {}


def test_what_is_known_of_a_server_outlives_a_passed_variable_that_changes_but_not_one_that_is_set() -> None:
    def digest(supervisor: dict[str, Any], environ: dict[str, str]) -> str:
        document = {"mcpServers": {"s": {"command": "c"}}, "supervisor": supervisor}
        (found,) = parse(json.dumps(document), FILE, environ).servers
        return launch_digest(found, {}, key=b"k" * 32)

    passing = {"pass_env": ["DISPLAY"]}
    assert digest(passing, {"DISPLAY": ":0"}) == digest(passing, {"DISPLAY": ":1"})
    setting = {"env": {"DISPLAY": "${DISPLAY}"}}
    assert digest(setting, {"DISPLAY": ":0"}) != digest(setting, {"DISPLAY": ":1"})


def test_values_are_not_shown() -> None:
    text = json.dumps({"supervisor": {"env": {"TOKEN": "canary"}}})
    assert "canary" not in repr(parse(text, FILE, ENVIRON).settings)
