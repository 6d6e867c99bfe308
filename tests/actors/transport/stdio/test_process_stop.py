"""Ending a process: every server is gone within the bound, with all that it started, whoever is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from actors.transport.base import Incoming
from actors.transport.stdio.command import Launch, ProcessLimits
from actors.transport.stdio.containment import Containment, GroupContainment, ShimContainment
from actors.transport.stdio.process import ProcessConnection, ProcessTransport
from tests.actors.transport.stdio.children import (
    HASTY,
    PATIENCE_S,
    ROOT,
    launch,
    monitor,
    no_child_and_no_descriptor_is_left,
    parent_of,
    send,
    state_of,
    whole,
)

__all__ = ["no_child_and_no_descriptor_is_left"]

pytestmark = pytest.mark.process

both = pytest.mark.parametrize("containment", [ShimContainment(), GroupContainment()], ids=["shim", "group"])
PATIENT = ProcessLimits(stop_eof_s=PATIENCE_S, stop_term_s=PATIENCE_S)


async def stopped_within(connection: ProcessConnection, bound_s: float) -> None:
    with trio.fail_after(bound_s):
        await connection.stop()


@both
async def test_a_server_that_ends_with_its_input_is_not_signalled(containment: Containment) -> None:
    async with ProcessTransport(launch("echo"), PATIENT, containment=containment).connect() as connection:
        await stopped_within(connection, PATIENCE_S)
        exit_ = await connection.wait()
    assert (exit_.code, exit_.signal, exit_.asked) == (0, None, True)


@both
async def test_a_server_that_ignores_the_end_of_its_input_gets_sigterm(containment: Containment) -> None:
    limits = ProcessLimits(stop_eof_s=0.1, stop_term_s=PATIENCE_S)
    async with monitor() as lives:
        what = launch("polite_on_sigterm", lives.address)
        async with ProcessTransport(what, limits, containment=containment).connect() as connection:
            server = (await lives.pulses("server"))["server"]
            assert server.pid == connection.pid
            await stopped_within(connection, PATIENCE_S)
            assert (await connection.wait()).code == 7
        await server.stopped()


@pytest.mark.case("P02")
@both
async def test_a_server_that_ignores_everything_is_killed(containment: Containment) -> None:
    async with monitor() as lives:
        async with ProcessTransport(
            launch("ignore_sigterm", lives.address), HASTY, containment=containment
        ).connect() as connection:
            server = (await lives.pulses("server"))["server"]
            await stopped_within(connection, 5.0)
            exit_ = await connection.wait()
            assert exit_.signal == signal.SIGKILL
            assert exit_.code is None
        await server.stopped()


@pytest.mark.case("P01")
@both
async def test_a_paused_server_is_continued_so_that_it_can_obey_sigterm(containment: Containment) -> None:
    limits = ProcessLimits(stop_eof_s=0.1, stop_term_s=PATIENCE_S)
    async with monitor() as lives:
        transport = ProcessTransport(launch("stop_itself", lives.address), limits, containment=containment)
        async with transport.connect() as connection:
            await lives.pulses("server")
            await stopped_within(connection, PATIENCE_S)
            assert (await connection.wait()).signal == signal.SIGTERM


@pytest.mark.case("P02", "P15")
async def test_the_default_limits_stop_the_worst_server_within_five_seconds() -> None:
    async with monitor() as lives:
        async with ProcessTransport(launch("ignore_sigterm", lives.address)).connect() as connection:
            server = (await lives.pulses("server"))["server"]
            await stopped_within(connection, 5.0)
        await server.stopped()


@both
async def test_a_server_blocked_on_a_full_pipe_can_still_end_by_itself(containment: Containment) -> None:
    async with ProcessTransport(launch("full_pipe"), PATIENT, containment=containment).connect() as connection:
        await stopped_within(connection, PATIENCE_S)
        assert (await connection.wait()).code == 5
        assert await connection.receive() == Incoming()


async def test_an_answer_that_comes_with_the_end_of_the_input_is_still_received() -> None:
    received: list[bytes] = []

    async def read(connection: ProcessConnection) -> None:
        while messages := (await connection.receive()).lines:
            received.extend(whole(messages))

    transport = ProcessTransport(launch("answer_at_the_end"), PATIENT)
    async with transport.connect() as connection, trio.open_nursery() as nursery:
        nursery.start_soon(read, connection)
        await send(connection, b'{"jsonrpc":"2.0","id":1}')
        await stopped_within(connection, PATIENCE_S)
    assert received == [b'{"jsonrpc":"2.0","id":1}']


async def test_two_may_ask_for_a_stop_and_a_stop_after_the_end_is_nothing() -> None:
    async with ProcessTransport(launch("echo"), PATIENT).connect() as connection:
        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(connection.stop)
                nursery.start_soon(connection.stop)
            await connection.stop()
            connection.kill()
            assert await connection.receive() == Incoming()


@pytest.mark.case("P03")
@both
async def test_a_grandchild_that_holds_stdout_does_not_hide_the_exit(containment: Containment) -> None:
    async with monitor() as lives:
        what = launch("grandchild_holds_stdout", lives.address)
        async with ProcessTransport(what, PATIENT, containment=containment).connect() as connection:
            grandchild = (await lives.pulses("grandchild"))["grandchild"]
            assert connection.pid
            os.kill(connection.pid, signal.SIGKILL)
            with trio.fail_after(PATIENCE_S):
                exit_ = await connection.wait()
                assert (exit_.signal, exit_.asked) == (signal.SIGKILL, False)
                assert await connection.receive() == Incoming()
            await grandchild.stopped()


async def test_a_reader_is_told_the_end_although_a_process_escaped_with_stdout() -> None:
    async with monitor() as lives:
        what = launch("own_session_in_a_child", lives.address)
        limits = ProcessLimits(reap_s=0.1)
        async with ProcessTransport(what, limits, containment=GroupContainment()).connect() as connection:
            escaped = (await lives.pulses("child"))["child"]
            connection.kill()
            with trio.fail_after(PATIENCE_S):
                assert await connection.receive() == Incoming()
        os.kill(escaped.pid, signal.SIGKILL)
        await escaped.stopped()


@pytest.mark.case("P04")
@pytest.mark.parametrize("way", ["stop", "kill", "leave", "die"])
async def test_a_daemonised_grandchild_ends_with_its_server(way: str) -> None:
    async with monitor() as lives:
        async with ProcessTransport(launch("daemonise", lives.address)).connect() as connection:
            found = await lives.pulses("daemon", "server")
            with trio.fail_after(PATIENCE_S):
                if way == "stop":
                    await connection.stop()
                elif way == "kill":
                    connection.kill()
                    await connection.wait()
                elif way == "die":
                    os.kill(found["server"].pid, signal.SIGKILL)
                    assert (await connection.wait()).signal == signal.SIGKILL
        for pulse in found.values():
            await pulse.stopped()


@pytest.mark.case("P05")
@pytest.mark.parametrize("way", ["stop", "kill", "die"])
async def test_a_server_behind_a_shell_ends_with_it_and_its_death_is_that_of_the_shell(way: str) -> None:
    """As `npx` does, the shell stays and waits for what it started."""
    async with monitor() as lives:
        behind = launch("ignore_sigterm", lives.address)
        words = [behind.command, *behind.args]
        shell = Launch(command="/bin/sh", args=("-c", '"$@"; true', "sh", *words))
        async with ProcessTransport(shell, HASTY).connect() as connection:
            server = (await lives.pulses("server"))["server"]
            assert parent_of(server.pid) == connection.pid
            with trio.fail_after(PATIENCE_S):
                if way == "stop":
                    await connection.stop()
                elif way == "kill":
                    connection.kill()
                else:
                    os.kill(server.pid, signal.SIGKILL)
                exit_ = await connection.wait()
                assert await connection.receive() == Incoming()
            assert exit_.asked is (way != "die")
        await server.stopped()


@pytest.mark.case("P04")
async def test_forty_children_half_of_them_in_sessions_of_their_own_end_with_their_server() -> None:
    async with monitor() as lives:
        async with ProcessTransport(launch("forks", lives.address, "40")).connect() as connection:
            children = [(await lives.pulses("child"))["child"] for _ in range(40)]
            await stopped_within(connection, 5.0)
        for child in children:
            await child.stopped()


@pytest.mark.case("P23")
async def test_a_server_dies_with_its_shim() -> None:
    async with monitor() as lives:
        async with ProcessTransport(launch("ignore_sigterm", lives.address)).connect() as connection:
            server = (await lives.pulses("server"))["server"]
            os.kill(parent_of(server.pid), signal.SIGKILL)
            with trio.fail_after(PATIENCE_S):
                exit_ = await connection.wait()
            assert (exit_.code, exit_.signal, exit_.asked) == (None, signal.SIGKILL, False)
        await server.stopped()


@pytest.mark.case("P23")
async def test_the_group_of_a_server_dies_with_its_shim() -> None:
    async with (
        monitor() as lives,
        ProcessTransport(launch("grandchild_holds_stdout", lives.address)).connect() as connection,
    ):
        grandchild = (await lives.pulses("grandchild"))["grandchild"]
        assert connection.pid
        os.kill(parent_of(connection.pid), signal.SIGKILL)
        with trio.fail_after(PATIENCE_S):
            await connection.wait()
        await grandchild.stopped()


async def test_a_shim_that_is_paused_does_not_protect_its_server() -> None:
    async with monitor() as lives:
        async with ProcessTransport(launch("ignore_sigterm", lives.address), HASTY).connect() as connection:
            server = (await lives.pulses("server"))["server"]
            os.kill(parent_of(server.pid), signal.SIGSTOP)
            await stopped_within(connection, 5.0)
            assert (await connection.wait()).signal == signal.SIGKILL
        await server.stopped()


async def test_sigterm_to_the_shim_reaches_the_server() -> None:
    async with (
        monitor() as lives,
        ProcessTransport(launch("polite_on_sigterm", lives.address)).connect() as connection,
    ):
        server = (await lives.pulses("server"))["server"]
        os.kill(parent_of(server.pid), signal.SIGTERM)
        with trio.fail_after(PATIENCE_S):
            assert (await connection.wait()).code == 7


DRIVER = """
import os, signal, sys
import trio
sys.path.insert(0, sys.argv[1])
from actors.transport.stdio.containment import become_subreaper
from actors.transport.stdio.process import ProcessTransport
from tests.actors.transport.stdio.children import launch, parent_of

async def main():
    if sys.argv[3] == "subreaper":
        assert become_subreaper()
    async with ProcessTransport(launch(sys.argv[4], sys.argv[2])).connect() as connection:
        print(connection.pid, parent_of(connection.pid), flush=True)
        exit_ = await connection.wait()
        print(exit_.signal, flush=True)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            print("no child is left", flush=True)
        await trio.sleep_forever()

trio.run(main)
"""


@asynccontextmanager
async def driver(address: str, kind: str, habit: str = "daemonise") -> AsyncIterator[trio.Process]:
    """A program of its own that runs our transport, and may be killed; is killed at the end.

    In a session of its own, so that whoever inherits its children is not in it.
    """
    command = [sys.executable, "-c", DRIVER, str(ROOT), address, kind, habit]
    process = await trio.lowlevel.open_process(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    try:
        yield process
    finally:
        with trio.move_on_after(PATIENCE_S, shield=True):
            await kill(process)
            await process.stdout.aclose()


async def next_line(process: trio.Process) -> str:
    assert process.stdout is not None
    line = b""
    with trio.fail_after(PATIENCE_S):
        while not line.endswith(b"\n"):
            byte = await process.stdout.receive_some(1)
            assert byte, "the driver ended"
            line += byte
    return line.decode().rstrip()


async def kill(process: trio.Process) -> None:
    process.kill()
    with trio.fail_after(PATIENCE_S):
        await process.wait()


@pytest.mark.case("D03")
async def test_nothing_survives_a_kill_dash_nine_of_the_daemon() -> None:
    async with monitor() as lives, driver(lives.address, "plain") as daemon:
        found = await lives.pulses("daemon", "server")
        await kill(daemon)
        for pulse in found.values():
            await pulse.stopped()


async def test_a_server_that_stopped_its_shim_does_not_survive_a_kill_dash_nine_of_the_daemon() -> None:
    async with monitor() as lives, driver(lives.address, "plain", "stop_its_shim") as daemon:
        found = await lives.pulses("daemon", "server")
        with trio.fail_after(10):
            while state_of(parent_of(found["server"].pid)) != "T":  # noqa: ASYNC110 - it may still be on its processor
                await trio.sleep(0.01)
        await kill(daemon)
        for pulse in found.values():
            await pulse.stopped()


async def test_a_server_does_not_survive_its_daemon_and_its_shim_both_killed() -> None:
    async with monitor() as lives, driver(lives.address, "plain", "ignore_sigterm") as daemon:
        server = (await lives.pulses("server"))["server"]
        daemon.send_signal(signal.SIGSTOP)  # so that it does not see the end of the shim
        os.kill(parent_of(server.pid), signal.SIGKILL)
        await kill(daemon)
        await server.stopped()


@pytest.mark.case("P23")
async def test_a_daemon_that_inherits_orphans_sweeps_what_a_killed_shim_held() -> None:
    async with monitor() as lives, driver(lives.address, "subreaper") as daemon:
        found = await lives.pulses("daemon", "server")
        server, shim = (int(number) for number in (await next_line(daemon)).split())
        assert server == found["server"].pid
        os.kill(shim, signal.SIGKILL)
        for pulse in found.values():
            await pulse.stopped()
        assert json.loads(await next_line(daemon)) == signal.SIGKILL
        assert await next_line(daemon) == "no child is left"


CANCELLED_START = """
import os, sys
from functools import partial
from pathlib import Path
import trio
sys.path.insert(0, sys.argv[1])
from actors.transport.stdio.containment import ShimContainment
from actors.transport.stdio.containment import become_subreaper

async def main():
    assert become_subreaper()
    async with trio.open_nursery() as nursery:
        spawn = partial(ShimContainment(python=sys.argv[2]).spawn, env={"PATH": os.environ["PATH"]}, cwd="/")
        nursery.start_soon(spawn, ["/bin/cat"])
        while not Path(sys.argv[3]).exists():
            await trio.sleep(0.01)
        nursery.cancel_scope.cancel()
    try:
        print(os.waitpid(-1, os.WNOHANG), "is left")
    except ChildProcessError:
        print("no child is left")

trio.run(main)
"""


async def test_a_start_that_ends_between_fork_and_report_leaves_a_daemon_that_inherits_orphans_no_child(
    tmp_path: Path,
) -> None:
    shim, begun = tmp_path / "python", tmp_path / "begun"
    shim.write_text(f"#!/bin/sh\nsetsid sh -c 'touch {begun}; exec sleep 1000' &\nexec sleep 1000\n")
    shim.chmod(0o755)
    command = [sys.executable, "-c", CANCELLED_START, str(ROOT), str(shim), str(begun)]
    with trio.fail_after(PATIENCE_S):
        done = await trio.run_process(command, capture_stdout=True, start_new_session=True)
    assert done.stdout == b"no child is left\n"
