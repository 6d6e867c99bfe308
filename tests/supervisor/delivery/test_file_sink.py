"""The file has whole lines in order, is for its owner alone, and does not grow without end."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from supervisor.config.sections import EventSink
from supervisor.delivery.delivery import Delivered, EventBatch
from supervisor.delivery.sinks import FileSink


def batch(*texts: bytes) -> EventBatch:
    return EventBatch(id="evt_1", events=(), ids=(), texts=texts, dropped=0)


def sink(path: Path, **more: Any) -> FileSink:
    return FileSink(EventSink(name="a", type="file", path=str(path), **more))


def lines(path: Path) -> Sequence[bytes]:
    return path.read_bytes().splitlines()


def names(directory: Path) -> set[str]:
    return {each.name for each in directory.iterdir()}


async def test_lines_are_added(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"before\n")
    path.chmod(0o644)
    file = sink(path)
    assert await file.deliver(batch(b"1", b"2")) == Delivered("taken")
    assert await file.deliver(batch(b"3")) == Delivered("taken")
    assert lines(path) == [b"before", b"1", b"2", b"3"]
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("files", [0, 1, 3])
async def test_a_full_file_makes_room(tmp_path: Path, files: int) -> None:
    path = tmp_path / "events.jsonl"
    file = sink(path, max_bytes=1024, files=files)
    for number in range(50):
        assert await file.deliver(batch(b"%03d" % number + b"x" * 300)) == Delivered("taken")
    kept = [path, *(tmp_path / f"events.jsonl.{number}" for number in range(1, files + 1))]
    assert names(tmp_path) == {each.name for each in kept}
    numbers = [int(line[:3]) for each in reversed(kept) for line in lines(each)]
    assert numbers == [*range(numbers[0], 50)]
    assert all(each.stat().st_size <= 1024 and each.stat().st_mode & 0o777 == 0o600 for each in kept)


async def test_a_batch_over_the_size_of_a_file_is_written_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    assert await sink(path, max_bytes=1024).deliver(batch(b"x" * 5000)) == Delivered("taken")
    assert path.stat().st_size == 5001


async def test_what_cannot_be_written_is_kept(tmp_path: Path) -> None:
    link, missing, pipe = tmp_path / "link", tmp_path / "none" / "events", tmp_path / "pipe"
    link.symlink_to(tmp_path / "elsewhere")
    os.mkfifo(pipe)
    for path, words in ((link, "symbolic link"), (missing, "No such file"), (pipe, "cannot be written")):
        delivered = await sink(path).deliver(batch(b"1"))
        assert delivered.outcome == "kept"
        assert words in delivered.why
        assert str(tmp_path) not in delivered.why
    assert not (tmp_path / "elsewhere").exists()


async def test_what_a_full_disk_cut_off_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, write = tmp_path / "events.jsonl", os.write
    file = sink(path)
    await file.deliver(batch(b"1"))

    def fill(fd: int, data: Any) -> int:
        if len(data) < 5:
            raise OSError(28, "No space left on device")
        return write(fd, data[:-3])

    monkeypatch.setattr("supervisor.delivery.sinks.os.write", fill)
    assert (await file.deliver(batch(b"2222", b"3333"))).outcome == "kept"
    monkeypatch.undo()
    assert lines(path) == [b"1"]
    assert await file.deliver(batch(b"2222", b"3333")) == Delivered("taken")
    assert lines(path) == [b"1", b"2222", b"3333"]
    await file.close()
