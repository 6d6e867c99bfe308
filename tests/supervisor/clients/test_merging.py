"""Which servers of clients come, under which names; we never come ourselves."""

from __future__ import annotations

from typing import Any

import pytest

from supervisor.clients.doors import is_own, own_entry
from supervisor.clients.entries import ServerSource, plan_moves
from supervisor.config.client_table import CLIENTS
from tests.supervisor.config.test_client_table import BY_NAME

LISTEN = "127.0.0.1:3001"
URL = f"http://{LISTEN}/mcp"


def source(client: str, **servers: Any) -> ServerSource:
    return ServerSource(client=BY_NAME[client], path="f", where=("mcpServers",), servers=servers)


def names(*sources: ServerSource, known: dict[str, Any] | None = None) -> list[tuple[str, str, bool]]:
    return [(move.key, move.name, move.is_new) for move in plan_moves(sources, known or {}, {LISTEN})]


def test_the_same_server_comes_once() -> None:
    one = {"command": "x", "args": ["${env:A}"], "env": {"K": "v"}}
    other = {"type": "stdio", "command": "x", "args": ["$A"], "env": {"K": "v"}, "trust": True}
    assert names(source("cursor", a=one), source("gemini", b=other)) == [("a", "a", True), ("b", "a", False)]


def test_what_is_here_already_stays_as_it_is() -> None:
    known = {"x": {"serverUrl": "http://h", "idle_timeout_s": 5}, "y": "no object"}
    assert names(source("cursor", a={"url": "http://h"}), known=known) == [("a", "x", False)]


def test_another_server_of_the_same_name_gets_that_of_its_client_behind_it() -> None:
    known = {"GitHub": {"command": "old"}, "github-gemini": {"command": "older"}}
    cursor, gemini = source("cursor", github={"command": "x"}), source("gemini", github={"command": "y"})
    assert names(cursor, gemini, known=known) == [
        ("github", "github-cursor", True),
        ("github", "github-gemini-2", True),
    ]


def test_a_name_that_none_may_have_here_is_made_one() -> None:
    long = "n" * 64
    known = {long: {"command": "old"}}
    servers = {"a:b|c": {"command": "x"}, "server/übung": {"command": "y"}, long: {"command": "z"}}
    assert [name for _, name, _ in names(source("zed", **servers), known=known)] == ["a-b-c", "bung", "n" * 60 + "-zed"]


@pytest.mark.parametrize("client", CLIENTS, ids=BY_NAME)
def test_what_we_write_into_a_client_is_never_taken(client: Any) -> None:
    entry = own_entry(client, URL, ["/opt/bin/mcpvisor", "stdio"])
    assert is_own(entry, {LISTEN})
    assert names(source(client.name, mcpvisor=entry)) == []


@pytest.mark.parametrize(
    ("members", "ours"),
    [
        ({"url": "http://localhost:3001/mcp/all"}, True),
        ({"url": "ws://[::1]:3001/mcp"}, True),
        ({"transport": {"type": "http", "url": URL}}, True),
        ({"command": "npx", "args": ["-y", "mcp-remote", URL]}, True),
        ({"command": ["mcpvisor", "stdio"]}, True),
        ({"command": {"path": "C:\\bin\\mcpvisor.exe", "args": ["stdio"]}}, True),
        ({"command": "/usr/bin/python3", "args": ["-m", "supervisor", "stdio"]}, True),
        ({"command": "uvx", "args": ["mcpvisor", "stdio"]}, True),
        ({"url": "http://localhost:3002/mcp"}, False),
        ({"url": "https://example.com:3001/mcp"}, False),
        ({"command": "x", "env": {"URL": URL}, "headers": {"Referer": URL}}, False),
        ({"command": "mcpvisor", "args": ["call"]}, False),
        ({"command": "x", "args": ["--api", f"http://{LISTEN}/api"]}, False),
        ({"command": 1, "args": {"a": None}}, False),
        ("mcpvisor", False),
    ],
)
def test_we_know_ourselves(members: Any, ours: bool) -> None:
    assert is_own(members, {LISTEN}) is ours
