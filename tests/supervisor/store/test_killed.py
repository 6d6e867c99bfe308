"""The store survives `kill -9` in the middle of its writes."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import trio

from supervisor.store import open_store

ROOT = Path(__file__).parents[3]
BURST = """
import sys, pathlib, trio
from supervisor.store import open_store
from supervisor.store.records import SavedServer

async def main():
    async with open_store(pathlib.Path(sys.argv[1]), linger_s=0) as store:
        number = 0
        while True:
            number += 1
            for server in range(50):
                store.servers.put(SavedServer(f"server {server}", str(number), bytes(2000)))
            assert await store.flush()
            print(number, flush=True)

trio.run(main)
"""


def names_in(directory: Path) -> set[str]:
    return {file.name for file in directory.iterdir()}


@pytest.mark.process
async def test_a_database_killed_in_the_middle_of_a_burst_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    command = [sys.executable, "-c", BURST, str(path)]
    with trio.fail_after(60):
        process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE, cwd=ROOT)
        assert process.stdout is not None
        saved = b""
        while saved.count(b"\n") < 3:
            saved += await process.stdout.receive_some()
        process.send_signal(signal.SIGKILL)  # the next burst is under way
        assert await process.wait() == -signal.SIGKILL
        await process.stdout.aclose()
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        digests = database.execute("SELECT count(*), count(DISTINCT digest), max(digest + 0) FROM servers").fetchone()
    assert digests[:2] == (50, 1), "a burst is saved whole or not at all"
    assert digests[2] >= int(saved.split()[-1]), "what was flushed is there"
    async with open_store(path) as store:
        assert len(await store.servers.load_shared()) == 50
    assert names_in(tmp_path) == {path.name}, "nothing was moved aside"


KILLED = """
import os, pathlib, random, signal, sqlite3, sys
from supervisor.store.database import Database, Write

path, rounds, chance = pathlib.Path(sys.argv[1]), int(sys.argv[2]), random.Random(7)
INSERT = "INSERT OR REPLACE INTO servers VALUES (?, ?, ?, 0.0)"

def write_on(number, told):
    database = Database(path)
    while True:
        number += 1
        statements = [(INSERT, (f"server {server}", str(number), bytes(2000))) for server in range(20)]
        database.write([Write(("all",), tuple(statements))])
        os.write(told, b"%d " % number)

saved = 0
for _ in range(rounds):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            write_on(saved, writing)
        finally:
            os._exit(1)
    os.close(writing)
    told = b""
    for _ in range(chance.randrange(1, 6)):
        told += os.read(reading, 1 if chance.random() < 0.5 else 4096)
    os.kill(child, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    while more := os.read(reading, 4096):
        told += more
    os.close(reading)
    database = sqlite3.connect(path)
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    rows, digests, newest = database.execute(
        "SELECT count(*), count(DISTINCT digest), max(digest + 0) FROM servers").fetchone()
    database.close()
    assert (rows, digests) == (20, 1), (rows, digests)
    assert newest >= max(map(int, told.split()), default=saved), (newest, told)
    saved = newest
assert not [name for name in os.listdir(path.parent) if "corrupt" in name]
print(saved)
"""


@pytest.mark.case("D13")
@pytest.mark.process
def test_a_database_killed_a_hundred_times_in_the_middle_of_writes_is_whole(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path / "store.sqlite3"), "100"]
    ended = subprocess.run(command, cwd=ROOT, timeout=300, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) >= 100
