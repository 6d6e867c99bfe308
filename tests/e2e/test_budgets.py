"""A server that takes too much of the machine is replaced, with the reason, and its neighbour does not notice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.e2e.daemons import Daemon, running, stand_in, text
from tests.fakes.failures import failure

pytestmark = pytest.mark.e2e

SOON: dict[str, Any] = {"backoff_initial_s": 0.05, "backoff_max_s": 0.1}


async def call_neighbour(daemon: Daemon, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Call it again and again; each call has its answer."""
    number = 0
    while True:
        assert text(await daemon.execute("growing:echo", text=str(number))) == str(number)
        number += 1
        if number == 1:
            task_status.started()
        await trio.sleep(0.02)


@pytest.mark.case("P14")
@pytest.mark.parametrize(
    ("limit", "tool", "arguments", "why"),
    [
        ({"max_memory_mib": 60}, "leak", {"mb": 100}, "of memory, its limit is 60 MiB"),
        ({"max_processes": 20}, "fork", {"count": 50}, "it had 51 processes, its limit is 20"),
    ],
)
async def test_a_server_over_its_limit_is_replaced_and_calls_of_its_neighbour_go_on(
    tmp_path: Path, limit: dict[str, Any], tool: str, arguments: dict[str, int], why: str
) -> None:
    """Where a control group is delegated to us the kernel keeps the limit, which other tests are about."""
    servers = {"greedy": stand_in("greedy", **limit, **SOON), "growing": stand_in("growing")}
    with running(tmp_path, servers) as daemon:
        await daemon.ready()
        async with trio.open_nursery() as nursery, daemon.events() as events:
            await nursery.start(call_neighbour, daemon)
            before = await daemon.rows()
            page = await daemon.page("/api/servers/greedy")
            assert page["limits"] in ({next(iter(limit)): way} for way in ("watched", "kernel"))
            if page["limits"] == dict.fromkeys(limit, "kernel"):
                pytest.skip("a control group is delegated to us")
            answer = await daemon.execute(f"greedy:{tool}", **arguments)
            assert answer["result"]["content"][0]["text"] in ("taken", "50"), answer
            ended = await events.state("greedy", "respawning")
            assert why in json.dumps(ended)
            await events.state("greedy", "ready")
            after = await daemon.rows()
            assert text(await daemon.execute("greedy:echo", text="again")) == "again"
            nursery.cancel_scope.cancel()
        assert after["growing"]["pid"] == before["growing"]["pid"]
        assert (await daemon.page("/api/servers/growing")).get("limits") is None


@pytest.mark.case("D22")
async def test_with_less_free_than_has_to_stay_no_server_starts_and_its_caller_is_told_overloaded(
    tmp_path: Path,
) -> None:
    servers = {"growing": stand_in("growing", idle_timeout_s=0)}
    with running(tmp_path, servers) as daemon:
        await daemon.ready()
    plenty = 1 << 24  # MiB; more than there is
    with running(tmp_path, servers, memory={"reserve_mib": plenty}, call_timeout_s=4) as daemon:
        data = failure(await daemon.execute("growing:echo", text="x"))["data"]
        assert (data["type"], data["outcome"], data["retryable"]) == ("overloaded", "not_sent", True)
        assert data["retry_after_ms"] > 0
        status = await daemon.page("/api/status")
        assert {row["what"] for row in status["degraded"]} <= {"starting servers", "memory"}
        assert status["degraded"]
