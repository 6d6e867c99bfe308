"""The data directory: where it is, who may use it, and its keys."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from actors.errors import ConfigError
from supervisor.host.datadir import KeyName, open_data_dir, problems_of
from supervisor.host.places import default_data_dir
from supervisor.store.database import connect, examine


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def open_and_close(path: Path | None, environ: Mapping[str, str]) -> None:
    with open_data_dir(path, environ):
        pass


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_the_default_is_the_xdg_state_directory() -> None:
    assert default_data_dir({"XDG_STATE_HOME": "/state", "HOME": "/home/me"}) == Path("/state/mcpvisor")
    home = Path("/home/me/.local/state/mcpvisor")
    assert default_data_dir({"HOME": "/home/me"}) == home
    assert default_data_dir({"XDG_STATE_HOME": "", "HOME": "/home/me"}) == home
    assert default_data_dir({"XDG_STATE_HOME": "relative", "HOME": "/home/me"}) == home


@pytest.mark.case("D23")
@pytest.mark.parametrize("environ", [{}, {"HOME": ""}, {"HOME": "relative"}])
def test_without_a_home_the_operator_is_told_what_to_set(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="XDG_STATE_HOME nor HOME"):
        open_and_close(None, environ)


@pytest.mark.case("D23")
@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_a_new_directory_and_its_files_are_private_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    with umask(mask), open_data_dir(None, {"XDG_STATE_HOME": str(tmp_path / "state")}) as data:
        data.key("session")
        assert data.root == tmp_path / "state" / "mcpvisor"
        assert (mode(data.root), mode(data.root.parent)) == (0o700, 0o700)
        assert {mode(file) for file in data.root.iterdir()} == {0o600}


@pytest.mark.case("D28")
def test_a_second_daemon_is_refused_and_told_the_pid_of_the_first(tmp_path: Path) -> None:
    with open_data_dir(tmp_path, {}):
        with pytest.raises(ConfigError, match=rf"another daemon.*pid {os.getpid()}\)"):
            open_and_close(tmp_path, {})
        with pytest.raises(ConfigError, match="another daemon"):
            open_and_close(tmp_path, {})


def test_a_lock_that_was_passed_on_is_held_by_all_that_have_it(tmp_path: Path) -> None:
    with open_data_dir(tmp_path, {}) as data:
        with open_data_dir(tmp_path, {}, os.dup(data.lock_fd)) as same:
            assert same.key("session") == data.key("session")
        passed_on = os.dup(data.lock_fd)
    with pytest.raises(ConfigError, match="another daemon"):
        open_and_close(tmp_path, {})
    os.close(passed_on)
    open_and_close(tmp_path, {})


def test_the_directory_can_be_opened_again_once_it_is_closed(tmp_path: Path) -> None:
    (tmp_path / "daemon.lock").write_text("999999999 left by one that was killed\n")
    for _ in range(2):
        with open_data_dir(tmp_path, {}):
            assert (tmp_path / "daemon.lock").read_text() == f"{os.getpid()}\n"


def test_a_refused_daemon_leaves_no_open_file(tmp_path: Path) -> None:
    with open_data_dir(tmp_path, {}):
        before = open_files()
        for _ in range(3):
            with pytest.raises(ConfigError):
                open_and_close(tmp_path, {})
        assert open_files() == before


def test_a_directory_that_cannot_be_made_is_the_operators_to_repair(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError) as caught:
        open_and_close(tmp_path / "file" / "data", {})
    assert str(tmp_path / "file") in str(caught.value)
    assert "make it writable" in str(caught.value)


@pytest.mark.case("D23")
def test_a_read_only_directory_is_the_operators_to_repair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(ConfigError, match=r"Read-only file system.*make it writable"):
        open_and_close(tmp_path, {})


@pytest.mark.case("I19")
def test_a_key_is_made_once_and_kept(tmp_path: Path) -> None:
    with open_data_dir(tmp_path, {}) as data:
        first = data.key("session")
        assert data.key("oauth") != first
    with open_data_dir(tmp_path, {}) as data:
        assert data.key("session") == first
    assert len(first) == 32
    assert {file.name for file in tmp_path.iterdir()} == {"daemon.lock", "session.key", "oauth.key"}


def test_a_key_that_could_not_be_written_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with open_data_dir(tmp_path, {}) as data:
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match=r"No space left.*session\.key"):
            data.key("session")
    assert [file.name for file in tmp_path.iterdir()] == ["daemon.lock"]


def test_a_key_that_others_may_read_is_not_used(tmp_path: Path) -> None:
    with open_data_dir(tmp_path, {}) as data:
        data.key("session")
        (tmp_path / "session.key").chmod(0o640)
        with pytest.raises(ConfigError, match="mode 0600"):
            data.key("session")


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 33])
def test_a_key_of_the_wrong_size_is_not_used(tmp_path: Path, content: bytes) -> None:
    with open_data_dir(tmp_path, {}) as data:
        data.key("session")
        (tmp_path / "session.key").write_bytes(content)
        with pytest.raises(ConfigError, match="32 bytes"):
            data.key("session")


def test_a_link_or_a_directory_in_the_place_of_a_key_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(bytes(32))
    names: tuple[KeyName, ...] = ("launch", "oauth", "request-state")
    linked, folder, pipe = (tmp_path / f"{name}.key" for name in names)
    with open_data_dir(tmp_path, {}) as data:
        linked.symlink_to(tmp_path / "elsewhere")
        folder.mkdir()
        os.mkfifo(pipe, 0o600)
        for name in names:
            with pytest.raises(ConfigError):
                data.key(name)
    assert [problem.path for problem in problems_of(tmp_path)] == [str(linked), str(folder), str(pipe)]


@pytest.mark.parametrize("bits", [0o777, 0o770, 0o702])
def test_a_directory_that_others_can_write_is_not_used(tmp_path: Path, bits: int) -> None:
    tmp_path.chmod(bits)
    with pytest.raises(ConfigError, match=r"others can write.*chmod 700"):
        open_and_close(tmp_path, {})
    assert list(tmp_path.iterdir()) == []


def of_another_user(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let somebody else own a file or directory: root gives it away, anybody else is taken for another one."""
    if os.geteuid() == 0:
        os.chown(path, 65534, 65534)
    else:
        own = path.stat().st_uid
        monkeypatch.setattr(os, "geteuid", lambda: own + 1)


@pytest.mark.parametrize("bits", [0o700, 0o777])
def test_the_directory_of_another_user_gets_no_advice_that_cannot_be_followed(
    tmp_path: Path, bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(bits)
    of_another_user(tmp_path, monkeypatch)
    with pytest.raises(ConfigError, match="belongs to another user") as caught:
        open_and_close(tmp_path, {})
    assert caught.value.hint == "run the daemon as that user, or name another data directory"


def test_the_database_of_another_user_gets_no_advice_that_cannot_be_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "store.sqlite3").touch(0o600)
    of_another_user(tmp_path / "store.sqlite3", monkeypatch)
    with pytest.raises(ConfigError, match="belongs to another user") as caught:
        examine(tmp_path / "store.sqlite3")
    assert "chmod" not in caught.value.hint


@pytest.mark.parametrize("place", ["a\0b", "x" * 300])
def test_a_data_directory_that_no_file_system_can_have_is_a_problem_and_no_traceback(
    tmp_path: Path, place: str
) -> None:
    assert [str(problem.path) for problem in problems_of(tmp_path / place)] == [str(tmp_path / place)]
    with pytest.raises(ConfigError, match="the data directory cannot be used"):
        open_and_close(tmp_path / place, {})


def test_a_database_that_is_a_link_is_refused_and_what_it_points_to_stays_as_it_is(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.touch(0o644)
    mine.chmod(0o644)
    data = tmp_path / "data"
    data.mkdir(0o700)
    (data / "store.sqlite3").symlink_to(mine)
    with pytest.raises(ConfigError, match="the database is a symbolic link"):
        open_and_close(data, {})
    with pytest.raises(OSError, match="Too many levels"):  # it came while the daemon runs
        connect(data / "store.sqlite3", 1.0)
    assert (mode(mine), mine.read_bytes()) == (0o644, b"")


def test_a_directory_that_others_can_read_is_used(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    open_and_close(tmp_path, {})


@pytest.mark.parametrize("name", ["store.sqlite3", "session.key", "launch.key"])
def test_a_file_that_others_can_write_is_found_before_anything_starts(tmp_path: Path, name: str) -> None:
    assert problems_of(tmp_path) == []
    (tmp_path / name).write_bytes(bytes(32))
    (tmp_path / name).chmod(0o666)
    assert [problem.path for problem in problems_of(tmp_path)] == [str(tmp_path / name)]
    with pytest.raises(ConfigError, match=name):
        open_and_close(tmp_path, {})


def test_a_full_disk_keeps_no_daemon_from_its_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    with open_data_dir(tmp_path, {}), pytest.raises(ConfigError, match=r"another daemon uses.*pid unknown"):
        open_and_close(tmp_path, {})


def test_what_does_not_exist_has_no_problems_and_is_not_made(tmp_path: Path) -> None:
    assert problems_of(tmp_path / "later") == []
    assert list(tmp_path.iterdir()) == []
