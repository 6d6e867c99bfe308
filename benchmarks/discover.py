"""How long `discover_mcp_tools` takes: as a client sees it over HTTP, and the search alone as the daemon tells it."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks import client as mcp
from benchmarks.boot import Tools, dormant_daemon
from benchmarks.catalogue import made_up, queries
from benchmarks.running import status
from benchmarks.table import Row, percentile


def run(directory: Path, sizes: list[int], count: int, own: Tools | None) -> list[Row]:
    """Measure `count` searches at each number of tools, and in the catalogue `own` if there is one."""
    catalogues = [made_up(max(1, size // 100), size) for size in sizes]
    if own is not None:
        catalogues.append(own)
    return [_measure(directory / f"discover-{place}", tools, count) for place, tools in enumerate(catalogues)]


def _measure(directory: Path, tools: Tools, count: int) -> Row:
    seen: list[float] = []
    searched: list[float] = []
    with dormant_daemon(directory, tools) as running, mcp.Client(running.port) as client:
        total = status(running.port)["totals"]["tools"]
        for query in queries(count):  # fills caches, while the texts about all servers are made
            client.call(("discover_mcp_tools", {"query": query}))
        for query in queries(count):
            begin = time.perf_counter()
            result = client.call(("discover_mcp_tools", {"query": query}))
            seen.append((time.perf_counter() - begin) * 1000)
            searched.append(result["structuredContent"]["search_time_ms"])
    return Row(
        what=f"`discover_mcp_tools`, {total:,} tools, {count} queries",
        measured=f"client: p50 {percentile(seen, 0.5):.1f} ms, p99 {percentile(seen, 0.99):.1f} ms",
        compared=f"search alone: p50 {percentile(searched, 0.5):.1f} ms, p99 {percentile(searched, 0.99):.1f} ms",
    )
