"""`add`, `edit` and `remove` as people meet them, with and without a daemon; what they refuse is recorded."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from supervisor.commands import own_file
from supervisor.host.places import noted
from supervisor.identity.operator_key import OperatorKey, endpoint
from supervisor.operator_pass import Challenge, NoPass, pass_for
from tests.e2e.daemons import Daemon, running, stand_in
from tests.supervisor.commands.test_cli import NOWHERE, invoke

TEXT = '{\r\n  // mine\r\n  "mcpServers": {"a": {"command": "cat"}}\r\n}\r\n'


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home in which no daemon runs."""
    place = tmp_path / "home"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.setenv("MCPVISOR_URL", NOWHERE)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.chdir(place)
    return place


@pytest.fixture
def file(home: Path) -> Path:
    path = home / "mcp.json"
    path.write_bytes(TEXT.encode())
    return path


def text_of(path: Path) -> str:
    return path.read_bytes().decode()


def failed(code: int, *arguments: str, stdin: str | None = None) -> str:
    result = invoke(*arguments, stdin=stdin)
    assert result.exit_code == code, result.output
    return result.output


def done(*arguments: str) -> Result:
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture
def editor(home: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the editors that are opened save, one after the other."""

    def saves(*texts: str | bytes) -> None:
        for number, text in enumerate(texts):
            (home / f"saved{number}").write_bytes(text if isinstance(text, bytes) else text.encode())
        script = home / "editor"
        count = (
            f'n=$(cat {home}/n 2>/dev/null || echo 0); echo $((n + 1)) > {home}/n; touch -d @1 "$1"; cat {home}/saved$n'
        )
        script.write_text(f'#!/bin/sh\n{count} > "$1"\n')
        script.chmod(0o755)
        monkeypatch.setenv("EDITOR", str(script))

    return saves


# Without a daemon -----------------------------------------------------------------------------------------------------


def test_the_first_server_makes_the_file_that_run_takes(home: Path) -> None:
    said = done("add", "files", "-e", "HOME", "-e", "A=b=c", "--", "cat", "-n").stderr
    path = home / ".config" / "mcpvisor" / "mcp.json"
    assert f"wrote {path}\n" in said
    entry = {"command": "cat", "args": ["-n"], "env": {"HOME": "${HOME}", "A": "b=c"}}
    assert json.loads(text_of(path)) == {"mcpServers": {"files": entry}}
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_is_changed_where_it_says_so_and_nowhere_else(file: Path) -> None:
    result = done("add", "far", "--url", "https://mcp.example.com", "--header", "X-Key: v", "--set", "idle_timeout_s=5")
    assert result.stdout == "no daemon runs with this file; start one with: mcpvisor run\n"
    assert f"what it held is in {file}.mcpvisor.bak" in result.stderr
    added = ', "far": {"url": "https://mcp.example.com", "headers": {"X-Key": "v"}, "idle_timeout_s": 5}}\r\n'
    assert text_of(file) == TEXT.replace("}}\r\n", "}" + added, 1)
    done("edit", "far", "--set", "headers.X-Key=7", "--unset", "idle_timeout_s", "--set", "env.DEBUG=true")
    entry = json.loads(text_of(file).replace("// mine", ""))["mcpServers"]["far"]
    assert entry == {"url": "https://mcp.example.com", "headers": {"X-Key": "7"}, "env": {"DEBUG": "true"}}
    done("remove", "far")
    assert text_of(file) == TEXT


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("add", "x", "--set", "k=" + "[" * 500 + "]" * 500, "--", "cat"), "nested too deeply"),
        (("add", "x", "--", "cat", "\udcff"), "x.args[0]: this is no text in UTF-8"),
        (("remove", "\udcff"), "this is no text in UTF-8"),
    ],
)
def test_what_no_file_can_hold_is_refused_and_changes_nothing(
    file: Path, arguments: tuple[str, ...], words: str
) -> None:
    assert words in failed(2, *arguments)
    assert text_of(file) == TEXT


def test_without_a_home_there_has_to_be_a_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    assert "name one with --config" in failed(78, "add", "x", "--", "cat")
    done("add", "x", "--config", "here.json", "--", "cat")
    assert "x" in text_of(home / "here.json")


def test_an_entry_that_was_left_out_already_hinders_no_other_change(file: Path) -> None:
    file.write_text('{"mcpServers": {"typo": {"comand": "x"},\n"a": {"command": "cat"},\n"B": {}, "b": {}}}')
    done("add", "x", "--", "cat")
    done("remove", "a")  # the lines that faults name are others now
    done("edit", "typo", "--set", "command=cat", "--unset", "comand")


@pytest.mark.parametrize("option", ["--url", "--daemon"])
def test_the_daemon_of_an_edit_is_named_as_at_every_other_command(file: Path, option: str) -> None:
    nobody = "http://127.0.0.1:1"
    done("edit", "a", option, nobody, "--set", "idle_timeout_s=7")
    done("remove", "a", option, nobody)


# In an editor ---------------------------------------------------------------------------------------------------------


def test_what_the_editor_saves_is_written_with_the_line_ends_it_had(file: Path, editor: Any) -> None:
    file.write_bytes(f"\ufeff{TEXT}".encode())
    editor(TEXT.replace("mine", "yours").replace("\r\n", "\n"))
    done("edit")
    assert text_of(file) == "\ufeff" + TEXT.replace("mine", "yours")


def test_an_editor_that_saves_the_same_or_nothing_changes_nothing(
    file: Path, editor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor(TEXT)
    assert "nothing was changed" in failed(1, "edit")
    monkeypatch.setenv("EDITOR", "true")
    assert "nothing was changed" in failed(1, "edit")
    monkeypatch.setenv("EDITOR", "/nonexistent/editor")
    assert "Editing failed" in failed(1, "edit")
    editor(b"\xff")
    (file.parent / "n").unlink()
    assert "not UTF-8" in failed(1, "edit")
    assert text_of(file) == TEXT


def test_a_broken_text_can_be_mended_in_the_editor_or_is_kept(file: Path, editor: Any) -> None:
    editor("{", '{"mcpServers": {}}')
    said = failed(0, "edit", stdin="y\n")
    assert "mcp.json:1: the file ends before" in said
    assert json.loads(text_of(file)) == {"mcpServers": {}}
    for stdin in ("n\n", ""):
        (file.parent / "n").unlink()
        assert "mcp.json is as it was" in failed(1, "edit", stdin=stdin)
        assert text_of(file.with_name(file.name + own_file.DRAFT_SUFFIX)) == "{"
        assert json.loads(text_of(file)) == {"mcpServers": {}}


def test_a_broken_file_can_be_mended_in_the_editor(file: Path, editor: Any) -> None:
    file.write_text("{")
    editor("{}")
    done("edit")
    assert text_of(file) == "{}"


# Whose key is read ----------------------------------------------------------------------------------------------------


def test_the_key_is_read_where_this_user_has_daemons_and_nowhere_else(tmp_path: Path) -> None:
    place, environ, end = tmp_path / "elsewhere", {"HOME": str(tmp_path)}, endpoint(("127.0.0.1", 1))
    place.mkdir()
    key = place / "page.key"
    operator = OperatorKey(b"k" * 32, b"boot", time.monotonic)
    told = operator.challenge(end)

    def shown(environ: dict[str, str] = environ) -> str:
        challenge = Challenge(told["challenge"], told["proof"])
        return pass_for(challenge, end, "GET", "/", environ)["authorization"].removeprefix("Bearer ")

    for content, mode in ((b"long secret" * 10, 0o600), (b"k" * 32, 0o644), (b"j" * 32, 0o600)):
        key.write_bytes(content)
        key.chmod(mode)
        with noted(place, environ), pytest.raises(NoPass, match=str(key) if content[:1] != b"j" else "shown nothing"):
            shown()
    key.write_bytes(b"k" * 32)
    for without in ({}, environ, {**environ, "MCPVISOR_DATA_DIR": f"{tmp_path}/\0"}):
        with pytest.raises(NoPass, match="was shown nothing"):
            shown(without)
    with noted(place, environ):
        assert operator.admits(shown(), end, "GET", "/")
    assert "6b6b6b" not in shown({"MCPVISOR_DATA_DIR": str(place)})


# With a daemon --------------------------------------------------------------------------------------------------------


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    with running(tmp_path / "daemon", {"one": stand_in("plain")}) as started:
        monkeypatch.setenv("MCPVISOR_URL", started.url)
        yield started


@pytest.mark.e2e
def test_a_running_daemon_follows_at_once(daemon: Daemon, tmp_path: Path, editor: Any) -> None:
    config = daemon.directory / "mcp.json"
    assert done("add", "two", "--", "cat").stdout == "1 server added (two)\n"
    assert done("edit", "two", "--set", "idle_timeout_s=9").stdout == "1 server replaced (two)\n"
    assert re.search(r'"two": \{"command": "cat", "idle_timeout_s": 9\}', text_of(config))
    assert "did you mean two" in failed(1, "remove", "tow")
    assert done("remove", "two").stdout == "1 server removed (two)\n"
    assert done("add", "mine", "--ephemeral", "--", "cat").stdout == "1 server added (mine)\n"
    assert "mine" not in text_of(config)
    assert "already" in failed(1, "add", "ONE", "--", "cat")
    link = tmp_path / "link.json"
    link.symlink_to(config)
    assert done("add", "three", "--config", str(link), "--", "cat").stdout == "1 server added (three)\n"
    elsewhere = done("add", "three", "--config", str(tmp_path / "other.json"), "--", "cat").stdout
    assert "no daemon runs with this file" in elsewhere
    editor(text_of(config).replace("three", "four"))
    own = "1 server added (four); 1 server removed (three)\n"
    assert done("edit").stdout in (own, "the daemon has taken it over already\n"), "it looks after its file, too"
    assert "nothing" in done("diff").stdout
    assert re.search(r"^four ", done("status").stdout, re.MULTILINE)
    (daemon.directory / "data" / "page.key").unlink()
    assert "does not have the key of a daemon of this user" in failed(1, "remove", "four")
    assert "four" in text_of(config)
