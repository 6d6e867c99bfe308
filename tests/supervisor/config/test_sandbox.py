"""The object `sandbox` of an entry: what it means, and what would not be the sandbox that somebody wanted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from actors.transport.stdio.sandbox import Sandbox
from supervisor.config import Configuration, load, parse
from supervisor.config.entry import SandboxConfig

ENVIRON = {"HOME": "/home/me", "DOCS": "/srv/docs"}
BUBBLEWRAP = "bubblewrap"


def read(sandbox: Any, **more: Any) -> Configuration:
    entry = {"command": "c", "sandbox": sandbox, **more}
    return parse(json.dumps({"mcpServers": {"near": entry}}), Path("/x/mcp.json"), ENVIRON)


@pytest.mark.parametrize("sandbox", ["none", {"kind": "none"}])
def test_no_server_is_in_one_unasked(sandbox: Any) -> None:
    without = parse('{"mcpServers": {"a": {"command": "c"}}}', Path("/x/mcp.json"), ENVIRON)
    for configuration in (read(sandbox), without):
        assert configuration.problems == ()
        assert configuration.servers[0].launch.sandbox is None


def test_a_word_is_enough() -> None:
    (server,) = read(BUBBLEWRAP).servers
    assert server.sandbox == SandboxConfig(kind="bubblewrap")
    assert server.launch.sandbox == Sandbox()


def test_paths_start_at_the_home_or_at_the_file_and_are_in_their_normal_form() -> None:
    places = ["~/my notes", "${DOCS}", "data/../more/", "/srv//x"]
    (server,) = read({"kind": BUBBLEWRAP, "read": places, "write": ["~/.npm"], "network": True, "_why": "npx"}).servers
    assert server.launch.sandbox == Sandbox(
        read=("/home/me/my notes", "/srv/docs", "/x/more", "/srv/x"), write=("/home/me/.npm",), network=True
    )


@pytest.mark.parametrize(
    ("sandbox", "more", "key", "said"),
    [
        ("firejail", {}, "kind", 'must be one of "bubblewrap", "none"'),
        (5, {}, "sandbox", "must be an object"),
        ({}, {}, "sandbox", 'write "kind": "bubblewrap"'),
        ({"network": True}, {}, "sandbox", "without a kind"),
        ({"kind": BUBBLEWRAP, "reed": []}, {}, "reed", 'did you mean "read"'),
        ({"kind": BUBBLEWRAP, "read": "/x"}, {}, "read", "must be a list of at most 64 strings"),
        ({"kind": BUBBLEWRAP, "read": ["/a"] * 65}, {}, "read", "must be a list of at most 64 strings"),
        ({"kind": BUBBLEWRAP, "network": "yes"}, {}, "network", "must be true or false"),
        ({"kind": BUBBLEWRAP, "read": ["${NO}"]}, {}, "read", "NO"),
        ({"kind": BUBBLEWRAP, "read": ["/a\0"]}, {}, "read", "NUL"),
        ({"kind": BUBBLEWRAP, "write": ["~"]}, {}, "write", "home directory"),
        ({"kind": BUBBLEWRAP, "read": ["/home/me/x/.."]}, {}, "read", "home directory"),
        ({"kind": BUBBLEWRAP, "read": ["/"]}, {}, "read", "home directory"),
        ({"kind": BUBBLEWRAP, "write": ["/proc/self"]}, {}, "write", "devices and processes of its own"),
        (BUBBLEWRAP, {"cwd": "~"}, "cwd", "home directory"),
        (BUBBLEWRAP, {"command": None, "url": "https://a.example"}, "sandbox", "only a server that is a process"),
    ],
)
def test_what_would_be_another_sandbox_is_a_problem(sandbox: Any, more: dict[str, Any], key: str, said: str) -> None:
    entry = {name: value for name, value in more.items() if value is not None}
    if "url" in more:
        text = json.dumps({"mcpServers": {"far": {"sandbox": sandbox, **entry}}})
        configuration = parse(text, Path("/x/mcp.json"), ENVIRON)
    else:
        configuration = read(sandbox, **entry)
    assert configuration.servers == ()
    (problem,) = configuration.problems
    assert key in problem.key
    assert said in f"{problem.message} {problem.hint}"


def test_a_disabled_entry_is_not_expanded() -> None:
    configuration = read({"kind": BUBBLEWRAP, "read": ["${NO}"]}, disabled=True)
    assert [str(problem) for problem in configuration.problems] == []


def test_what_is_missing_for_it_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.transport.stdio.sandbox.SEARCHED", "/nowhere")
    sandbox = {"kind": BUBBLEWRAP, "read": ["gone", "."], "write": []}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"s": {"command": "/bin/true", "sandbox": sandbox}}}))
    notes = load(tmp_path / "mcp.json", ENVIRON).notes
    assert [(note.key.removeprefix("mcpServers.s."), note.message) for note in notes] == [
        ("sandbox", "the server cannot be started: bwrap is not installed, and the server asks for a sandbox"),
        ("sandbox.read[0]", "there is no such file or directory"),
    ]
