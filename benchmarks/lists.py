"""How long the loop stands still while the lists of a server are read: `python -m benchmarks.lists`.

A whole daemon runs in this process beside a ticker that notes how much too late it wakes; the server is a process of
its own. Each case is read at the start and three times again, although nothing changed. Numbers, never assertions.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import httpx2
import msgspec
import trio

from benchmarks.stall import Ticker
from supervisor.config import load
from supervisor.daemon import Daemon
from supervisor.front.edge.listening import open_sockets
from supervisor.host.datadir import open_data_dir
from supervisor.host.pauses import SWITCH_INTERVAL_S

SERVER = Path(__file__).with_name("list_server.py")
MIB = 1024 * 1024
PAUSE_S = 3.0
"""For a reading that was told of: debouncing, the server itself, the reading."""
SETTLE_S = 20.0
LIMIT_S = 120.0


class Case(msgspec.Struct, frozen=True):
    """What the server is started with; all but the number of tools in bytes."""

    name: str
    tools: int
    size: int
    page: int
    capability: int = 0


CASES = (
    Case("5 MiB, 1,700 tools", 1_700, 3_000, 6 * MIB),
    Case("30 MiB, 9,900 tools", 9_900, 3_100, 15 * MIB),
    Case("10,000 tools of 300 bytes", 10_000, 300, 15 * MIB),
    Case("200 kB of capabilities", 5, 300, MIB, 200_000),
)


def main() -> None:
    """Print a line for each case."""
    for case in CASES:
        with tempfile.TemporaryDirectory(prefix="lists-") as directory:
            print(trio.run(_measured, case, Path(directory)), flush=True)


async def _measured(case: Case, directory: Path) -> str:
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    arguments = [str(SERVER), *map(str, (case.tools, case.size, case.page, case.capability))]
    entry = {"command": sys.executable, "args": arguments, "idle_timeout_s": 0}
    config = directory / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"big": entry}}))
    ticker = Ticker()
    with open_data_dir(directory / "data", {}) as data:
        daemon = Daemon(load(config, {"PATH": os.environ["PATH"]}), data, open_sockets("127.0.0.1:0", 5.0))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ticker.run)
            (url,) = await nursery.start(daemon.run)
            async with httpx2.AsyncClient(base_url=url, timeout=LIMIT_S) as client:
                begun = time.perf_counter()
                with ticker.phase("first"):
                    await _until_listed(client)
                    seen_s = time.perf_counter() - begun
                    await trio.sleep(SETTLE_S)  # the tokens are counted, and all is written twice
                written = _written()
                with ticker.phase("again"):
                    await _read_again(client, 3)
                written = _written() - written
            daemon.closing.set()
            nursery.cancel_scope.cancel()
    gaps = ", ".join(f"{phase} {max(ticker.late_ms[phase]):.0f} ms" for phase in ("first", "again"))
    return f"{case.name}: listed after {seen_s:.1f} s; longest gaps: {gaps}; written again {written / 1e6:.1f} MB"


async def _until_listed(client: httpx2.AsyncClient) -> None:
    with trio.fail_after(LIMIT_S):
        while True:
            if (await client.get("/readyz")).json()["ready"]:
                return
            await trio.sleep(0.1)


async def _read_again(client: httpx2.AsyncClient, times: int) -> None:
    params = {"name": "execute_mcp_tool", "arguments": {"tool_path": "big:tool_0", "arguments": {"p0": "x"}}}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "lists", "version": "1"}}
    accept = {"Accept": "application/json, text/event-stream"}
    opened = await client.post("/mcp", json=_request("initialize", hello), headers=accept)
    session = {**accept, "Mcp-Session-Id": opened.headers["Mcp-Session-Id"]}
    for _ in range(times):
        await client.post("/mcp", json=_request("tools/call", params), headers=session)
        await trio.sleep(PAUSE_S)


def _request(method: str, params: Mapping[str, object]) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def _written() -> int:
    """Return how many bytes this process has written so far."""
    counters = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(counters["wchar"])


if __name__ == "__main__":
    main()
