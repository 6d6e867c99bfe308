"""Whatever a path is, looking at it is an answer."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.kit.paths import absolute, is_file, names_in, objection_to_directory, objection_to_program

LOOKS: tuple[Callable[[str], Any], ...] = (absolute, is_file, names_in, objection_to_directory, objection_to_program)
TOO_LONG = os.strerror(errno.ENAMETOOLONG)


def fail_with(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every look at a path fail as the system does, also for a user who may look everywhere."""

    def failing(path: object, *args: object, **more: object) -> None:
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setattr(os, "stat", failing)
    monkeypatch.setattr(os, "listdir", failing)


@pytest.mark.parametrize("number", [errno.EACCES, errno.ELOOP, errno.ENAMETOOLONG, errno.EIO, errno.ESTALE])
def test_what_the_system_says_of_a_path_is_the_objection(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(number, monkeypatch)
    assert objection_to_directory("/x") == f"cannot be used: {os.strerror(number)}"
    assert objection_to_program("/x") == os.strerror(number)
    assert not is_file("/x")
    assert names_in("/x") == []


def test_want_of_memory_is_no_property_of_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(errno.ENOMEM, monkeypatch)
    for look in (is_file, names_in, objection_to_directory, objection_to_program):
        with pytest.raises(OSError, match=os.strerror(errno.ENOMEM)):
            look("/x")


@given(st.text(st.characters(codec=None), max_size=400), st.sampled_from(["", "/", "/tmp/"]))
def test_no_path_raises(name: str, directory: str) -> None:
    for look in LOOKS:
        look(directory + name)


def test_a_program_is_an_ordinary_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o700)  # whoever opens it to see its first line waits for ever
    (tmp_path / "loop").symlink_to("loop")
    assert objection_to_program(str(tmp_path / "pipe")) == "is not a file"
    assert objection_to_program(str(tmp_path / "loop")) == os.strerror(errno.ELOOP)
    assert objection_to_program(str(tmp_path / ("x" * 256))) == TOO_LONG


def test_a_working_directory_that_is_gone_leaves_a_path_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert absolute("x") == "x"
    assert objection_to_directory(absolute("")) == "does not exist"
    monkeypatch.undo()
    assert stat.S_ISDIR(tmp_path.stat().st_mode)
