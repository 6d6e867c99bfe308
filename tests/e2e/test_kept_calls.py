"""`kill -9` of the daemon: what was called is known to the next one, but for the calls of the last second."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from supervisor.store.write_behind import LINGER_S
from supervisor.usage.history import FLUSH_S
from tests.e2e.daemons import Daemon, client, restarted, running, stand_in
from tests.scenario.client import message

pytestmark = pytest.mark.e2e

LOST_S = 1.0
KILLS = 3


class Figures(NamedTuple):
    """Calls of the last day, of all time of the tool, and of those that are known one by one, the oldest first."""

    counted: int
    of_tool: int
    times: list[float]


async def call_until(daemon: Daemon, moment: float) -> list[float]:
    """Call one time after the other until a moment (unix s); return when each was answered."""
    answered: list[float] = []
    params = {"name": "execute_mcp_tool", "arguments": {"tool_path": "growing:echo", "arguments": {"text": "a"}}}
    async with client() as http:
        while time.time() < moment:
            assert (await http.post(f"{daemon.url}/mcp", json=message("tools/call", params))).is_success
            answered.append(time.time())
    return answered


async def figures_of(daemon: Daemon) -> Figures:
    """Return what a daemon knows, once it has read the disk."""
    page = await daemon.until("/api/calls?limit=500", lambda page: page["newest"])
    total = (await daemon.page("/api/usage?window=24h"))["total"]
    (tool,) = (await daemon.page("/api/tools?name=echo"))["tools"]
    return Figures(total["calls"], tool["calls"], [row["time"] for row in reversed(page["calls"])])


async def test_a_killed_daemon_loses_the_calls_of_its_last_second_at_most(tmp_path: Path) -> None:
    assert FLUSH_S + LINGER_S < LOST_S, "the rest of the second is for the disk"
    before = Figures(0, 0, [])
    with ExitStack() as daemons:
        daemon = daemons.enter_context(running(tmp_path, {"growing": stand_in("growing")}))
        await daemon.ready()
        for _ in range(KILLS):
            answered = await call_until(daemon, time.time() + 2 * LOST_S)
            killed = time.time()
            await daemon.kill()
            daemon = daemons.enter_context(restarted(daemon))
            known = await figures_of(daemon)
            due, made = sum(at < killed - LOST_S for at in answered), len(answered)
            assert 0 < due < made, "there are calls that must be known, and others"
            for now, earlier in zip(known[:2], before[:2], strict=True):
                assert earlier + due <= now <= earlier + made, "each once, and none that was not made"
            fresh = [at for at in known.times if not before.times or at > before.times[-1]]
            assert due <= len(fresh) <= made or len(known.times) == 500
            # The last that was due began after the answer to the one before it.
            assert due == 1 or fresh[-1] >= answered[due - 2], "those that are missing are the last ones"
            before = known
