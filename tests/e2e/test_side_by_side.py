"""Several calls of one request, over real processes that take their time."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.e2e.daemons import Daemon, running
from tests.e2e.test_instances import most_at_once, slow

pytestmark = pytest.mark.e2e

NAP_S = 0.5


async def naps(daemon: Daemon, *servers: str) -> list[dict[str, Any]]:
    """Return when each process did what, of one request."""
    calls = [{"tool_path": f"{name}:nap", "arguments": {"s": NAP_S, "n": n}} for n, name in enumerate(servers)]
    answer = await daemon.call("execute_mcp_tool", calls=calls)
    results = answer["result"]["structuredContent"]["results"]
    assert [each["tool_path"] for each in results] == [each["tool_path"] for each in calls]
    return [json.loads(each["text"]) for each in results]


def test_servers_work_at_the_same_time_and_each_by_its_own_rules(tmp_path: Path) -> None:
    async def play(daemon: Daemon) -> None:
        await daemon.settled()
        await naps(daemon, "a", "b", "c")
        began = time.monotonic()
        apart = await naps(daemon, "a", "b", "c")
        assert time.monotonic() - began < 3 * NAP_S
        assert (most_at_once(apart), len({each["pid"] for each in apart})) == (3, 3)
        assert most_at_once(await naps(daemon, "a", "a")) == 1, "this one carries out one call after another"
        usage = await daemon.page("/api/usage")
        assert "nap" in json.dumps(usage)

    with running(tmp_path, {name: slow(tmp_path) for name in "abc"}) as daemon:
        trio.run(play, daemon)
