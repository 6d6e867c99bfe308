"""A program or a directory that is not there is said before anything is started."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from actors.transport.stdio.remedies import how_to_install
from supervisor.config import load

LINE = '"args": ["-y", "some-package"]'


def notes(tmp_path: Path, entry: dict[str, Any]) -> list[tuple[str, int | None, str, str]]:
    """Return key, line, message and hint of what is said of an entry. `bin` is the PATH."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "uvx").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "uvx").chmod(0o755)
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"s": entry}}, indent=1))
    configuration = load(file, {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)})
    assert configuration.problems == ()
    return [(note.key.rpartition(".")[2], note.line, note.message, note.hint) for note in configuration.notes]


STARTED = "the program cannot be started: "


@pytest.mark.parametrize(
    ("entry", "where", "said", "hint"),
    [
        (
            {"command": "uvxx"},
            ("command", 4),
            f"{STARTED}it was not found on the PATH",
            'did you mean "uvx"? Or install it',
        ),
        (
            {"command": "npx"},
            ("command", 4),
            f"{STARTED}it was not found on the PATH",
            f"{how_to_install('npx')}, or write its absolute path; a service often has a shorter PATH than your shell",
        ),
        ({"command": "/canary"}, ("command", 4), f"{STARTED}no such file", "correct the path, or install the program"),
        ({"command": "uvx", "cwd": "canary"}, ("cwd", 5), "the directory does not exist", "make it"),
        ({"command": "uvx", "cwd": "long" * 70}, ("cwd", 5), "the directory cannot be used: File name too long", ""),
        ({"command": "uvx", "cwd": "loop"}, ("cwd", 5), "the directory cannot be used: Too many levels", ""),
        ({"command": "uvx", "env": {"PATH": "/nowhere"}}, ("command", 4), f"{STARTED}it was not found on the PATH", ""),
        ({"command": "uvx some-server"}, ("command", 4), f"{STARTED}this is a whole command line", LINE),
        ({"command": "uvx @scope/some-server --flag"}, ("command", 4), f"{STARTED}this is a whole command line", LINE),
    ],
)
def test_what_is_not_there_is_noted_with_what_to_do(
    tmp_path: Path, entry: dict[str, Any], where: tuple[str, int], said: str, hint: str
) -> None:
    (tmp_path / "loop").symlink_to("loop")
    ((*place, message, advice),) = notes(tmp_path, entry)
    assert tuple(place) == where
    assert message.startswith(said)
    assert hint in advice


def test_a_directory_below_one_that_may_not_be_entered_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = os.stat

    def denied(path: Any, *args: Any, **more: Any) -> os.stat_result:
        if "private" in str(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return look(path, *args, **more)

    monkeypatch.setattr(os, "stat", denied)  # root may enter everything
    ((key, _, message, _),) = notes(tmp_path, {"command": "uvx", "cwd": "private/below"})
    assert (key, message) == ("cwd", "the directory cannot be used: Permission denied")


def test_a_daemon_started_where_its_directory_is_gone_reads_its_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    ((key, _, message, _),) = notes(tmp_path, {"command": "uvx"})
    assert (key, message) == ("cwd", "the directory does not exist")


@pytest.mark.parametrize(
    "entry", [{"command": "uvx"}, {"url": "https://x.example"}, {"command": "no", "disabled": True}]
)
def test_what_is_there_or_not_needed_is_not_noted(tmp_path: Path, entry: dict[str, Any]) -> None:
    assert notes(tmp_path, entry) == []


def test_a_command_line_behind_a_path_is_noted_as_one(tmp_path: Path) -> None:
    ((_, _, message, hint),) = notes(tmp_path, {"command": f"{tmp_path}/bin/uvx x/y"})
    assert message == f"{STARTED}this is a whole command line"
    assert LINE in hint


def test_a_program_whose_path_has_blanks_is_none(tmp_path: Path) -> None:
    (tmp_path / "my tools").mkdir()
    program = tmp_path / "my tools" / "server"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert notes(tmp_path, {"command": str(program)}) == []
