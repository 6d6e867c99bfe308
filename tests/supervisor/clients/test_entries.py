"""Servers as clients write them, as entries of ours: nothing is lost without a word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.clients.documents import read_servers
from supervisor.clients.entries import Taken, take
from supervisor.config import parse
from supervisor.config.client_table import CLIENTS
from tests.supervisor.clients.files import SAMPLES
from tests.supervisor.config.test_client_table import BY_NAME
from tests.supervisor.config.test_jsonc import json_values

KEYS = st.sampled_from(
    [
        *("command", "args", "env", "cwd", "url", "headers", "type", "transport", "timeout", "timeoutMs", "enabled"),
        *("disabled", "tools", "disabledTools", "includeTools", "env_vars", "env_http_headers", "httpUrl", "oauth"),
        *("bearer_token_env_var", "envFile", "autoApprove", "_comment", "colour"),
    ]
)


def entry(client: str, members: dict[str, Any], folder: str | None = None) -> Taken:
    taken = take(members, BY_NAME[client], folder)
    assert isinstance(taken, Taken), taken
    return taken


@pytest.mark.parametrize(
    ("client", "members", "ours"),
    [
        ("cursor", {"command": "x", "args": ["${env:A}"], "env": {"N": 3}},
         {"command": "x", "args": ["${A}"], "env": {"N": "3"}}),
        ("claude-code", {"type": "ws", "url": "wss://h"}, {"type": "ws", "url": "wss://h"}),
        ("vscode", {"type": "stdio", "command": "x", "gallery": True}, {"command": "x", "gallery": True}),
        ("windsurf", {"serverUrl": "http://h"}, {"url": "http://h"}),
        ("cline", {"url": "http://h", "timeout": 30}, {"type": "sse", "url": "http://h", "call_timeout_s": 30}),
        ("cline", {"transport": {"type": "streamableHttp", "url": "http://h"}}, {"type": "http", "url": "http://h"}),
        ("roo", {"command": "x", "disabled": True, "alwaysAllow": ["a"]},
         {"command": "x", "disabled": True, "alwaysAllow": ["a"]}),
        ("zed", {"command": {"path": "x", "args": ["a"]}}, {"command": "x", "args": ["a"]}),
        ("qwen", {"url": "http://h"}, {"type": "sse", "url": "http://h"}),
        ("qwen", {"httpUrl": "http://h", "timeout": 1500}, {"type": "http", "url": "http://h", "call_timeout_s": 1.5}),
        ("opencode", {"type": "local", "command": ["x", "a"], "environment": {"K": "{env:V}"}, "enabled": False},
         {"command": "x", "args": ["a"], "env": {"K": "${V}"}, "disabled": True}),
        ("opencode", {"type": "remote", "url": "http://h", "enabled": True}, {"type": "http", "url": "http://h"}),
        ("copilot", {"type": "http", "url": "http://h", "tools": ["*"]}, {"type": "http", "url": "http://h"}),
        ("copilot", {"command": "x", "tools": ["a"]}, {"command": "x", "tools": {"allow": ["a"]}}),
        ("droid", {"command": "x", "timeoutMs": 250}, {"command": "x", "call_timeout_s": 0.25}),
        ("warp", {"command": "x", "working_directory": "/d"}, {"command": "x", "cwd": "/d"}),
        ("codex", {"url": "http://h", "env_http_headers": {"A": "B"}, "http_headers": {"C": "d"}},
         {"url": "http://h", "headers": {"C": "d", "A": "${B}"}}),
        ("codex", {"command": "x", "env_vars": [{"name": "V", "source": "local"}]},
         {"command": "x", "env": {"V": "${V}"}}),
        ("claude-code", {"command": "x", "timeout": 30000}, {"command": "x", "call_timeout_s": 30}),
        ("kiro", {"command": "x", "timeout": 30000}, {"command": "x", "call_timeout_s": 30}),
        ("opencode", {"command": ["x"], "timeout": {"startup": 1500, "execution": 60000}},
         {"command": "x", "args": [], "start_timeout_s": 1.5, "call_timeout_s": 60}),
        ("zed", {"command": "x", "args": [], "env": None, "timeout": None}, {"command": "x", "args": []}),
        ("codex", {"command": "x", "env_vars": ["V"], "startup_timeout_ms": 1000},
         {"command": "x", "env": {"V": "${V}"}, "start_timeout_s": 1}),
        ("cursor", {"command": "x", "tools": {"allow": ["a"]}}, {"command": "x", "tools": {"allow": ["a"]}}),
        ("cursor", {"command": "x", "_comment": "c"}, {"command": "x", "_comment": "c"}),
    ],
)  # fmt: skip
def test_an_entry_is_ours(client: str, members: dict[str, Any], ours: dict[str, Any]) -> None:
    taken = entry(client, members)
    assert taken.entry == ours
    assert (taken.notes, taken.left_out) == ((), ())


@pytest.mark.parametrize(
    ("members", "left_out"),
    [
        ({"colour": "red"}, "colour"),
        ({"oauth": {"accessToken": "t"}}, "oauth"),
        ({"type": "carrier pigeon"}, "type"),
        ({"type": ["http"]}, "type"),
        ({"timeout": "soon"}, "timeout"),
        ({"timeout": 0}, "timeout"),
        ({"tool_timeout_sec": 10**400}, "tool_timeout_sec"),
        ({"enabled": "yes"}, "enabled"),
        ({"disabledTools": "all"}, "disabledTools"),
        ({"tools": {"search": {"approval_mode": "approve"}}}, "tools"),
        ({"env_vars": [5]}, "env_vars"),
    ],
)
def test_what_has_no_meaning_here_is_named(members: dict[str, Any], left_out: str) -> None:
    taken = entry("codex", {"command": "x", **members})
    assert taken.entry == {"command": "x"}
    assert taken.left_out == (left_out,)


@pytest.mark.parametrize("members", [[], "x", {}, {"settings": {}}, {"command": []}, {"enabled": False}])
def test_what_is_no_server_is_said(members: Any) -> None:
    assert isinstance(take(members, BY_NAME["opencode"]), str)


def test_paths_of_a_project_start_there() -> None:
    members = {"command": "./run", "cwd": "sub", "envFile": "${workspaceFolder}/.env"}
    taken = entry("vscode", members, "/p")
    assert taken.entry == {"command": "/p/run", "cwd": "/p/sub", "envFile": "/p/.env"}
    assert taken.notes == ()
    assert entry("claude-code", {"command": "x", "args": ["."]}, "/p").entry == {
        "command": "x",
        "args": ["."],
        "cwd": "/p",
    }
    assert "cwd" not in entry("claude-code", {"url": "http://h"}, "/p").entry
    assert entry("claude-code", {"command": "x", "args": ["a.b", "--root=../d"]}).notes == (
        "args[1] is relative to where the client runs: write an absolute path",
    )
    taken = entry("vscode", members)
    assert taken.entry == members
    assert taken.notes == tuple(
        f"{key} is relative to where the client runs: write an absolute path" for key in ("command", "cwd")
    )


@given(st.dictionaries(KEYS, json_values, max_size=5), st.sampled_from(CLIENTS))
def test_no_entry_is_too_odd(members: dict[str, Any], client: Any) -> None:
    taken = take(members, client)
    if isinstance(taken, Taken):
        json.dumps(taken.entry)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.client)
def test_what_comes_from_real_files_is_a_configuration(sample: Any) -> None:
    client = BY_NAME[sample.client]
    servers = read_servers(client.format, sample.text, client.servers, "f")
    taken = {name: take(members, client) for name, members in servers.items()}
    good = {name: each.entry for name, each in taken.items() if isinstance(each, Taken)}
    assert tuple(good) == sample.servers
    environ = dict.fromkeys(("GITHUB_TOKEN", "PERPLEXITY_KEY", "ISSUES_TOKEN", "MAPS_KEY", "SLACK_TOKEN"), "v")
    configuration = parse(json.dumps({"mcpServers": good}), Path("/c/mcp.json"), environ)
    assert configuration.problems == ()
    assert {server.name for server in configuration.servers} == set(sample.servers)
