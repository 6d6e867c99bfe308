"""Several processes of a server that does one call after the other, of a real daemon; and replicas that come and go."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.e2e.daemons import Daemon, running, write_config

pytestmark = pytest.mark.e2e

SERVER = """
import json, os, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method, params = asked["method"], asked.get("params", {})
    if method == "initialize":
        info = {"name": "slow", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        result = {"tools": [{"name": "nap", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        began = time.monotonic()
        time.sleep(params["arguments"]["s"])
        told = {"pid": os.getpid(), "began": began, "ended": time.monotonic()}
        result = {"content": [{"type": "text", "text": json.dumps(told)}]}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "?"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def slow(directory: Path, **settings: Any) -> dict[str, Any]:
    script = directory / "slow.py"
    script.write_text(SERVER)
    return {"command": sys.executable, "args": ["-I", "-S", str(script)], **settings}


async def nap(daemon: Daemon, server: str, seconds: float, told: list[dict[str, Any]]) -> None:
    answer = await daemon.call(f"{server}:nap", {"s": seconds})
    told.append(json.loads(answer["result"]["content"][0]["text"]))


async def naps(daemon: Daemon, server: str, count: int, seconds: float = 0.2) -> list[dict[str, Any]]:
    """Make so many calls at once; return when each process did what."""
    told: list[dict[str, Any]] = []
    async with trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(nap, daemon, server, seconds, told)
    return told


def most_at_once(told: list[dict[str, Any]]) -> int:
    """Return how many calls were carried out at the same time."""
    return max(sum(each["began"] <= at["began"] < each["ended"] for each in told) for at in told)


async def pids(daemon: Daemon, server: str) -> list[int]:
    rows = (await daemon.servers())[server]["instances"]
    return [row["pid"] for row in rows if row["pid"] is not None]


async def test_processes_work_at_the_same_time_and_those_that_stay_are_left_alone(tmp_path: Path) -> None:
    servers = {"one": slow(tmp_path), "three": slow(tmp_path, instances=3)}
    with running(tmp_path, servers) as daemon:
        await daemon.settled()
        alone = await naps(daemon, "one", 6)
        assert (len({each["pid"] for each in alone}), most_at_once(alone)) == (1, 1)
        while len(await pids(daemon, "three")) < 3:
            await naps(daemon, "three", 6)
        together = await naps(daemon, "three", 6)
        assert len({each["pid"] for each in together}) == most_at_once(together) == 3
        row = (await daemon.servers())["three"]
        assert [each["state"] for each in row["instances"]] == ["ready"] * 3
        assert row["memory_bytes"] is None or row["memory_bytes"] == sum(e["memory_bytes"] for e in row["instances"])

        (first,) = {each["pid"] for each in alone}
        for count in (3, 2):
            write_config(tmp_path, {"one": slow(tmp_path, instances=count), "three": servers["three"]})
            reloaded = await daemon.post({}, path="/api/reload")
            assert reloaded.status_code == 200, reloaded.text
            while len(await pids(daemon, "one")) != count:
                await naps(daemon, "one", 4)
            kept = await pids(daemon, "one")
            assert kept[0] == first
        assert set(await pids(daemon, "three")) == {each["pid"] for each in together}
