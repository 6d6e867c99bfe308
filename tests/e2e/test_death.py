"""`kill -9`: of a server in a call, and of the daemon. Nothing outlives the daemon but what it has stored."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.actors.transport.stdio.children import Monitor, Pulse, monitor
from tests.actors.transport.stdio.sandbox.bwrap import needs_bwrap_here
from tests.e2e import environments
from tests.e2e.daemons import STAND_IN, Daemon, restarted, running, stand_in, text
from tests.fakes.failures import failure
from tests.scenario.client import message

pytestmark = pytest.mark.e2e

AT_ONCE_S = 5.0
"""Far below the deadline of a call; it covers a machine that is busy with other things."""
NOTHING_LEFT_S = 2.0


@asynccontextmanager
async def hanging_call(daemon: Daemon, lives: Monitor) -> AsyncIterator[tuple[Pulse, list[dict[str, Any]]]]:
    """Have a call in flight that will not be answered; give the server that has it, and where the answer appears."""
    answers: list[dict[str, Any]] = []

    async def call() -> None:
        answers.append(await daemon.execute("growing:hang"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(call)
        yield (await lives.pulses("hanging"))["hanging"], answers


@pytest.mark.case("P03", "P09")
async def test_a_server_killed_in_a_call_fails_it_at_once_and_the_next_call_works(tmp_path: Path) -> None:
    async with monitor() as lives:
        with running(tmp_path, {"growing": stand_in("growing", lives.address, backoff_initial_s=0.1)}) as daemon:
            await daemon.ready()
            with trio.fail_after(AT_ONCE_S):
                async with hanging_call(daemon, lives) as (server, answers):
                    os.kill(server.pid, signal.SIGKILL)
            error = failure(answers[0])
            assert error["code"] == -31502
            assert (error["data"]["type"], error["data"]["outcome"], error["data"]["server"]) == (
                "crashed",
                "unknown",
                "growing",
            )
            assert text(await daemon.execute("growing:echo", text="again")) == "again"
            row = (await daemon.rows())["growing"]
            assert (row["state"], row["incarnation"], row["restarts"]) == ("ready", 2, 1)
            assert row["pid"] not in {None, server.pid}


@pytest.mark.case("P04", "D03")
async def test_nothing_outlives_a_killed_daemon(tmp_path: Path) -> None:
    """Not a server that ignores the end of its input and SIGTERM, nor its grandchild that became a daemon."""
    async with monitor() as lives:
        with running(tmp_path, {"stubborn": stand_in("stubborn", lives.address)}) as daemon:
            pulses = await lives.pulses("server", "grandchild")
            await daemon.ready()
            await daemon.kill()
            with trio.fail_after(NOTHING_LEFT_S):
                for pulse in pulses.values():
                    await pulse.stopped()


@needs_bwrap_here
async def test_nothing_of_a_sandbox_outlives_a_killed_daemon(tmp_path: Path) -> None:
    async with monitor() as lives:
        seen = str(Path(lives.address).parent)
        sandbox = {"kind": "bubblewrap", "read": [STAND_IN], "write": [seen]}
        servers = {
            "stubborn": stand_in("stubborn", lives.address, sandbox=sandbox),
            "broken": stand_in("broken", sandbox="bubblewrap", max_restarts=0),
        }
        with running(tmp_path, servers) as daemon:
            pulses = await lives.pulses("server", "grandchild")
            await daemon.ready()
            rows = await daemon.rows()
            assert rows["stubborn"]["sandbox"].startswith(f"no network; writes only in {seen}, a /tmp of its own")
            assert "it runs in a sandbox: no network; writes only in a /tmp of its own" in rows["broken"]["last_error"]
            await daemon.kill()
            with trio.fail_after(NOTHING_LEFT_S):
                for pulse in pulses.values():
                    await pulse.stopped()


@pytest.mark.case("P02", "P04", "D01")
async def test_nothing_outlives_a_daemon_that_is_asked_to_end(tmp_path: Path) -> None:
    hasty = {"stop_eof_s": 0.2, "stop_term_s": 0.2}
    async with monitor() as lives:
        with running(tmp_path, {"stubborn": stand_in("stubborn", lives.address, **hasty)}) as daemon:
            pulses = await lives.pulses("server", "grandchild")
            await daemon.ready()
            daemon.process.send_signal(signal.SIGTERM)
            assert await daemon.ended() == 0
            with trio.fail_after(NOTHING_LEFT_S):
                for pulse in pulses.values():
                    await pulse.stopped()


@pytest.mark.case("D03")
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
async def test_a_restarted_daemon_goes_on_with_its_catalogue_and_its_sessions(tmp_path: Path, ending: int) -> None:
    servers = {
        "growing": stand_in("growing"),
        "time": environments.time_server(),
    }
    with running(tmp_path, servers) as first:
        await first.ready()
        before = await first.discover("*", limit=50)
        kept, deleted = await first.session(), await first.session()
        assert await first.delete(deleted) < 300
        await first.settled()
        first.process.send_signal(ending)
        await first.ended()
        with restarted(first) as second:
            assert await second.discover("*", limit=50) == before
            assert {row["pid"] for row in (await second.rows()).values()} == {None}
            assert {row["state"] for row in (await second.rows()).values()} == {"dormant"}
            await check_sessions(second, kept, deleted)
            assert text(await second.execute("growing:echo", text="awake")) == "awake"


async def test_the_first_request_after_a_restart_may_be_a_call(tmp_path: Path) -> None:
    with running(tmp_path, {"growing": stand_in("growing")}) as first:
        await first.ready()
        await first.settled()
        await first.kill()
        with restarted(first) as second:
            assert text(await second.execute("growing:echo", text="at once")) == "at once"


async def test_the_first_request_after_a_restart_may_be_for_a_list(tmp_path: Path) -> None:
    """A client may keep an answer for a while: it must not be the empty list of a daemon that still reads."""
    with running(tmp_path, {"excalidraw": stand_in("excalidraw")}) as first:
        await first.ready()
        before = await first.rpc("resources/list")
        assert [row["name"] for row in before["result"]["resources"]] == ["Excalidraw App"]
        await first.settled()
        await first.kill()
        with restarted(first) as second:
            assert await second.rpc("resources/list") == before


async def check_sessions(daemon: Daemon, kept: str, deleted: str) -> None:
    """One session goes on; one that was deleted, and one that nobody gave out, are unknown."""
    forged = kept[:-4] + ("aaaa" if kept[-4:] != "aaaa" else "bbbb")
    statuses = [
        (await daemon.within(session).post(message("tools/list"))).status_code for session in (kept, deleted, forged)
    ]
    assert statuses == [200, 404, 404]
