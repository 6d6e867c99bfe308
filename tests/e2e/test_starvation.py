"""What the system gives is taken away from a running daemon, and given back: it ends only when it is asked to."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
import sqlite3
import struct
import subprocess
import termios
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import httpx2
import pytest
import trio

from actors.transport.stdio.resources.room import SPAWN
from tests.e2e import daemons
from tests.e2e.daemons import COMMAND, Daemon, DaemonProcess, log_of, running, spawn, stand_in, text, write_config
from tests.e2e.fork_server import ForkedProcess, fork
from tests.fakes.failures import failure
from tests.scenario.client import PATIENCE_S, message

pytestmark = pytest.mark.e2e

FEW = 64
SERVERS = 10
CLIENTS = 60
PESTERED_S = 3.0
PIPE_BYTES = 4096
MAX_LINE = 1000
"""Of the log; what is longer than the room that is left waits whole."""
SOON_S = 15.0
"""Seconds on a machine that does nothing else, but that is not sure."""


@contextmanager
def limited(monkeypatch: pytest.MonkeyPatch, soft: int, hard: int) -> Iterator[None]:
    """Daemons of the block have this limit of descriptors from their start."""
    with monkeypatch.context() as patched:
        patched.setattr(daemons, "fork", partial(fork, descriptors=(soft, hard)))
        yield


async def degraded(daemon: Daemon) -> list[str]:
    status = await daemon.page("/api/status")
    return [row["what"] for row in status["degraded"]]


async def until_degraded(daemon: Daemon, wanted: list[str]) -> None:
    with trio.fail_after(PATIENCE_S):
        while sorted(await degraded(daemon)) != wanted:  # noqa: ASYNC110 - nothing tells another process
            await trio.sleep(0.05)


async def pester(daemon: Daemon, number: int, until: float) -> None:
    """One client that calls until a moment, whatever it gets. It is not cancelled: httpx would leave sockets open."""
    while trio.current_time() < until:
        try:
            await daemon.execute(f"server{number % SERVERS}:echo", text="x")
        except (httpx2.HTTPError, OSError, json.JSONDecodeError):
            await trio.sleep(0.02)


async def answered(daemon: Daemon, server: str) -> None:
    """Call until the server answers: what is asked for meanwhile may be refused, nothing may be lost for good."""
    with trio.fail_after(PATIENCE_S):
        while True:
            try:
                answer = await daemon.execute(f"{server}:echo", text=server)
            except (httpx2.HTTPError, json.JSONDecodeError):  # no room for another connection, which is said as text
                await trio.sleep(0.02)
                continue
            if "error" in answer:
                assert answer["error"]["data"]["retryable"], answer
            elif answer["result"].get("isError"):
                assert failure(answer)["data"]["retryable"], answer
            else:
                assert text(answer) == server
                return


@pytest.mark.case("N04")
async def test_with_64_descriptors_20_clients_too_many_and_servers_in_turns_everything_works_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = {f"server{number}": stand_in("growing") for number in range(SERVERS)}
    with limited(monkeypatch, FEW, FEW), running(tmp_path, servers) as daemon:
        assert resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE) == (FEW, FEW)
        async with trio.open_nursery() as nursery:
            for number in range(CLIENTS):
                nursery.start_soon(pester, daemon, number, trio.current_time() + PESTERED_S)
        assert daemon.process.poll() is None
        for server in servers:
            await answered(daemon, server)
        await until_degraded(daemon, [])
        assert sum("WARNING" in line for line in daemon.log.splitlines()) < 60
    assert "Traceback" not in daemon.log


async def test_servers_get_the_limit_of_descriptors_that_the_daemon_was_started_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with limited(monkeypatch, 200, hard), running(tmp_path, {"growing": stand_in("growing")}) as daemon:
        await daemon.ready()
        assert resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE)[0] > 200
        pid = (await daemon.rows())["growing"]["pid"]
        assert resource.prlimit(pid, resource.RLIMIT_NOFILE)[0] == 200


def descriptors_of(daemon: Daemon) -> int:
    return len(list(Path(f"/proc/{daemon.process.pid}/fd").iterdir()))


async def test_descriptors_that_are_taken_away_while_it_runs_are_missed_and_then_no_more(tmp_path: Path) -> None:
    servers = {"first": stand_in("growing"), "second": stand_in("growing", idle_timeout_s=1)}
    with running(tmp_path, servers) as daemon:
        await daemon.ready()
        async with daemon.events() as events:
            await events.state("second", "dormant")
            before = resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE)
            few = descriptors_of(daemon) + SPAWN - 2
            resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (few, before[1]))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(answered, daemon, "second")  # the first one is put to sleep for it
                await events.state("first", "dormant")
            resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, before)
        await answered(daemon, "first")
        await until_degraded(daemon, [])


@pytest.mark.case("D12")
async def test_a_locked_database_delays_neither_listening_nor_the_end_and_is_used_when_it_is_free(
    tmp_path: Path,
) -> None:
    servers = {"growing": stand_in("growing")}
    with running(tmp_path, servers) as daemon:
        await daemon.ready()
        await daemon.settled()
    with closing(sqlite3.connect(tmp_path / "data" / "store.sqlite3", isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        started = trio.current_time()
        with running(tmp_path, servers) as daemon:
            assert trio.current_time() - started < SOON_S
            await answered(daemon, "growing")
            assert await degraded(daemon) == ["store"]
            stopping = trio.current_time()
            daemon.process.send_signal(signal.SIGTERM)
            assert await daemon.ended() == 0
            assert trio.current_time() - stopping < SOON_S
        with running(tmp_path, servers) as daemon:
            await answered(daemon, "growing")
            other.execute("ROLLBACK")
            other.close()
            await until_degraded(daemon, [])
            await daemon.settled()
    with closing(sqlite3.connect(tmp_path / "data" / "store.sqlite3")) as store:
        assert store.execute("SELECT name FROM servers").fetchall() == [("growing",)]


@pytest.mark.case("D11")
async def test_a_full_disk_costs_memory_only_until_there_is_room_and_then_nothing_is_missing(tmp_path: Path) -> None:
    sink = {"name": "calls", "type": "file", "path": "calls.jsonl", "events": ["mcp.tool.executed"]}
    settings: dict[str, Any] = {"event_sinks": [sink], "audit_calls": True}
    with running(tmp_path, {"growing": stand_in("growing")}, **settings) as daemon:
        await daemon.ready()
        await daemon.settled()
        before = resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (0, before[1]))
        await daemon.at("/api/servers/growing/restart").post(b"")  # which is logged
        await answered(daemon, "growing")
        await until_degraded(daemon, ["logs of servers", "store"])
        for number in range(5):
            assert text(await daemon.execute("growing:echo", text=str(number))) == str(number)
        assert (await daemon.page("/api/status"))["store"]["pending_writes"] > 0
        resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, before)
        await until_degraded(daemon, [])
        await daemon.settled()
        kept = await daemon.until("/api/status", lambda page: not page["events"]["sinks"][0]["queued"])
        assert kept["events"]["sinks"][0]["dropped"] == 0
        assert kept["audit"]["lost"] == 0
        records = (await daemon.page("/api/audit?action=tool.call"))["records"]
        calls = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]
    assert len(records) == len([call for call in calls if call["data"].get("server_slug")]) == 6


@pytest.mark.case("D12")
async def test_a_damaged_database_is_told_of_by_status_log_and_events(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "store.sqlite3").write_bytes(b"no database" * 1000)
    (data / "store.sqlite3").chmod(0o600)
    sink = {"name": "told", "type": "file", "path": "told.jsonl", "events": ["resource.limit.exceeded"]}
    with running(tmp_path, {"growing": stand_in("growing")}, event_sinks=[sink]) as daemon:
        await daemon.ready()
        await answered(daemon, "growing")
        copy = (await daemon.page("/api/status"))["store"]["damaged"]
        assert (data / copy).read_bytes().startswith(b"no database")
        assert "is damaged" in daemon.log
    (told,) = [json.loads(line) for line in (tmp_path / "told.jsonl").read_text().splitlines()]
    assert told["data"]["resource"] == "database"
    assert copy in told["data"]["reason"]


def unread(pipe: IO[str]) -> int:
    """How many bytes wait in a pipe."""
    (waiting,) = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))
    return int(waiting)


@contextmanager
def unheard(directory: Path) -> Iterator[tuple[ForkedProcess, IO[str]]]:
    """Run a daemon whose streams are pipes; that of its log, which is the second of these, has little room."""
    words = ["run", "--config", str(directory / "mcp.json"), "--data-dir", str(directory / "data")]
    reading, writing = os.pipe()
    fcntl.fcntl(reading, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    with os.fdopen(reading) as log:
        try:
            process = fork([*words, "--listen", "127.0.0.1:0"], os.environ, writing)
        finally:
            os.close(writing)
        with process:
            yield process, log


@pytest.mark.case("D20")
async def test_whoever_reads_nothing_of_it_and_then_leaves_stops_no_daemon(tmp_path: Path) -> None:
    missing = {f"missing{number}": {"command": "no-such-program"} for number in range(50)}  # a line each, at least
    write_config(tmp_path, {"growing": stand_in("growing"), **missing})
    with unheard(tmp_path) as (process, log):
        daemon = Daemon(process, await listening(process), tmp_path)
        try:
            await daemon.ready()
            assert unread(log) > PIPE_BYTES - MAX_LINE
            assert text(await daemon.execute("growing:echo", text="unread")) == "unread"
            process.stdout.close()
            log.close()
            await daemon.at("/api/servers/growing/restart").post(b"")
            await answered(daemon, "growing")
            process.send_signal(signal.SIGTERM)
            assert await daemon.ended() == 0
        finally:
            process.kill()


@pytest.mark.case("D23")
@pytest.mark.parametrize("closed", ["2>&-", "<&- 2>&-"])
async def test_without_stderr_the_lock_keeps_its_content(tmp_path: Path, closed: str) -> None:
    write_config(tmp_path, {"missing": {"command": "no-such-program"}})
    process = closed_streams(tmp_path, closed)
    try:
        daemon = Daemon(process, await listening(process), tmp_path)
        await daemon.ready()
        process.send_signal(signal.SIGTERM)
        assert await daemon.ended() == 0
    finally:
        process.kill()
        process.communicate()
    assert (tmp_path / "data" / "daemon.lock").read_text() == f"{process.pid}\n"


def closed_streams(directory: Path, closed: str) -> subprocess.Popen[str]:
    """Start a daemon with streams closed by a shell."""
    words = ["sh", "-c", f'exec "$@" {closed}', "sh", *COMMAND, "--config", str(directory / "mcp.json")]
    words += ["--listen", "127.0.0.1:0", "--data-dir", str(directory / "data")]
    return subprocess.Popen(words, cwd=daemons.ROOT, stdout=subprocess.PIPE, text=True)


async def listening(process: DaemonProcess) -> str:
    assert process.stdout is not None
    line = await trio.to_thread.run_sync(process.stdout.readline)
    return line.removeprefix("listening on ").strip()


async def test_a_session_that_was_ended_stays_ended_whatever_ends_the_daemon(tmp_path: Path) -> None:
    with running(tmp_path, {}) as daemon:
        session, other = await daemon.session(), await daemon.session()
        assert await daemon.delete(session) == 204
        await daemon.kill()
        with daemons.restarted(daemon) as following:
            ping = message("ping")
            assert (await following.within(session).post(ping)).status_code == 404
            assert (await following.within(other).post(ping)).status_code == 200


REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "host": ({"allowed_hosts": ["ok.example", "http://wrong/"]}, "allowed_hosts[1]: not a host: 'http://wrong/'"),
    "origin": ({"allowed_origins": ["https://app.example.com/path"]}, "allowed_origins[0]: not an origin"),
    "key": ({}, "session.key: the key may be known to others"),
    "schema": ({}, "the database was written by a newer version (schema 99"),
    "directory": ({}, "others can write the data directory"),
    "unknown": ({"drain_seconds": 3}, "mcp.json:1: supervisor.drain_seconds: unknown key"),
    "syntax": ({}, "mcp.json:1"),
}


@pytest.mark.case("D07")
@pytest.mark.parametrize("case", REFUSALS)
async def test_what_is_wrong_before_the_start_is_said_by_run_and_by_check_with_78(tmp_path: Path, case: str) -> None:
    settings, said = REFUSALS[case]
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    if case == "key":
        (data / "session.key").write_bytes(bytes(32))
        (data / "session.key").chmod(0o644)
    elif case == "schema":
        with closing(sqlite3.connect(data / "store.sqlite3")) as newer:
            newer.execute("PRAGMA user_version = 99")
    elif case == "directory":
        data.chmod(0o777)
    write_config(tmp_path, {"growing": stand_in("growing")}, data_dir=str(data), **settings)
    if case == "syntax":
        with (tmp_path / "mcp.json").open("a") as file:
            file.write(",")
    with spawn(tmp_path) as process:
        try:
            assert await trio.to_thread.run_sync(process.wait, PATIENCE_S) == 78
        finally:
            process.kill()
    assert said in log_of(tmp_path).read_text()
    assert "Traceback" not in log_of(tmp_path).read_text()
    with (tmp_path / "checked").open("w+b") as told:
        with fork(["check", str(tmp_path / "mcp.json")], os.environ, told.fileno()) as process:
            assert await trio.to_thread.run_sync(process.wait, PATIENCE_S) == 78
        told.seek(0)
        assert said in told.read().decode()


INTERRUPTING = """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPT_AT"]:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
"""


@pytest.mark.parametrize("at", ["click", "quart_trio", "tiktoken.load"])
async def test_ctrl_c_while_it_loads_is_quiet(tmp_path: Path, at: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTING)
    write_config(tmp_path, {})
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "INTERRUPT_AT": at}
    command = [*COMMAND, "--config", str(tmp_path / "mcp.json"), "--data-dir", str(tmp_path / "data")]
    with trio.fail_after(PATIENCE_S):
        found = await trio.run_process(
            [*command, "--listen", "127.0.0.1:0"],
            cwd=daemons.ROOT,
            env=environment,
            capture_stdout=True,
            capture_stderr=True,
            check=False,
        )
    assert found.returncode in {-signal.SIGINT, 130}
    assert b"Traceback" not in found.stderr


async def test_without_descriptors_for_a_start_it_says_so_in_a_line(tmp_path: Path) -> None:
    write_config(tmp_path, {})
    words = ["sh", "-c", 'ulimit -n 8; exec "$@"', "sh", *COMMAND, "--config", str(tmp_path / "mcp.json")]
    found = await trio.run_process(
        [*words, "--data-dir", str(tmp_path / "data"), "--listen", "127.0.0.1:0"],
        cwd=daemons.ROOT,
        capture_stderr=True,
        capture_stdout=True,
        check=False,
    )
    assert found.returncode == 75, found.stderr
    assert b"Traceback" not in found.stderr
    assert b"Too many open files" in found.stderr
