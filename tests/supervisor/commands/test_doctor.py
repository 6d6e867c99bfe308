"""`doctor` on machines made up of directories: programs of scripts, a home of its own, ports of this test."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from click.testing import CliRunner, Result

from supervisor.cli import cli
from supervisor.commands.diagnosis import gathering
from supervisor.config import Settings
from supervisor.demo.setting import configuration as demo
from supervisor.host.version import VERSION
from supervisor.store import open_store
from supervisor.store.database import SCHEMA_VERSION, move_aside
from supervisor.store.records import SwitchedOff
from tests.e2e.daemons import Daemon, running
from tests.supervisor.store.earlier import make_database

PATH = os.environ["PATH"]
STATE = Path(".local") / "state" / "mcpvisor"


class Machine:
    """A home without anything, and programs that are there because they were put there."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.bin = root / "bin"
        self.home.mkdir()
        self.bin.mkdir()
        self.config = self.home / "mcp.json"
        self.config.write_text("{}")

    def program(self, name: str, script: str) -> None:
        file = self.bin / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    def configure(self, servers: dict[str, Any], **settings: Any) -> None:
        self.config.write_text(json.dumps({"mcpServers": servers, "supervisor": {"listen": "127.0.0.1:0", **settings}}))

    def doctor(self, *arguments: str) -> Result:
        return CliRunner().invoke(cli, ["doctor", "--config", str(self.config), *arguments])

    def said(self, check: str, *arguments: str) -> list[tuple[str, str, str]]:
        """What a check says: status, what was seen, what to do."""
        rows = json.loads(self.doctor("--json", *arguments).stdout)["checks"]
        return [(row["status"], row["seen"], row["todo"]) for row in rows if row["check"] == check]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    for name in [name for name in os.environ if name.lower().endswith("_proxy") or name == "XDG_STATE_HOME"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.setenv("PATH", f"{made.bin}")
    made.configure({})
    return made


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon for all tests here, with a profile that names a tool which its server does not have."""
    profile = {"tools": ["notes:list_notes", "notes:forget_it", "notes:*x"]}
    servers = {"notes": demo()["mcpServers"]["notes"]}
    with running(tmp_path_factory.mktemp("doctor") / "daemon", servers, profiles={"work": profile}) as started:
        trio.run(started.ready)
        yield started


@pytest.fixture
def taken() -> Iterator[int]:
    """The port of a program that is no daemon: it listens and says nothing."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_machine_without_anything_is_well_as_long_as_no_server_needs_it(machine: Machine) -> None:
    result = machine.doctor()
    assert result.exit_code == 0, result.output
    assert "npx is not here, and no server needs it" in result.stdout
    assert list(machine.home.iterdir()) == [machine.config]  # nothing was made


def test_programs_are_looked_up_and_asked_as_the_servers_would_start_them(machine: Machine) -> None:
    machine.program("npx", "exit 3")
    machine.program("node", "echo v22.3.0")
    machine.program("docker", "echo 'Cannot connect to the Docker daemon at unix:///d. Is it running?' >&2; exit 1")
    other = machine.home / "other"
    other.mkdir()
    (other / "mine").write_text("#!/bin/sh\n")
    (other / "mine").chmod(0o755)
    machine.configure(
        {
            "a": {"command": "npx", "args": ["-y", "pack@1"]},
            "b": {"command": "/bin/sh", "args": ["-c", "uvx tool"]},
            "c": {"command": "docker", "args": ["run", "image"]},
            "d": {"command": "mine", "env": {"PATH": str(other)}},
            "e": {"command": "mine"},
            "off": {"command": "nothing", "disabled": True},
        }
    )
    result = machine.doctor()
    assert result.exit_code == 1
    assert [(status, seen) for status, seen, _ in machine.said("programs")] == [
        ("ok", f"Node.js 22.3.0, {machine.bin}/npx, for a"),
        ("ok", "/bin/sh, for b"),
        ("wrong", "uvx: was not found on the PATH, for b"),
        ("wrong", f"{machine.bin}/docker does not work, for c"),
        ("ok", f"{other}/mine, for d"),
        ("wrong", "mine: was not found on the PATH, for e"),
        ("ok", "python3 is not here, and no server needs it"),
    ]
    assert "-> uvx comes with uv: install uv" in result.stdout
    assert "-> start Docker" in result.stdout
    assert result.stderr.startswith("Error: 3 of ")


def test_a_program_that_never_answers_is_waited_for_a_moment_only(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "_PROGRAM_TIMEOUT_S", 0.1)
    machine.program("uvx", "exec /bin/sleep 600")
    machine.program("npx", "echo 1.0.0")  # without the node that says the version
    machine.configure({"a": {"command": "uvx", "args": ["tool==1"]}})
    assert [(status, seen) for status, seen, _ in machine.said("programs")][:2] == [
        ("warning", f"{machine.bin}/uvx, for a does not say its version"),
        ("warning", f"{machine.bin}/npx does not say its version"),
    ]


def test_a_file_that_cannot_be_used_or_is_not_there_is_wrong_and_the_rest_is_looked_at(machine: Machine) -> None:
    machine.config.write_text('{"mcpServers": }')
    result = machine.doctor()
    assert result.exit_code == 1
    assert f"{machine.config}:1: expected a value" in result.stdout
    assert "data directory  ok" in result.stdout
    machine.config.unlink()
    assert "cannot read the file" in machine.doctor().stdout


def test_entries_that_are_left_out_and_notes_are_told(machine: Machine) -> None:
    machine.configure({"a": {"comand": "x"}, "b": {"command": "/bin/sh", "args": ["~/x"]}})
    statuses = [status for status, *_ in machine.said("configuration")]
    assert statuses == ["wrong", "warning"]


def test_doctor_counts_the_notes_that_check_shows(machine: Machine) -> None:
    machine.configure({name: {"command": "/bin/sh", "args": ["~/x"]} for name in ("a", "b")})
    shown = CliRunner().invoke(cli, ["check", str(machine.config)]).stdout.count("note: ")
    ((_, seen, _), *_) = machine.said("configuration")
    assert (shown, seen) == (1, "1 note on the configuration")


async def test_the_data_directory_and_its_database_are_looked_at_and_not_touched(machine: Machine) -> None:
    root = machine.home / STATE
    root.mkdir(parents=True)
    root.chmod(0o755)
    async with open_store(root / "store.sqlite3"):
        pass
    before = {file.name: file.read_bytes() for file in root.iterdir()}
    said = await trio.to_thread.run_sync(lambda: [machine.said(name) for name in ("data directory", "database")])
    assert said[0] == [("warning", f"{root}: others can look into it (mode 0755)", f"chmod 700 {root}")]
    assert said[1] == [("ok", f"schema {SCHEMA_VERSION}", "")]
    assert {file.name: file.read_bytes() for file in root.iterdir()} == before


async def test_the_database_of_a_running_daemon_is_read(machine: Machine) -> None:
    root = machine.home / STATE
    root.mkdir(parents=True, mode=0o700)
    async with open_store(root / "store.sqlite3") as store:
        store.switched_off.put(SwitchedOff("a"))
        await store.flush()
        assert await trio.to_thread.run_sync(machine.said, "database") == [("ok", f"schema {SCHEMA_VERSION}", "")]


def test_an_earlier_a_later_and_a_damaged_database_are_told_apart(machine: Machine) -> None:
    root = machine.home / STATE
    root.mkdir(parents=True, mode=0o700)
    database = root / "store.sqlite3"
    make_database(database, "3")
    copied = f"schema 3: the next start copies it and brings it to {SCHEMA_VERSION}"
    assert machine.said("database") == [("ok", copied, "")]
    database.write_bytes(b"no database" * 100)
    ((status, seen, _),) = machine.said("database")
    assert (status, seen) == ("warning", "the database is damaged: file is not a database")
    copy = move_aside(database, 0.0).name
    ((status, seen, todo),) = machine.said("database")
    assert (status, seen) == ("warning", f"earlier databases were damaged: {copy}")
    assert "tokens" in todo
    database.touch(0o600)
    database.chmod(0o666)
    ((status, seen, todo),) = machine.said("data directory")
    assert status == "wrong"
    assert f"{database}: others may have written the database" in seen
    assert "chmod 600" in todo


def test_without_a_place_for_data_that_is_wrong(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    ((status, seen, _),) = machine.said("data directory")
    assert status == "wrong"
    assert seen.startswith("there is no place for the daemon's data")


def test_an_address_that_others_have_is_wrong(machine: Machine, taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "_DAEMON_TIMEOUT_S", 0.2)
    machine.configure({}, listen=f"127.0.0.1:{taken}")
    ((status, seen, todo),) = machine.said("address")
    assert (status, seen) == ("wrong", f'cannot listen on "127.0.0.1:{taken}": the port is in use')
    assert todo


@pytest.mark.parametrize(
    ("auth", "why", "way"),
    [
        ("none", "clients are not asked who they are", '"auth": "tokens"'),
        ("tokens", "is not encrypted", '"tls_certificate"'),
    ],
)
def test_an_address_that_others_can_reach_is_wrong_unless_it_is_meant(
    machine: Machine, auth: str, why: str, way: str
) -> None:
    machine.configure({}, listen="0.0.0.0:0", auth=auth)
    ((status, seen, todo),) = machine.said("address")
    assert status == "wrong"
    assert why in seen
    assert way in todo


def test_our_own_daemon_is_known_by_its_version(
    daemon: Daemon, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    listen = daemon.url.removeprefix("http://")
    machine.configure({}, listen=listen)
    assert machine.said("address") == [("ok", f"our daemon listens on {listen}", "")]
    machine.configure({}, listen=listen, data_dir=str(daemon.data))
    (told, *_) = machine.said("programs")
    assert told == ("ok", f"looked up on the PATH of the running daemon, which is not this one: {PATH}", "")
    monkeypatch.setattr(gathering, "VERSION", "99.0")
    ((status, seen, _),) = machine.said("address")
    assert (status, seen) == ("warning", f"the daemon at {listen} is of version {VERSION}")


def test_the_daemon_is_where_the_variable_of_all_commands_says(
    daemon: Daemon, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCPVISOR_URL", f"{daemon.url}/mcp")
    listen = daemon.url.removeprefix("http://")
    assert machine.said("address") == [("ok", f"our daemon listens on {listen}", "")]
    ((_, seen, _), *_) = machine.said("configuration")
    assert seen == f"the daemon that runs has another file: {daemon.directory / 'mcp.json'}"
    monkeypatch.setenv("MCPVISOR_URL", "http://127.0.0.1:1")
    (absent, _) = machine.said("address")
    assert absent[:2] == ("warning", "no daemon answers at http://127.0.0.1:1")


def test_tools_that_a_profile_names_and_no_server_has_are_told_where_a_daemon_knows(
    daemon: Daemon, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCPVISOR_URL", daemon.url)
    machine.config = daemon.directory / "mcp.json"
    told = machine.said("configuration")
    assert told[0][:2] == ("warning", "profiles or people name tools that there are not: notes:forget_it")


def test_the_file_of_a_running_daemon_is_looked_at_where_there_is_no_other(
    daemon: Daemon, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(machine.bin)
    listen = daemon.url.removeprefix("http://")
    monkeypatch.setattr(gathering, "Settings", partial(Settings, listen=listen))
    without = CliRunner().invoke(cli, ["doctor", "--json"])
    machine.configure({}, listen=listen)
    with_another = machine.said("configuration")
    file = daemon.directory / "mcp.json"
    rows = [row for row in json.loads(without.stdout)["checks"] if row["check"] == "configuration"]
    assert rows[-1]["seen"] == f"{file}, of the daemon that runs: 1 server"
    assert "wrong" not in {row["status"] for row in rows}
    assert with_another[0][:2] == ("ok", f"the daemon that runs has another file: {file}")


def test_a_proxy_is_told_without_its_password(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://me:hunter2@proxy:3128")
    monkeypatch.setenv("NO_PROXY", "near.example,127.0.0.1")
    machine.configure({"far": {"url": "wss://far.example/mcp"}, "near": {"url": "https://near.example/mcp"}})
    ((status, seen, _),) = machine.said("proxies")
    assert status == "ok"
    assert "far through HTTPS_PROXY; near directly" in seen
    assert "hunter2" not in seen
    monkeypatch.delenv("NO_PROXY")
    assert [status for status, *_ in machine.said("proxies")] == ["warning"]


def test_names_are_looked_up_only_if_that_is_asked_for(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    async def getaddrinfo(host: str, *args: Any, **more: Any) -> list[Any]:
        await trio.lowlevel.checkpoint()
        if host == "slow.example":
            await trio.sleep_forever()
        if host == "gone.example":
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return []

    monkeypatch.setattr(trio.socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(gathering, "_LOOKUP_TIMEOUT_S", 0.05)
    hosts = ("here", "gone", "slow")
    machine.configure({host: {"url": f"https://{host}.example/mcp"} for host in hosts})
    assert machine.said("remote servers") == []
    assert [(status, seen) for status, seen, _ in machine.said("remote servers", "--network")] == [
        ("ok", "here: here.example has an address"),
        ("wrong", "gone: gone.example cannot be looked up: no such name"),
        ("wrong", "slow: slow.example cannot be looked up: no answer within 0.05 s"),
    ]


def test_a_clock_that_was_set_back_is_told(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = machine.config.stat().st_mtime
    os.utime(machine.config, (changed + 1e8, changed + 1e8))
    ((status, seen, _),) = machine.said("clock")
    assert status == "warning"
    assert seen.endswith(f"before the last change of {machine.config}")
