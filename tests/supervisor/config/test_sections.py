"""Objects within an entry and within `supervisor`: read whole, with variables, paths and defaults; no secret is shown.

What is wrong with them is in `test_told`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from actors.transport.stdio.resources.allotment import MemoryBounds
from actors.transport.stdio.sandbox import Sandbox
from supervisor.config import Configuration, OAuthConfig, ServerConfig, Settings, load, parse
from supervisor.config.entry import SandboxConfig
from supervisor.config.expansion import DEFAULT
from supervisor.config.provenance import EffectiveValue, explain_daemon
from supervisor.config.sections import FleetSettings

SECRET = "hunter22" * 5
ENVIRON = {"HOME": "/home/me", "DOCS": "/srv/docs", "SECRET": SECRET}
URL = "https://a.example/mcp"


def read(**supervisor: Any) -> Configuration:
    return parse(json.dumps({"mcpServers": {}, "supervisor": supervisor}), Path("/x/mcp.json"), ENVIRON)


def settings(**supervisor: Any) -> Settings:
    return read(**supervisor).settings


def server(**entry: Any) -> ServerConfig:
    configuration = parse(json.dumps({"mcpServers": {"s": entry}}), Path("/x/mcp.json"), ENVIRON)
    assert configuration.problems == ()
    return configuration.servers[0]


def test_memory_is_said_in_mib_and_meant_in_bytes() -> None:
    written = {"limit_mib": 4096, "reserve_mib": 0, "pressure_percent": 5, "_comment": "x"}
    bounds = MemoryBounds(limit_bytes=4 << 30, reserve_bytes=0, pressure_percent=5.0)
    assert settings(memory=written).memory.bounds == bounds
    assert settings().memory.bounds == MemoryBounds()


def test_a_daemon_is_alone_unless_it_names_an_engine_or_nodes() -> None:
    assert settings(fleet={}).fleet == FleetSettings()
    assert settings(fleet={"node": "a"}).fleet.engine == ""
    assert settings(fleet={"nodes": 2}).fleet == FleetSettings(nodes=2)
    assert settings(fleet={"nodes": 2, "listen": "10.0.0.1:65534"}).fleet.nodes == 2
    fleet = settings(fleet={"engine": "redis://h${DOCS}:1", "keys": ["${SECRET}", "k" * 32]}).fleet
    assert (fleet.engine, fleet.keys) == ("redis://h/srv/docs:1", (SECRET, "k" * 32))


MODEL = {"url": "https://models.example.com/v1", "model": "small", "key": "${SECRET}"}


@pytest.mark.parametrize(
    ("describe", "is_on", "called"),
    [
        (MODEL, True, "small"),
        ({"command": ["${DOCS}/ask", "--json"]}, True, "ask"),
        ({"url": "http://127.0.0.1:11434/v1", "model": "small"}, True, "small"),
        ({"url": "http://models.lan/v1", "model": "small", "insecure_http": True}, True, "small"),
        ({"sampling": True}, True, "the model of a client"),
        ({"_comment": "later"}, False, ""),
        ({}, False, ""),
    ],
)
def test_a_model_is_behind_a_service_or_a_program_or_there_is_none(describe: Any, is_on: bool, called: str) -> None:
    found = settings(describe=describe).describe
    assert found.is_on == is_on
    assert not is_on or found.called == called
    assert (found.tools_per_day, found.batch, found.timeout_s) == (1000, 10, 120.0)


SINK = {"name": "a", "url": "https://example.com/x", "secret": "${SECRET}", "headers": {"x-key": "${SECRET}"}}


def test_places_for_events_have_their_variables_and_paths_filled_in() -> None:
    sinks = [
        SINK,
        {"name": "b", "type": "file", "path": "events.jsonl", "_comment": "x"},
        {"name": "c", "type": "file", "path": "~/events.jsonl"},
        {"name": "d", "type": "store", "days": 7},
    ]
    http, file, home, store = settings(event_sinks=sinks).event_sinks
    assert (http.secret, http.headers) == (SECRET, {"x-key": SECRET})
    assert (file.path, home.path, store.days) == ("/x/events.jsonl", "/home/me/events.jsonl", 7)
    assert (http.interval_s, http.batch_events, http.queue_events) == (3.0, 100, 10_000)
    assert http.wants("mcp.tool.executed")


@pytest.mark.parametrize(
    "more",
    [
        {"url": "http://127.0.0.1:8000/"},
        {"url": "http://localhost/"},
        {"url": "https://e.x/?a=b"},
        {"url": "http://example.com/", "insecure_http": True},
    ],
)
def test_an_address_that_nobody_reads_along_or_that_is_wanted_so_is_taken(more: dict[str, Any]) -> None:
    assert settings(event_sinks=[SINK | more]).event_sinks[0].url == more["url"]


def test_no_secret_of_a_section_is_shown() -> None:
    found = read(describe=MODEL, event_sinks=[SINK])
    assert found.settings.describe.key == SECRET
    shown = explain_daemon(found, EffectiveValue(key="data_dir", value="/x", origin=DEFAULT), ENVIRON)
    assert SECRET not in repr((found.settings, shown))


# Of an entry ----------------------------------------------------------------------------------------------------------


def test_without_a_word_of_it_logins_are_possible() -> None:
    assert server(url=URL).oauth == OAuthConfig()
    assert OAuthConfig().enabled


def test_how_a_login_is_made_is_read_in_our_words_and_in_those_of_other_programs() -> None:
    ours = {"client_id": "x", "client_secret": "${SECRET}", "scope": "a b", "enabled": False}
    oauth = server(url=URL, oauth=ours).oauth
    assert oauth == OAuthConfig(client_id="x", client_secret=SECRET, scope="a b", enabled=False)
    assert SECRET not in repr(oauth)
    foreign = {"clientId": "x", "clientSecret": "y", "scopes": ["a", "b"], "redirectUri": "http://localhost:1/cb"}
    assert server(url=URL, oauth=foreign).oauth == OAuthConfig(
        client_id="x", client_secret="y", scope="a b", redirect_uri="http://localhost:1/cb"
    )
    assert server(url=URL, oauth={"_note": 1, "scopes": "a"}).oauth == OAuthConfig(scope="a")
    assert server(url=URL, oauth={"client_id": "${MISSING}"}, disabled=True).oauth.client_id == "${MISSING}"


def test_no_server_is_in_a_sandbox_unasked_and_a_word_is_enough() -> None:
    for entry in ({}, {"sandbox": "none"}, {"sandbox": {"kind": "none"}}):
        assert server(command="c", **entry).launch.sandbox is None
    asked = server(command="c", sandbox="bubblewrap")
    assert (asked.sandbox, asked.launch.sandbox) == (SandboxConfig(kind="bubblewrap"), Sandbox())


def test_paths_of_a_sandbox_start_at_the_home_or_at_the_file_and_are_in_their_normal_form() -> None:
    places = ["~/my notes", "${DOCS}", "data/../more/", "/srv//x"]
    sandbox = {"kind": "bubblewrap", "read": places, "write": ["~/.npm"], "network": True, "_why": "npx"}
    assert server(command="c", sandbox=sandbox).launch.sandbox == Sandbox(
        read=("/home/me/my notes", "/srv/docs", "/x/more", "/srv/x"), write=("/home/me/.npm",), network=True
    )


def test_what_is_missing_for_a_sandbox_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.transport.stdio.sandbox.SEARCHED", "/nowhere")
    sandbox = {"kind": "bubblewrap", "read": ["gone", "."], "write": []}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"s": {"command": "/bin/true", "sandbox": sandbox}}}))
    notes = load(tmp_path / "mcp.json", ENVIRON).notes
    assert [(note.key.removeprefix("mcpServers.s."), note.message) for note in notes] == [
        ("sandbox", "the server cannot be started: bwrap is not installed, and the server asks for a sandbox"),
        ("sandbox.read[0]", "there is no such file or directory"),
    ]


def test_replicas_and_instances_are_taken_with_variables_and_hide_their_secrets() -> None:
    entry = server(url=URL, replicas=["https://two.example/${SECRET}/mcp"])
    assert entry.replicas == (f"https://two.example/{SECRET}/mcp",)
    assert SECRET not in entry.mask()(f"no answer from {entry.replicas[0]}")
    assert server(command="x", instances="per_client", max_instances=3).max_instances == 3
