"""Files that others write as well: replaced whole, with their mode, behind their links, and never over a change."""

from __future__ import annotations

import errno
import os
import stat
from itertools import pairwise
from pathlib import Path

import pytest

from actors.errors import ConfigError
from supervisor.host.files import copies_of, read_if_there, remove_file, replace_text

AS_ROOT = os.geteuid() == 0


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_replaced_with_its_mode_and_its_last_content_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "f.json"
    file.write_bytes(b"\xef\xbb\xbfold\r\n")
    file.chmod(0o644)
    before = read_if_there(file)
    backup = replace_text(file, before, "new\r\n")
    assert file.read_bytes() == b"new\r\n"
    assert mode(file) == 0o644
    assert backup == tmp_path / "f.json.mcpvisor.bak"
    assert backup.read_bytes() == b"\xef\xbb\xbfold\r\n"
    assert mode(backup) == 0o600
    assert sorted(each.name for each in tmp_path.iterdir()) == ["f.json", "f.json.mcpvisor.bak"]


@pytest.mark.parametrize("links", [True, False])
def test_no_copy_of_somebodys_file_is_ever_overwritten_and_none_is_made_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    if not links:  # as on FAT

        def refuse(path: Path, target: Path) -> None:
            raise FileExistsError if path.exists() else PermissionError

        monkeypatch.setattr(Path, "hardlink_to", refuse)
    file = tmp_path / "f.json"
    file.write_text("first")
    texts = ["first", "second", "third", "second", "fourth"]
    copies = [replace_text(file, before, after, keeps_all=True) for before, after in pairwise(texts)]
    names = ["f.json.mcpvisor.bak", "f.json.mcpvisor.bak.2", "f.json.mcpvisor.bak.3", "f.json.mcpvisor.bak.2"]
    assert [copy.name for copy in copies if copy is not None] == names
    assert [copy.read_text() for copy in copies_of(file)] == ["third", "second", "first"]
    assert all(mode(copy) == 0o600 for copy in copies_of(file))
    assert len(list(tmp_path.iterdir())) == 4


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    target = tmp_path / "dotfiles" / "real.json"
    target.write_text("old")
    link = tmp_path / "f.json"
    link.symlink_to("dotfiles/real.json")
    assert replace_text(link, "old", "new") == tmp_path / "dotfiles" / "real.json.mcpvisor.bak"
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_link_to_nothing_gets_its_file(tmp_path: Path) -> None:
    link = tmp_path / "f.json"
    link.symlink_to("later.json")
    assert read_if_there(link) is None
    replace_text(link, None, "new")
    assert link.is_symlink()
    assert (tmp_path / "later.json").read_text() == "new"


@pytest.mark.parametrize("at", ["f.json", "d/f.json"])
def test_a_link_to_nothing_makes_no_directory_that_nobody_asked_for(tmp_path: Path, at: str) -> None:
    (tmp_path / at.split("/")[0]).symlink_to("elsewhere/there")
    with pytest.raises(ConfigError, match=r"a link to .*/elsewhere/there.*, in a directory that is not there"):
        replace_text(tmp_path / at, None, "new")
    assert not (tmp_path / "elsewhere").exists()


def test_a_link_to_nothing_in_a_directory_of_another_user_gets_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "f.json"
    link.symlink_to("later.json")
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(ConfigError, match="in a directory of another user"):
        replace_text(link, None, "new")
    assert not link.exists()


def test_a_new_file_and_its_directories_are_for_their_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b.json"
    assert replace_text(file, None, "new") is None
    assert (mode(file), mode(file.parent)) == (0o600, 0o700)


@pytest.mark.parametrize(("there", "before"), [("changed", "old"), ("made", None), (None, "old")])
def test_what_changed_since_it_was_read_is_left_alone(tmp_path: Path, there: str | None, before: str | None) -> None:
    file = tmp_path / "f.json"
    if there is not None:
        file.write_text(there)
    with pytest.raises(ConfigError, match="has changed meanwhile"):
        replace_text(file, before, "new")
    assert read_if_there(file) == there


def test_a_file_that_is_read_only_is_somebody_elses(tmp_path: Path) -> None:
    file = tmp_path / "f.json"
    file.write_text("old")
    file.chmod(0o444)
    with pytest.raises(ConfigError, match="may not be written"):
        replace_text(file, "old", "new")
    assert file.read_text() == "old"


def test_what_is_no_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a directory"):
        read_if_there(tmp_path)
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    with pytest.raises(ConfigError, match="cannot read"):
        read_if_there(loop)


def test_a_place_where_nothing_can_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError):
        replace_text(tmp_path / "file" / "f.json", None, "new")


@pytest.mark.skipif(AS_ROOT, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    file = tmp_path / "d" / "f.json"
    file.parent.mkdir()
    file.write_text("old")
    file.parent.chmod(0o500)
    with pytest.raises(ConfigError, match="cannot be written"):
        replace_text(file, "old", "new")
    assert file.read_text() == "old"


def test_a_file_is_removed_if_it_is_as_it_was_read_behind_a_link_too(tmp_path: Path) -> None:
    target, link = tmp_path / "real.json", tmp_path / "f.json"
    target.write_text("text")
    link.symlink_to(target)
    with pytest.raises(ConfigError, match="has changed meanwhile"):
        remove_file(link, "other")
    remove_file(link, "text")
    assert link.is_symlink()
    assert not target.exists()


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC])
def test_what_the_disk_refuses_is_said_and_leaves_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """A full disk is want, which passes by itself; the rest is somebody's to mend."""
    file = tmp_path / "f.json"
    file.write_text("old")

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    wanted = OSError if number == errno.ENOSPC else ConfigError
    with pytest.raises(wanted):
        replace_text(file, "old", "new")
    assert [each.name for each in tmp_path.iterdir()] == ["f.json"]
    assert file.read_text() == "old"
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(wanted):
        remove_file(file, "old")
