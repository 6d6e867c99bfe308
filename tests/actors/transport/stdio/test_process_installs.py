"""Launchers that install, as real processes: their work is seen, and they are ended with care."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from actors.life.states import State
from actors.server import ServerSettings
from actors.transport.base import Work
from actors.transport.stdio.command import Launch, ProcessLimits
from actors.transport.stdio.installer import installer_of
from actors.transport.stdio.process import ProcessTransport
from actors.transport.stdio.work import work_of
from tests.actors.server.rig import Rig, running_server
from tests.actors.server.test_life import outcome
from tests.actors.transport.stdio.children import HASTY, PATIENCE_S, launch, monitor, no_child_and_no_descriptor_is_left
from tests.actors.transport.stdio.test_process_spawn import few_descriptors

__all__ = ["no_child_and_no_descriptor_is_left"]

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody can tell what a process does"),
]

Npx = Callable[..., tuple[ProcessTransport, ServerSettings]]


@pytest.fixture
def npx(tmp_path: Path) -> Npx:
    """Make a transport and settings for `npx PACKAGE ...` with deadlines far too short for an install."""
    program = tmp_path / "npx"
    source = Path(__file__).with_name("installing.py").read_text(encoding="utf-8")
    program.write_text(f"#!{sys.executable} -IS\n{source}")
    program.chmod(0o755)

    def make(*args: str, limits: ProcessLimits = HASTY, **settings: float) -> tuple[ProcessTransport, ServerSettings]:
        what = Launch(command=str(program), args=("package", *args))
        installer = installer_of(what.command, what.args)
        assert installer is not None
        hasty = ServerSettings(
            installer=installer,
            probe_timeout_s=0.3,
            start_timeout_s=1,
            **settings,  # type: ignore[arg-type]  # seconds
        )
        return ProcessTransport(what, limits), hasty

    return make


@asynccontextmanager
async def running(transport: ProcessTransport, settings: ServerSettings) -> AsyncIterator[tuple[Rig, trio.Nursery]]:
    async with running_server(transport=transport, settings=settings, era=None) as rig, trio.open_nursery() as nursery:
        yield rig, nursery


@pytest.mark.parametrize("how", ["", "child"])
async def test_a_first_start_by_npx_that_installs_is_not_killed(npx: Npx, how: str) -> None:
    transport, settings = npx("3", how)
    with trio.fail_after(PATIENCE_S):
        async with running(transport, settings) as (rig, _):
            await rig.wake()
            assert rig.actor.life.incarnation == 1
            assert (await rig.status()).restarts == 0
            await rig.stop()


async def test_npx_that_hangs_is_noticed(npx: Npx) -> None:
    transport, settings = npx("1000", "quiet", install_quiet_s=2, install_grace_s=0.1)
    with trio.fail_after(PATIENCE_S):
        async with running(transport, settings) as (rig, nursery):
            nursery.start_soon(outcome, rig, rig.wake)
            while rig.actor.life.incarnation < 2:  # noqa: ASYNC110 - no event tells of it
                await trio.sleep(0.02)
            await rig.stop()


async def test_an_install_that_must_end_may_tidy_up(npx: Npx, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    transport, settings = npx("1000", "tidy", str(marker))
    with trio.fail_after(PATIENCE_S):
        async with running(transport, settings) as (rig, nursery):
            nursery.start_soon(outcome, rig, rig.wake)
            await rig.reach(State.HANDSHAKING)
            while "installing" not in (await rig.status(stderr=True)).stderr:  # noqa: ASYNC110 - no event tells of it
                await trio.sleep(0.02)
            await rig.sleep()
            assert marker.read_text() == "tidy"
            await rig.stop()


async def test_want_of_descriptors_is_no_failure_and_passes_by_itself(npx: Npx) -> None:
    transport, settings = npx("0")
    with trio.fail_after(PATIENCE_S):
        async with running(transport, settings) as (rig, _):
            with few_descriptors(3):
                await outcome(rig, lambda: rig.wake(urgent=False))
                status = await rig.status()
            assert status.state is State.RESPAWNING
            assert "the daemon has no free file descriptors (EMFILE)" in (status.last_error or "")
            await rig.reach(State.READY)
            assert (await rig.status()).restarts == 0
            await rig.stop()


async def test_the_work_of_a_whole_tree_is_seen() -> None:
    async with (
        monitor() as lives,
        ProcessTransport(launch("own_session_in_a_child", lives.address), HASTY).connect() as connection,
    ):
        child = (await lives.pulses("child"))["child"]
        work = await connection.work()
        assert work is not None
        assert work.processes == {connection.pid, child.pid}
        await connection.stop()


def test_of_a_process_that_is_gone_nothing_is_told() -> None:
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(pid, 0)
    assert work_of(pid, pid) is None


def test_waiting_is_no_work_and_everything_else_is() -> None:
    before = Work(cpu_s=1.0, moved_bytes=5000, processes=frozenset({1, 2}))
    assert not Work(cpu_s=1.01, moved_bytes=5100, processes=frozenset({1, 2})).busy_since(before)
    assert Work(cpu_s=1.5, moved_bytes=5000, processes=frozenset({1, 2})).busy_since(before)
    assert Work(cpu_s=1.0, moved_bytes=9000, processes=frozenset({1, 2})).busy_since(before)
    assert Work(cpu_s=1.0, moved_bytes=5000, processes=frozenset({1, 3})).busy_since(before)
    assert Work(cpu_s=0.2, moved_bytes=100, processes=frozenset({1, 2})).busy_since(before)  # a child has ended
