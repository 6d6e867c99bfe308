"""Real processes: one that is stopped or deaf is replaced, each call runs once, and who works is left alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.life.policy import RestartPolicy
from actors.life.states import State
from actors.server import ServerSettings
from actors.server.parts import liveness, traffic
from actors.transport.stdio import work
from actors.transport.stdio.command import Launch
from actors.transport.stdio.process import ProcessTransport
from tests.actors.server.rig import Rig, running_server

pytestmark = pytest.mark.process
TEST_S = 20.0
PAUSE_S = 0.1
SOON = RestartPolicy(backoff_initial_s=0.01, backoff_max_s=0.01)
SERVER = """
import json, os, sys, time
ledger, lines = sys.argv[1], sys.stdin
if "moves" in sys.argv:  # as the official SDK does
    lines = os.fdopen(os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
for line in lines:
    message = json.loads(line)
    method, params, result = message["method"], message.get("params", {}), {}
    if method == "initialize":
        info = {"name": "s", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        result = {"tools": []}
    if method == "tools/call":
        with open(ledger, "a") as file:
            file.write(json.dumps([params["name"], os.getpid()]) + "\\n")
        seconds, end = params["arguments"].get("s", 0), time.monotonic() + params["arguments"].get("s", 0)
        if params["name"] == "sleep":
            time.sleep(seconds)
        while params["name"] == "spin" and time.monotonic() < end:
            pass
        result = {"content": [], "structuredContent": {"process": os.getpid()}}
    if "id" in message and (method != "ping" or "mute" not in sys.argv):
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
    if params.get("name") == "deafen":
        time.sleep(1000)
"""


@asynccontextmanager
async def real_server(ledger: Path, *more: str, shell: bool = False, **settings: Any) -> AsyncIterator[Rig]:
    """Run the server as a process, with `shell` below one."""
    args = (sys.executable, "-I", "-S", "-c", SERVER, str(ledger), *more)
    if shell:
        args = ("/bin/sh", "-c", '"$@"; exit 3', "sh", *args)
    transport = ProcessTransport(Launch(command=args[0], args=args[1:]))
    given = ServerSettings(idle_timeout_s=0, **settings)
    with trio.fail_after(TEST_S):
        async with running_server(transport=transport, settings=given, policy=SOON) as rig:
            await rig.wake()
            yield rig
            await rig.stop()


async def call_after_pause(rig: Rig, tool: str) -> int:
    """Call a tool of a quiet server, and return which process has answered."""
    await trio.sleep(PAUSE_S)
    process: int = (await rig.call(tool))["process"]
    return process


def executions(ledger: Path) -> list[tuple[str, int]]:
    return [tuple(json.loads(line)) for line in ledger.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def soon_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a server be quiet after a moment, and processes be looked at often."""
    for module in (liveness, traffic):
        monkeypatch.setattr(module, "QUIET_S", PAUSE_S / 2)
    monkeypatch.setattr(liveness, "LEAST_S", 0.1)


async def process_of(rig: Rig) -> int:
    pid = (await rig.status()).pid
    assert pid is not None
    return pid


def until_in(state: bytes, pid: int) -> None:
    while work._state(pid) != state:
        pass


def child_of(pid: int) -> int:
    (child,) = work._children(pid)
    return child


@pytest.mark.usefixtures("soon_quiet")
@pytest.mark.parametrize(("more", "shell"), [((), False), (("mute",), False), (("moves",), False), ((), True)])
async def test_the_first_call_to_a_stopped_server_is_answered_by_a_fresh_process_and_runs_once(
    tmp_path: Path, more: tuple[str, ...], shell: bool
) -> None:
    ledger = tmp_path / "ledger"
    async with real_server(ledger, *more, shell=shell) as rig:
        first = await call_after_pause(rig, "a")
        assert await call_after_pause(rig, "b") == first
        stopped = child_of(await process_of(rig)) if shell else await process_of(rig)
        assert stopped == first
        os.kill(stopped, signal.SIGSTOP)
        until_in(b"T", stopped)
        second = await call_after_pause(rig, "c")
        assert second != first
        assert executions(ledger) == [("a", first), ("b", first), ("c", second)]
        assert any("it is frozen (stopped by a signal)" in line for line in rig.story)
        assert not work._state(first)


@pytest.mark.usefixtures("soon_quiet")
async def test_a_server_that_became_deaf_and_does_nothing_is_replaced_before_its_next_call(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    async with real_server(ledger, unresponsive_s=0.2) as rig:
        first = await call_after_pause(rig, "a")
        await rig.call("deafen")
        second = await call_after_pause(rig, "b")
        assert second != first
        assert executions(ledger) == [("a", first), ("deafen", first), ("b", second)]


@pytest.mark.usefixtures("soon_quiet")
@pytest.mark.parametrize("how", ["sleep", "spin"])
@pytest.mark.parametrize("left", [False, True])
async def test_a_server_that_is_busy_for_long_is_left_alone(tmp_path: Path, how: str, left: bool) -> None:
    ledger = tmp_path / "ledger"
    async with real_server(ledger, unresponsive_s=0.1, watch_interval_s=0.1) as rig:
        first = await call_after_pause(rig, "a")
        reply = rig.submit(how, s=1.0)  # ten times as long as a silent server has
        if left:
            while len(executions(ledger)) < 2:  # noqa: ASYNC110 - a file of another process
                await trio.sleep(0.01)
            reply.abandon()
        else:
            await reply.wait()
        assert await call_after_pause(rig, "b") == first
        assert (rig.actor.life.state, rig.actor.life.incarnation) == (State.READY, 1)


def test_only_what_reads_the_input_of_a_server_makes_it_frozen() -> None:
    """A server may have stopped a child of its own; what stands between us and the server has its input."""
    for script, frozen in (('"$@"; exit 1', True), ('"$@" < /dev/null; exit 1', False), ('"$@" & "$@" & wait', False)):
        command = ["/bin/sh", "-c", script, "sh", "/bin/sh", "-c", "kill -STOP $$"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as shell:
            try:
                while len(children := work._children(shell.pid)) < script.count("$@"):
                    pass
                for child in children:
                    until_in(b"T", child)
                until_in(b"S", shell.pid)
                looked = work.work_of(shell.pid, shell.pid)
                assert looked is not None
                assert looked.frozen is frozen, script
                assert looked.still_since(looked)
            finally:
                os.killpg(shell.pid, signal.SIGKILL)


def test_a_server_in_a_frozen_cgroup_is_frozen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lay(path: str, text: str) -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")

    lay("proc/7/stat", "7 (a) b) S 1 7 7 0 -1 0 0 0 0 0 5 6 0 0 20 0 1 0 9 0 0")
    lay("proc/7/cgroup", "0::/user.slice/app\n")
    monkeypatch.setattr(work, "_PROC", tmp_path / "proc")
    monkeypatch.setattr(work, "_CGROUPS", tmp_path / "cgroup")
    assert not work._is_frozen(7)
    for frozen in (0, 1):
        lay("cgroup/user.slice/app/cgroup.events", f"populated 1\nfrozen {frozen}\n")
        assert work._is_frozen(7) is bool(frozen)
