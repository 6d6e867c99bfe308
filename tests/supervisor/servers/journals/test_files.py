"""Logs on the disk: bounded, private, in order, without what is secret by now; whatever was there before."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.launch import launch_name
from actors.transport.redaction import Mask
from supervisor.servers.journals.files import (
    FileLine,
    Limits,
    LogFiles,
    ReadLimit,
    Wanted,
    file_name,
    hide,
    parse_file_name,
    stem_of,
)

LIMITS = Limits(max_bytes=4000, old_files=3)
SECRET = "correct-horse-battery-77"
OWN = launch_name("a", "0123456789abcdef" * 2)


def line(number: int, text: str = "hello", time: float = 1.0) -> FileLine:
    return FileLine(number=number, time=time, source="stderr", text=text)


def read(files: LogFiles, launch: str = "a") -> list[FileLine]:
    return list(files.newest_first(launch, ReadLimit(10**9, 60.0)))[::-1]


def size(root: Path) -> int:
    return sum(file.stat().st_size for file in root.iterdir())


# Names ----------------------------------------------------------------------------------------------------------------


@given(st.text(min_size=1, max_size=80), st.integers(0, 100))
def test_a_name_is_safe_whatever_a_server_is_called_and_is_known_again(server: str, number: int) -> None:
    name = file_name(server, number)
    assert "/" not in name
    assert not name.startswith(".")
    assert name.isascii()
    assert len(name) < 100
    parsed = parse_file_name(name)
    assert parsed is not None
    assert (parsed.stem + parsed.own, parsed.number, parsed.draft) == (stem_of(server), number, False)


@given(st.lists(st.text(min_size=1, max_size=60), min_size=2, max_size=5, unique=True))
def test_no_two_launches_have_the_same_file(launches: list[str]) -> None:
    assert len({stem_of(launch) for launch in launches}) == len(launches)


def test_a_launch_of_a_server_begins_as_the_server_does() -> None:
    assert stem_of(OWN).startswith(stem_of("a") + "~")


@pytest.mark.parametrize("name", ["store.sqlite3", "launch.key", "a.log", "../a-0123456789abcdef.log", ""])
def test_a_foreign_name_is_none_of_ours(name: str) -> None:
    assert parse_file_name(name) is None


# Writing --------------------------------------------------------------------------------------------------------------


@pytest.mark.case("D21")
@given(st.lists(st.lists(st.integers(0, 900), max_size=8), max_size=30), st.integers(0, 4))
def test_the_newest_lines_are_kept_in_order_within_the_bounds(batches: list[list[int]], old: int) -> None:
    limits, number, written = Limits(max_bytes=5000, old_files=old), 0, list[FileLine]()
    with TemporaryDirectory() as directory:
        files = LogFiles(Path(directory) / "logs")
        for batch in batches:
            lines = []
            for length in batch:
                number += 1
                lines.append(line(number, "x" * length))
            files.append("a", lines, limits)
            written += lines
            assert size(Path(directory) / "logs") <= 5000 + 1000, "one line more than there is room for, at the most"
        kept = read(files)
    assert kept == written[len(written) - len(kept) :]
    assert bool(kept) == bool(written)


def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        files = LogFiles(tmp_path / "logs")
        files.append("a", [line(1, f"it says {SECRET}")], LIMITS)
        files.mask("a", Mask({"KEY": SECRET}))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "logs").stat().st_mode) == 0o700
    assert [stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "logs").iterdir()] == [0o600]


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    files, other = LogFiles(tmp_path / "logs"), tmp_path / "other"
    other.write_text("mine\n")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / file_name("a")).symlink_to(other)
    with pytest.raises(OSError, match="symbolic"):
        files.append("a", [line(1)], LIMITS)
    with pytest.raises(OSError, match="symbolic"):
        read(files)
    assert other.read_text() == "mine\n"


def test_what_was_half_written_to_a_full_disk_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = LogFiles(tmp_path)
    files.append("a", [line(1)], LIMITS)
    write = os.write
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda fd, data: write(fd, data[:10]))
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
            files.append("a", [line(2)], LIMITS)
    assert read(files) == [line(1)]
    files.append("a", [line(2)], LIMITS)
    assert read(files) == [line(1), line(2)]


def test_a_daemon_that_died_in_the_middle_of_a_line_harms_no_other_line(tmp_path: Path) -> None:
    files = LogFiles(tmp_path)
    files.append("a", [line(1)], LIMITS)
    with (tmp_path / file_name("a")).open("ab") as file:
        file.write(b'{"number": 2, "te')
    files.append("a", [line(3)], LIMITS)
    assert read(files) == [line(1), line(3)]


@given(st.binary(max_size=3000))
def test_whatever_stands_in_a_file_is_read_without_harm(content: bytes) -> None:
    with TemporaryDirectory() as directory:
        files = LogFiles(Path(directory))
        (Path(directory) / file_name("a")).write_bytes(content)
        files.mask("a", Mask({"KEY": SECRET}))
        files.append("a", [line(1)], Limits(10_000, 1))
        assert read(files)[-1] == line(1)


@pytest.mark.parametrize("bad", [b"\xff", b"[" * 100_000, b"\\ud800"])
def test_a_line_that_cannot_be_decoded_is_left_out(tmp_path: Path, bad: bytes) -> None:
    files = LogFiles(tmp_path)
    files.append("a", [line(1)], Limits(1_000_000, 1))
    with (tmp_path / file_name("a")).open("rb+") as file:
        good = file.read()
        file.write(good.replace(b'"text":"', b'"text":"' + bad) + good.replace(b'"text":"', b'"text":' + bad))
    files.mask("a", Mask({"KEY": SECRET}))
    files.append("a", [line(2)], Limits(1_000_000, 1))
    assert read(files)[0] == line(1)
    assert read(files)[-1] == line(2)


def test_a_reader_stops_where_it_has_read_enough(tmp_path: Path) -> None:
    files = LogFiles(tmp_path)
    files.append("a", [line(number, "x" * 1000) for number in range(200)], Limits(10**6, 1))
    little = ReadLimit(70_000, 60.0)
    some = list(files.newest_first("a", little))
    assert little.spent
    assert 0 < len(some) < 100
    assert some[0].number == 199
    late = ReadLimit(10**9, 1.0, now=iter([0.0, *[2.0] * 9]).__next__)
    assert list(files.newest_first("a", late)) == []
    assert late.spent


# Removing -------------------------------------------------------------------------------------------------------------


def test_a_server_is_removed_with_all_its_launches_and_a_launch_alone(tmp_path: Path) -> None:
    files = LogFiles(tmp_path)
    for launch in ("a", OWN, "ab", launch_name("ab", "0" * 16)):
        files.append(launch, [line(1)], LIMITS)
    files.remove(launch_name("ab", "0" * 16))
    assert (len(read(files, "ab")), read(files, launch_name("ab", "0" * 16))) == (1, [])
    files.remove("a")
    assert (read(files, "a"), read(files, OWN), len(read(files, "ab"))) == ([], [], 1)


def test_tidying_leaves_what_is_configured_and_what_is_not_ours(tmp_path: Path) -> None:
    files = LogFiles(tmp_path / "logs")
    files.tidy(["a"], 0.0)  # there is nothing yet
    for launch in ("a", "b", OWN):
        files.append(launch, [line(1)], LIMITS)
    for name in (f"{file_name('a')}.0123.new", "notes.txt"):
        (tmp_path / "logs" / name).write_text("x")
    os.utime(tmp_path / "logs" / file_name("a"), (1000, 1000))
    os.utime(tmp_path / "logs" / file_name(OWN), (1000, 1000))
    files.tidy(["a"], 1000.0)
    assert sorted(file.name for file in (tmp_path / "logs").iterdir()) == sorted(
        [file_name("a"), file_name(OWN), "notes.txt"]
    )
    files.tidy(["a"], 1001.0)
    assert read(files, OWN) == []
    files.tidy([], 0.0)
    assert [file.name for file in (tmp_path / "logs").iterdir()] == ["notes.txt"]


# Masking --------------------------------------------------------------------------------------------------------------


def test_a_secret_that_is_known_later_is_taken_out_of_every_file(tmp_path: Path) -> None:
    files = LogFiles(tmp_path)
    said = [line(number, f"{number} {'x' * 500} {SECRET}") for number in range(6)]
    files.append("a", said, LIMITS)
    assert len(list(tmp_path.iterdir())) > 1
    files.mask("a", Mask({"KEY": SECRET}))
    assert not any(SECRET in file.read_text() for file in tmp_path.iterdir())
    assert [each.text[-4:] for each in read(files)] == [" ***"] * len(read(files))
    assert [each.number for each in read(files)] == [each.number for each in said[-len(read(files)) :]]


@given(st.integers(4, len(SECRET) - 1), st.text(alphabet="xyz ", max_size=20))
def test_the_beginning_of_a_secret_goes_where_a_line_was_cut(count: int, before: str) -> None:
    shown = hide(f"{before}{SECRET[:count]}…", Mask({"KEY": SECRET}))
    assert shown == f"{before}…"
    assert hide(shown, Mask({"KEY": SECRET})) == shown


@given(st.text(max_size=60))
def test_to_hide_twice_is_to_hide_once(text: str) -> None:
    mask = Mask({"KEY": SECRET, "TOKEN": "abab-abab"})
    assert hide(hide(text, mask), mask) == hide(text, mask)


# What is wanted -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "user", "shown"),
    [
        (Wanted(lines=1), "", True),
        (Wanted(lines=1), "ana", True),
        (Wanted(lines=1, user="ana"), "ana", True),
        (Wanted(lines=1, user="ana"), "ben", False),
        (Wanted(lines=1, user="ana"), "", False),
        (Wanted(lines=1, user=""), "", False),
        (Wanted(lines=1, since=11.0), "", False),
        (Wanted(lines=1, since=10.0, before=6), "", True),
        (Wanted(lines=1, before=5), "", False),
    ],
)
def test_a_line_is_shown_to_whom_it_may_be_and_where_it_is_wanted(wanted: Wanted, user: str, shown: bool) -> None:
    assert wanted.may_show(user, 10.0, 5) is shown


def test_lines_are_json_that_other_programs_read(tmp_path: Path) -> None:
    LogFiles(tmp_path).append("a", [FileLine(number=1, time=2.5, source="stdout", text="ü\\x1b", user="ana")], LIMITS)
    assert json.loads((tmp_path / file_name("a")).read_text(encoding="utf-8")) == {
        "number": 1,
        "time": 2.5,
        "source": "stdout",
        "text": "ü\\x1b",
        "user": "ana",
    }
