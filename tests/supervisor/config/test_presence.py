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


def test_a_program_that_is_not_on_the_path_is_noted_with_the_one_that_was_probably_meant(tmp_path: Path) -> None:
    ((key, line, message, hint),) = notes(tmp_path, {"command": "uvxx"})
    assert (key, line) == ("command", 4)
    assert message == "the program cannot be started: it was not found on the PATH"
    assert hint.startswith('did you mean "uvx"? Or install it')


def test_a_known_program_that_is_missing_is_noted_with_how_to_install_it(tmp_path: Path) -> None:
    ((_, _, _, hint),) = notes(tmp_path, {"command": "npx"})
    assert (
        hint
        == f"{how_to_install('npx')}, or write its absolute path; a service often has a shorter PATH than your shell"
    )


def test_a_program_by_its_path_that_is_not_there_is_noted(tmp_path: Path) -> None:
    ((key, _, message, hint),) = notes(tmp_path, {"command": str(tmp_path / "canary")})
    assert (key, message) == ("command", "the program cannot be started: no such file")
    assert hint == "correct the path, or install the program"


def test_a_directory_that_is_not_there_is_noted(tmp_path: Path) -> None:
    ((key, line, message, _),) = notes(tmp_path, {"command": "uvx", "cwd": "canary"})
    assert (key, line, message) == ("cwd", 5, "the directory does not exist")


@pytest.mark.parametrize(
    ("cwd", "reason"),
    [("long" * 70, "cannot be used: File name too long"), ("loop", "cannot be used: Too many levels")],
)
def test_a_directory_nobody_can_look_at_is_noted_and_the_other_entries_are_read(
    tmp_path: Path, cwd: str, reason: str
) -> None:
    (tmp_path / "loop").symlink_to("loop")
    ((key, _, message, _),) = notes(tmp_path, {"command": "uvx", "cwd": cwd})
    assert key == "cwd"
    assert reason in message


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


def test_the_path_that_the_entry_sets_is_the_one_that_counts(tmp_path: Path) -> None:
    assert [key for key, *_ in notes(tmp_path, {"command": "uvx", "env": {"PATH": "/nowhere"}})] == ["command"]


@pytest.mark.parametrize("line", ["uvx some-server", "uvx @scope/some-server --flag", "{bin}/uvx x/y"])
def test_a_whole_command_line_is_noted_with_how_it_is_written(tmp_path: Path, line: str) -> None:
    ((key, _, message, hint),) = notes(tmp_path, {"command": line.replace("{bin}", str(tmp_path / "bin"))})
    assert (key, message) == ("command", "the program cannot be started: this is a whole command line")
    assert '"args": ["-y", "some-package"]' in hint


def test_a_program_whose_path_has_blanks_is_none(tmp_path: Path) -> None:
    (tmp_path / "my tools").mkdir()
    program = tmp_path / "my tools" / "server"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert notes(tmp_path, {"command": str(program)}) == []
