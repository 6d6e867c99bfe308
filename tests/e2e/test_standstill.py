"""The daemon is stopped while calls are in flight, and goes on when their deadlines have long passed."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.actors.transport.stdio.children import Monitor, Pulse, monitor
from tests.e2e.daemons import Daemon, running, stand_in, text
from tests.fakes.failures import failure

pytestmark = pytest.mark.e2e

DEADLINE_S = 2.0
IDLE_S = 3.0
STOPPED_S = 4.0
"""What a process does while it is stopped is nothing, so nothing tells when it is long enough."""


@asynccontextmanager
async def stopped(daemon: Daemon) -> AsyncIterator[None]:
    """Stop it for the block, and longer than any deadline."""
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        yield
        await trio.sleep(STOPPED_S)
    finally:
        daemon.process.send_signal(signal.SIGCONT)


async def metrics(daemon: Daemon) -> dict[str, float]:
    """Return the figures without labels."""
    lines = (await daemon.ask("GET", "/metrics")).text.splitlines()
    return {name: float(value) for name, _, value in (line.partition(" ") for line in lines if line[0] != "#")}


@pytest.mark.case("D15")
async def test_after_a_standstill_calls_have_their_answers_and_servers_go_on_as_if_it_had_not_been(
    tmp_path: Path,
) -> None:
    async with monitor() as lives:
        far = {"growing": stand_in("growing", lives.address)}
        with running(tmp_path / "far", far) as remote:
            await remote.ready()
            servers = {
                "local": stand_in("growing", lives.address, call_timeout_s=DEADLINE_S),
                "remote": {"url": f"{remote.url}/mcp/servers/growing", "call_timeout_s": DEADLINE_S},
                "silent": stand_in("growing", lives.address, call_timeout_s=DEADLINE_S, unresponsive_s=DEADLINE_S),
                "idle": stand_in("growing", idle_timeout_s=IDLE_S),
            }
            with running(tmp_path / "near", servers) as daemon:
                await daemon.ready()
                await stand_still(daemon, lives)
                loop = (await daemon.page("/api/status"))["loop"]
                assert loop["standstills"] == 1
                assert loop["stood_still_s"] > STOPPED_S - 1
                assert loop["longest_stall_s"] < STOPPED_S
                assert (await metrics(daemon))["mcpvisor_standstills_total"] == 1
                assert daemon.log.count("the daemon stood still for ") == 1


async def stand_still(daemon: Daemon, lives: Monitor) -> None:
    answers: dict[str, Any] = {}

    async def call(tool: str) -> None:
        answers[tool] = await daemon.execute(tool)

    async with daemon.events() as events, trio.open_nursery() as nursery:
        nursery.start_soon(call, "silent:hang")
        await lives.pulses("hanging")
        used = trio.current_time()
        await daemon.execute("idle:echo", text="used")
        waiting: list[Pulse] = []
        for tool in ("local:wait", "remote:wait"):
            nursery.start_soon(call, tool)
            waiting.append((await lives.pulses("waiting"))["waiting"])
        async with stopped(daemon):
            for pulse in waiting:
                await pulse.release()
        await events.state("idle", "dormant")
        assert trio.current_time() - used >= IDLE_S + STOPPED_S - 0.5, "the standstill counted as idleness"
    assert {tool: text(answers[tool]) for tool in ("local:wait", "remote:wait")} == {
        "local:wait": "released",
        "remote:wait": "released",
    }
    assert failure(answers["silent:hang"])["data"]["type"] == "timeout"
    rows = await daemon.rows()
    assert {name: (row["state"], row["restarts"]) for name, row in rows.items()} == {
        "local": ("ready", 0),
        "remote": ("ready", 0),
        "silent": ("ready", 0),
        "idle": ("dormant", 0),
    }
