"""Where commands look for the keys of daemons: notes that no daemon of this user has written are none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio

from supervisor.host.places import NOTES, known_data_dirs, noted


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(tmp_path)}


def test_a_daemon_is_known_while_it_runs(environ: dict[str, str], tmp_path: Path) -> None:
    with noted(tmp_path / "other", environ):
        assert known_data_dirs(environ) == [tmp_path / "mcpvisor", tmp_path / "other"]
    assert known_data_dirs(environ) == [tmp_path / "mcpvisor"]


def test_directories_for_the_note_are_private_and_go_with_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    notes = home / ".local" / "state" / "mcpvisor" / NOTES
    made = [notes, *notes.parents[:3]]
    before = os.umask(0o022)
    try:
        with noted(tmp_path / "other", {"HOME": str(home)}):
            assert [each.stat().st_mode & 0o777 for each in made] == [0o700] * 4
    finally:
        os.umask(before)
    assert list(home.iterdir()) == []


def test_a_directory_that_others_use_by_the_end_stays(environ: dict[str, str], tmp_path: Path) -> None:
    with noted(tmp_path / "other", environ), noted(tmp_path / "another", environ):
        (tmp_path / "mcpvisor" / "daemon.lock").touch()
    assert [each.name for each in (tmp_path / "mcpvisor").iterdir()] == ["daemon.lock"]


async def test_a_pipe_among_the_notes_keeps_no_command_waiting(environ: dict[str, str], tmp_path: Path) -> None:
    with noted(tmp_path / "other", environ):
        pipe = tmp_path / "mcpvisor" / NOTES / "pipe"
        os.mkfifo(pipe)
        try:
            with trio.fail_after(10):
                known = await trio.to_thread.run_sync(known_data_dirs, environ, abandon_on_cancel=True)
        finally:
            os.close(os.open(pipe, os.O_RDWR | os.O_NONBLOCK))  # who waits for a writer has one
    assert known == [tmp_path / "mcpvisor", tmp_path / "other"]


def test_a_link_a_directory_and_what_is_no_path_are_no_notes(environ: dict[str, str], tmp_path: Path) -> None:
    notes = tmp_path / "mcpvisor" / NOTES
    with noted(tmp_path / "other", environ):
        (tmp_path / "elsewhere").write_text("/elsewhere")
        (notes / "link").symlink_to(tmp_path / "elsewhere")
        (notes / "directory").mkdir()
        (notes / "relative").write_text("relative")
        (notes / "noise").write_bytes(bytes(range(256)) * 100)
        assert known_data_dirs(environ) == [tmp_path / "mcpvisor", tmp_path / "other"]


def test_a_note_of_another_user_is_none(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with noted(tmp_path / "other", environ):
        monkeypatch.setattr(os, "geteuid", lambda: 4711)
        assert known_data_dirs(environ) == [tmp_path / "mcpvisor"]
