"""Completion: by a real bash with our script, and what is offered where a daemon, a file, or nothing is there."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
import trio
from click.shell_completion import ShellComplete

from supervisor.cli import cli
from supervisor.commands import completion
from supervisor.daemon_client.client import DaemonClient
from supervisor.demo.setting import running_daemon
from supervisor.operations import Operation
from tests.e2e.fork_server import forking

NOWHERE = "http://127.0.0.1:1"
ROOT = Path(__file__).parents[3]
CAT = {"command": "cat"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with nothing in it, no daemon, and a working directory without a configuration."""
    for name in ("home", "elsewhere"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MCPVISOR_URL", NOWHERE)
    return tmp_path / "home"


def configure(home: Path, servers: dict[str, Any]) -> Path:
    file = home / ".config" / "mcpvisor" / "mcp.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"mcpServers": servers}))
    return file


def offered(*words: str) -> list[str]:
    """What is offered for the last of these words."""
    *before, incomplete = words
    items = ShellComplete(cli, {}, "mcpvisor", completion.VARIABLE).get_completions(before, incomplete)
    return [item.value for item in items]


def test_commands_are_offered_without_importing_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    monkeypatch.setattr("supervisor.cli.import_module", refuse)
    assert offered("ref") == ["refresh"]
    assert "--version" in offered("--")


@pytest.mark.parametrize(
    "words", [("logs",), ("wake",), ("logout",), ("explain",), ("edit",), ("remove",), ("tools", "--server")]
)
def test_servers_of_the_configuration_are_offered_where_one_is_asked_for(home: Path, words: tuple[str, ...]) -> None:
    configure(home, {"time": CAT, "maps": {**CAT, "slug": "m"}, "trip": {"comand": "x"}})
    assert offered(*words, "t") == ["time", "trip"]
    assert offered(*words, "") == ["m", "time", "trip"]


def test_a_server_is_not_offered_twice(home: Path) -> None:
    configure(home, {"time": CAT, "maps": CAT})
    assert offered("restart", "time", "") == ["maps"]
    assert offered("tools", "--server", "maps", "--server", "") == ["time"]


def test_the_file_that_is_named_counts(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"mcpServers": {"a": CAT}}))
    assert offered("explain", "--config", str(other), "") == ["a"]


def test_where_nothing_is_there_nothing_is_offered_and_nothing_said(
    home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert offered("logs", "") == []
    configure(home, {}).write_text("{")
    assert offered("logs", "") == []
    assert capfd.readouterr() == ("", "")


async def test_the_servers_of_the_daemon_are_offered_before_those_of_the_file(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(home, {"time": CAT})
    (tmp_path / "daemon").mkdir()
    document = {"mcpServers": {"clock": CAT, "off": {**CAT, "disabled": True}}, "supervisor": {"listen": "127.0.0.1:0"}}
    async with running_daemon(tmp_path / "daemon", document, forking()) as daemon:
        monkeypatch.setenv("MCPVISOR_URL", daemon.url)
        assert await trio.to_thread.run_sync(offered, "logs", "") == ["clock", "off"]
        assert await trio.to_thread.run_sync(offered, "remove", "") == ["clock", "off"]
        assert await trio.to_thread.run_sync(offered, "logs", "--url", NOWHERE, "") == ["time"]


def test_a_program_that_never_answers_is_waited_for_a_second_at_most(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(completion, "ANSWER_S", 0.05)
    configure(home, {"time": CAT})
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        assert offered("logs", "--url", f"http://127.0.0.1:{listener.getsockname()[1]}", "") == ["time"]


@pytest.mark.parametrize("servers", ["text", [1, {}, {"server": 2}, {"server": "\x1b[2J"}, {"server": "a:b"}]])
def test_what_something_else_answers_is_not_offered(
    home: Path, monkeypatch: pytest.MonkeyPatch, servers: object
) -> None:
    async def status(daemon: DaemonClient, operation: Operation) -> dict[str, Any]:
        await trio.lowlevel.checkpoint()
        return {"servers": servers}

    monkeypatch.setattr(DaemonClient, "perform", status)
    assert offered("logs", "") == []


BASH = """
eval "$(mcpvisor completion bash)"
complete -p mcpvisor
COMP_WORDS=({words} "") COMP_CWORD={at}
_mcpvisor_completion mcpvisor
echo "offered: ${{COMPREPLY[*]}}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("mcpvisor restart", "maps time"),
        ("mcpvisor restart maps", "time"),
    ],
)
def test_a_real_bash_completes(home: Path, tmp_path: Path, words: str, expected: str) -> None:
    configure(home, {"time": CAT, "maps": CAT})
    program = tmp_path / "mcpvisor"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(forking())} -m supervisor "$@"\n')
    program.chmod(0o755)
    script = BASH.format(words=words, at=len(words.split()))
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, env=environment, timeout=120, check=True
    )
    assert result.stderr == ""
    assert result.stdout.splitlines() == ["complete -o nosort -F _mcpvisor_completion mcpvisor", f"offered: {expected}"]
