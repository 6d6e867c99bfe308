"""The store on a disk that is too small, or read-only: a real one, where the tests may make one."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from actors.kit import Conditions
from supervisor.store import open_store
from supervisor.store.records import SavedServer

pytestmark = pytest.mark.process

PATIENCE_S = 60.0
ENOUGH = b"x" * 200_000


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a megabyte."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], check=False, capture_output=True)
    if made.returncode:
        pytest.skip("this user cannot mount a disk")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def fill(file: Path) -> None:
    """Take what is left of a disk."""
    with file.open("wb", buffering=0) as rest, suppress(OSError):
        while True:
            rest.write(bytes(4096))


def mount_again(disk: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", disk], check=True)


async def until(holds: Callable[[], bool]) -> None:
    with trio.fail_after(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - a disk tells nobody
            await trio.sleep(0.02)


@pytest.mark.case("D11")
async def test_a_full_disk_costs_nothing_but_time_and_what_waits_is_written_when_there_is_room(disk: Path) -> None:
    conditions = Conditions()
    async with open_store(disk / "store.sqlite3", linger_s=0.01, conditions=conditions) as store:
        store.servers.put(SavedServer("before", "d", b"x"))
        assert await store.flush()
        rest = disk / "rest"
        fill(rest)
        for number in range(3):
            store.servers.put(SavedServer(f"meanwhile {number}", "d", ENOUGH))
        await until(lambda: store.state == "degraded")
        assert [each.what for each in conditions.now()] == ["store"]
        assert set(await store.servers.load_shared()) == {"before"}, "what is there can be read"
        assert store.status().pending_writes == 3
        rest.unlink()
        await until(lambda: store.state == "ok" and not store.status().pending_writes)
        assert conditions.now() == []
        assert len(await store.servers.load_shared()) == 4


@pytest.mark.case("D12")
async def test_a_disk_that_is_read_only_at_the_start_is_used_once_it_is_not(disk: Path) -> None:
    mount_again(disk, "ro")
    async with open_store(disk / "store.sqlite3", linger_s=0.01) as store:
        store.servers.put(SavedServer("files", "d", b"x"))
        assert not await store.flush()
        assert "Read-only" in store.status().last_error
        mount_again(disk, "rw")
        await until(lambda: store.state == "ok" and not store.status().pending_writes)
        assert set(await store.servers.load_shared()) == {"files"}


async def test_a_file_that_becomes_read_only_while_it_is_used_is_written_later(disk: Path) -> None:
    async with open_store(disk / "store.sqlite3", linger_s=0.01) as store:
        store.servers.put(SavedServer("before", "d", b"x"))
        assert await store.flush()
        connection = store._database.open()
        connection.execute(
            "PRAGMA query_only = ON"
        )  # SQLite refuses to write as on a disk that the system made read-only
        store.servers.put(SavedServer("meanwhile", "d", b"x"))
        await until(lambda: store.state == "degraded")
        connection.execute("PRAGMA query_only = OFF")
        await until(lambda: store.state == "ok")
        assert set(await store.servers.load_shared()) == {"before", "meanwhile"}
