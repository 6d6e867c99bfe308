"""A daemon that serves, loses servers, reads its file again and is killed, over and over: nothing grows or is lost.

Each start of a process costs a second, so the rounds are few; `benchmarks.soak` makes as many as are wanted.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import trio

from tests.e2e.daemons import Daemon, restarted, running, stand_in, text, write_config
from tests.e2e.test_hostile_remotes import computed_ms
from tests.fakes.failures import failure
from tests.scenario.client import PATIENCE_S

pytestmark = pytest.mark.e2e

KILLS = 2
CALLERS, CALLS = 8, 300
KILL_EVERY, RELOAD_EVERY = 100, 200
GROWTH_BYTES = 16 * 1024 * 1024
PAGE_MS = 500.0
"""What the loop may compute from a question for a page to its answer, whatever else it has to do."""


def is_gone(pid: int) -> bool:
    """Whether a process has ended; nobody may have looked after it yet."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return status.rpartition(")")[2].split()[0] in "ZX"


@pytest.mark.case("D04")
async def test_a_daemon_that_is_killed_again_and_again_is_back_at_once_with_one_process_of_its_server(
    tmp_path: Path,
) -> None:
    with ExitStack() as stack:
        daemon = stack.enter_context(running(tmp_path, {"growing": stand_in("growing")}))
        await daemon.ready()
        for number in range(KILLS):
            assert text(await daemon.execute("growing:echo", text=str(number))) == str(number)
            pid = (await daemon.rows())["growing"]["pid"]
            daemon.process.kill()
            daemon.process.wait()
            daemon = stack.enter_context(restarted(daemon))
            assert text(await daemon.execute("growing:echo", text="again")) == "again"
            assert is_gone(pid)
        assert "is damaged" not in daemon.log
        with closing(sqlite3.connect(tmp_path / "data" / "store.sqlite3")) as store:
            assert store.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def held(daemon: Daemon) -> dict[str, int]:
    """What a daemon has of the system."""
    process = Path(f"/proc/{daemon.process.pid}")
    status = (process / "status").read_text()
    threads, pages = re.search(r"Threads:\s+(\d+)", status), re.search(r"VmRSS:\s+(\d+) kB", status)
    assert threads is not None
    assert pages is not None
    descriptors = len(list((process / "fd").iterdir()))
    return {"descriptors": descriptors, "threads": int(threads[1]), "bytes": int(pages[1]) * 1024}


async def use(daemon: Daemon, rounds: int, restarts: int) -> None:
    """Come, call and go so often, and have the server started anew so often."""
    for number in range(rounds):
        assert text(await daemon.execute("growing:echo", text=str(number))) == str(number)
        if number % 20 == 0:
            assert await daemon.delete(await daemon.session()) == 204
    for _ in range(restarts):
        assert (await daemon.at("/api/servers/growing/restart").post(b"")).status_code == 200


class Load:
    """Calls without end, while servers are killed and the file is read again; `ended` counts what became of them."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self.ended: Counter[str] = Counter()
        self.pages_ms: list[float] = []

    async def call(self, caller: int) -> None:
        server = ("growing", "second")[caller % 2]
        while (number := self.ended.total()) < CALLS:
            answer = await self._daemon.execute(f"{server}:echo", text=f"{caller} {number}")
            if answer["result"].get("isError"):
                error = failure(answer)["data"]
                assert error["outcome"] in ("unknown", "not_sent")
                self.ended[error["type"]] += 1
            else:
                assert text(answer) == f"{caller} {number}"
                self.ended["well"] += 1

    async def disturb(self) -> None:
        killed = reloaded = 0
        while (done := self.ended.total()) < CALLS:
            if done >= KILL_EVERY * (killed + 1):
                killed += 1
                pid = (await self._daemon.rows())["growing"]["pid"]
                with suppress(ProcessLookupError, TypeError):
                    os.kill(pid, signal.SIGKILL)
            if done >= RELOAD_EVERY * (reloaded + 1):
                reloaded += 1
                write_config(self._daemon.directory, servers(f"round {reloaded}"))
                assert (await self._daemon.at("/api/reload").post(b"")).status_code == 200
            for page in ("/healthz", "/metrics"):
                before = computed_ms(self._daemon)
                assert (await self._daemon.ask("GET", page)).status_code == 200
                self.pages_ms.append(computed_ms(self._daemon) - before)


def servers(description: str) -> dict[str, Any]:
    hasty: dict[str, Any] = {"backoff_initial_s": 0.05, "backoff_max_s": 0.1, "max_restarts": 1000}
    return {"growing": stand_in("growing", **hasty), "second": stand_in("growing", description=description)}


@pytest.mark.case("D17", "D18", "D27")
async def test_under_calls_kills_restarts_and_reloads_nothing_is_lost_and_nothing_grows(tmp_path: Path) -> None:
    with running(tmp_path, servers("first")) as daemon:
        await daemon.ready()
        await use(daemon, 30, 1)
        before, second = held(daemon), (await daemon.rows())["second"]["pid"]
        load = Load(daemon)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(load.disturb)
            for caller in range(CALLERS):
                nursery.start_soon(load.call, caller)
        await use(daemon, 20, 3)
        assert load.ended["well"] > CALLS * 0.9
        assert set(load.ended) <= {"well", "crashed", "starting", "unavailable"}
        assert median(load.pages_ms) < PAGE_MS
        with trio.fail_after(PATIENCE_S):
            while held(daemon)["descriptors"] > before["descriptors"] + 5:  # noqa: ASYNC110 - ends are seen one by one
                await trio.sleep(0.05)
        assert held(daemon)["threads"] <= before["threads"] + 2
        assert held(daemon)["bytes"] < before["bytes"] + GROWTH_BYTES
        assert (await daemon.rows())["second"]["pid"] == second, "what did not change was not disturbed"
    assert "Traceback" not in daemon.log


def environment_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


@contextmanager
def notified(directory: Path) -> Iterator[socket.socket]:
    """Listen as systemd does, under the name that daemons of the block are told."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(directory / "notify"))
        listener.settimeout(PATIENCE_S)
        yield listener


@pytest.mark.case("D24")
async def test_systemd_is_told_when_clients_can_connect_and_servers_are_told_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with notified(tmp_path) as listener:
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("LISTEN_FDS", "1")
        monkeypatch.setenv("WATCHDOG_USEC", "30000000")
        with running(tmp_path, {"growing": stand_in("growing")}) as daemon:
            told = b""
            while b"READY=1" not in told:
                told = await trio.to_thread.run_sync(listener.recv, 65536)
            await daemon.ready()
            pid = (await daemon.rows())["growing"]["pid"]
            given = environment_of(pid)
            assert not [name for name in (b"NOTIFY_SOCKET", b"LISTEN_", b"WATCHDOG_") if name in given]
            assert b"PATH=" in given
