"""The nodes of a machine: what becomes of all when one of them does not come up, ends, or is to end. Each is a small
program here that does what its number and its run say.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.errors import ConfigError
from actors.life.policy import RestartPolicy
from supervisor.config.sections import FleetSettings
from supervisor.fleet import machine as module
from supervisor.fleet.machine import SOCKET, MachineNodes, NodeCommand, engine_directory
from supervisor.host.datadir import PUBLISHED, DataDir, previous_of
from supervisor.host.program import EXIT_CRASH, ProgramFailed, run_program

ENGINE = FleetSettings(engine="unix:///nowhere", keys=("k" * 32,), node="m", nodes=2)
NODE = """
import json, os, pathlib, select, signal, socket, sys
number = json.loads(sys.stdin.readline())["number"]
noted = pathlib.Path(sys.argv[1]) / f"runs-{number}"
runs = int(noted.read_text()) + 1 if noted.exists() else 1
(noted.parent / f"pid-{number}").write_text(str(os.getpid()))
(noted.parent / "draft").with_suffix(f".{number}").write_text(str(runs))
(noted.parent / "draft").with_suffix(f".{number}").replace(noted)
does = json.loads(sys.argv[2]).get(str(number), {})
codes = does.get("codes", [])
if does.get("silent") and runs == 1:
    sys.exit(codes[0])
signal.signal(signal.SIGTERM, lambda *_: os._exit(does.get("end", 0)))
signal.signal(signal.SIGHUP, lambda *_: reload())
def reload():
    (noted.parent / f"reloaded-{number}").touch()
    for word in does.get("says", ()):
        os.write(1, f"{word}\\n".encode())
def sign(text):
    address = "\\0" + os.environ["NOTIFY_SOCKET"][1:]
    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(text, address)
for text in does.get("signs", ()) if runs == 1 else ():
    sign(text.encode())
print(f"listening on http://127.0.0.1:{number}", flush=True)
if runs <= len(codes):
    os._exit(codes[runs - 1])
while not select.select([0], [], [], 0.1)[0]:  # a read would not hear a signal that came right before it
    pass
os._exit(75)
"""
PATIENCE_S = 60.0


def made(data: DataDir, fleet: FleetSettings = ENGINE, **does: Any) -> MachineNodes:
    """A machine whose nodes do what is said of their numbers, `n1` and so on."""
    said = json.dumps({name.removeprefix("n"): each for name, each in does.items()})
    words = [sys.executable, "-I", "-S", "-c", NODE, str(data.root), said]
    return MachineNodes(fleet, data, "127.0.0.1:1", lambda root: NodeCommand(words=words, environ=dict(os.environ)))


@asynccontextmanager
async def running(machine: MachineNodes) -> AsyncIterator[list[str]]:
    """Run it for a block, which gets its URLs; it ends in order."""
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            yield await nursery.start(machine.run)
            machine.closing.set()


async def until(holds: Callable[[], bool]) -> None:
    with trio.fail_after(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - other processes write files
            await trio.sleep(0.01)


def runs(data: DataDir, number: int) -> int:
    return int((data.root / f"runs-{number}").read_text())


def pid(data: DataDir, number: int) -> int:
    return int((data.root / f"pid-{number}").read_text())


def ends_with(code: int) -> pytest.RaisesGroup[ProgramFailed]:
    """The failure of a program with an exit code, in groups."""
    failure = pytest.RaisesExc(ProgramFailed, check=lambda error: error.code == code)
    return pytest.RaisesGroup(failure, flatten_subgroups=True)


async def test_all_come_up_and_end_in_order(data: DataDir) -> None:
    machine = made(data)
    async with running(machine) as urls:
        assert urls == machine.urls.value
        assert urls in (["http://127.0.0.1:1"], ["http://127.0.0.1:2"])
        machine.reload()
        await until(lambda: all((data.root / f"reloaded-{number}").exists() for number in (1, 2)))
    assert [runs(data, 1), runs(data, 2)] == [1, 1]
    assert (data.root / "nodes" / "2" / "page.key").read_bytes() == data.key("page")
    for number in (1, 2):
        with pytest.raises(ProcessLookupError):
            os.kill(pid(data, number), 0)


async def test_each_begins_with_what_was_published_for_the_first(data: DataDir) -> None:
    published = data.root / PUBLISHED
    for newer in ("{}", '{"mcpServers": {}}'):
        published.write_text(newer)
        async with running(made(data)):
            copy = data.root / "nodes" / "2" / PUBLISHED
            assert copy.read_text() == newer
            assert not previous_of(copy).exists()


async def test_one_that_ends_is_started_again_and_the_other_goes_on(data: DataDir) -> None:
    async with running(made(data)):
        os.kill(pid(data, 2), signal.SIGKILL)
        await until(lambda: runs(data, 2) == 2)
        os.kill(pid(data, 2), signal.SIGTERM)  # also one that somebody ends in order
        await until(lambda: runs(data, 2) == 3)
        assert runs(data, 1) == 1


async def test_one_whose_loop_is_stuck_is_killed_and_started_again(
    data: DataDir, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_SILENT_S", 0.2)
    ends = {"signs": ["WATCHDOG=1", "STOPPING=1\nSTATUS=ending"]}
    async with running(made(data, n1=ends, n2={"signs": ["READY=1", "WATCHDOG=1"]})):
        await until(lambda: runs(data, 2) == 2)
    assert runs(data, 1) == 1
    assert "m-2 gives no sign of life for 0.2 s: it is stuck, and killed" in caplog.text


@pytest.mark.parametrize(("code", "seen"), [(78, 78), (75, 75), (0, EXIT_CRASH), (1, 1)])
async def test_one_that_does_not_come_up_ends_all_with_its_code(data: DataDir, code: int, seen: int) -> None:
    with ends_with(seen):
        async with running(made(data, n2={"silent": True, "codes": [code]})):
            raise AssertionError
    if (data.root / "runs-1").exists():  # it had begun
        with pytest.raises(ProcessLookupError):
            os.kill(pid(data, 1), 0)


async def test_one_that_keeps_ending_is_left_for_a_while_and_the_other_goes_on(
    data: DataDir, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_POLICY", quick())
    async with running(made(data, n2={"codes": [70] * 9})):
        await until(lambda: "started again in 60.0 s, the others go on" in caplog.text)
        assert (runs(data, 1), runs(data, 2)) == (1, 6)


async def test_where_none_is_left_all_ends(data: DataDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_POLICY", quick())
    with ends_with(EXIT_CRASH):
        async with running(made(data, n1={"codes": [70] * 9}, n2={"codes": [1] * 9})):
            await trio.sleep_forever()


def quick() -> RestartPolicy:
    return RestartPolicy(max_restarts=5, period_s=60.0, backoff_initial_s=0.01, backoff_max_s=0.01)


async def test_all_end_when_all_are_idle_at_once(data: DataDir) -> None:
    machine = made(data, n1={"says": ["idle", "nothing", "busy", "idle"]}, n2={"says": ["idle"]})
    async with running(machine):
        machine.reload()
        await machine.closing.wait()
    machine = made(data, n1={"says": ["busy"]}, n2={"says": ["idle"]})
    async with running(machine):
        machine.reload()
        await until(lambda: [node.is_idle for node in machine._nodes] == [False, True])
        assert not machine.closing.is_set()


async def test_the_code_of_one_that_does_not_end_in_order_is_that_of_all(data: DataDir) -> None:
    with ends_with(75):
        async with running(made(data, n1={"end": 75})):
            pass


async def test_an_end_before_they_listen_is_one_in_order(data: DataDir) -> None:
    machine = made(data)
    machine.closing.set()
    with pytest.raises(ProgramFailed) as raised:
        await machine.run()
    assert raised.value.code == 0


def test_a_program_that_has_said_why_it_failed_ends_with_its_code(data: DataDir) -> None:
    machine = made(data, n1={"silent": True, "codes": [78]})
    assert run_program(machine, lambda urls: None, PATIENCE_S) == 78


async def test_without_a_program_for_an_engine_the_start_says_what_to_do(
    data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(data.root))
    with pytest.raises(ConfigError, match=r"neither valkey-server nor redis-server on PATH.*apt install"):
        await made(data, FleetSettings(nodes=2)).run()


@pytest.mark.parametrize("script", ["#!/bin/sh\necho 'no such option'\nexit 3\n", "#!/nowhere\n"])
async def test_an_engine_that_does_not_start_ends_the_start(
    data: DataDir, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    program = data.root / "redis-server"
    program.write_text(script)
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{data.root}:/bin")
    with pytest.RaisesGroup(ConfigError, flatten_subgroups=True), trio.fail_after(PATIENCE_S):
        await made(data, FleetSettings(nodes=2)).run()
    assert not (data.root / "runs-1").exists()


@pytest.mark.parametrize(("name", "fits"), [("short", True), ("with a blank", False), ("l" * 90, False)])
def test_the_socket_of_an_engine_is_where_its_path_fits_and_nobody_else_enters(name: str, fits: bool) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as above:
        root = Path(above) / name
        with engine_directory(root) as place, socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(place / SOCKET))
            assert place.stat().st_mode & 0o777 == 0o700
            assert (place.parent == root) == fits
        assert place.exists() == fits
