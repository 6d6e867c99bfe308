"""A program or a directory that is not there is said before anything is started."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

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


def test_a_program_by_its_path_that_is_not_there_is_noted(tmp_path: Path) -> None:
    ((key, _, message, hint),) = notes(tmp_path, {"command": str(tmp_path / "canary")})
    assert (key, message) == ("command", "the program cannot be started: no such file")
    assert hint == "correct the path, or install the program"


def test_a_directory_that_is_not_there_is_noted(tmp_path: Path) -> None:
    ((key, line, message, _),) = notes(tmp_path, {"command": "uvx", "cwd": "canary"})
    assert (key, line, message) == ("cwd", 5, "the directory does not exist")


@pytest.mark.parametrize(
    "entry", [{"command": "uvx"}, {"url": "https://x.example"}, {"command": "no", "disabled": True}]
)
def test_what_is_there_or_not_needed_is_not_noted(tmp_path: Path, entry: dict[str, Any]) -> None:
    assert notes(tmp_path, entry) == []


def test_the_path_that_the_entry_sets_is_the_one_that_counts(tmp_path: Path) -> None:
    assert [key for key, *_ in notes(tmp_path, {"command": "uvx", "env": {"PATH": "/nowhere"}})] == ["command"]
