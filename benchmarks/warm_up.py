"""What starting servers ahead is worth: `python -m benchmarks.warm_up CATALOG.jsonl QUERIES.jsonl [--rounds 10]`.

Two things are printed, of the same files as for `benchmarks.search`:

- how often a search would start a server, and how often that is one that serves what was asked, by how sure the search
  has to be of its first hit (a distance, 0 is best; the daemon takes what fits);
- what the next call gains: a daemon with real servers that sleep, a search, a pause as a model makes one, a call.

That a client calls what it searched for is taken for granted: what it really does, `/api/usage` counts.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from actors.catalogue.snapshot import Catalogue
from benchmarks import client as mcp
from benchmarks.running import ECHO, Place, daemon, entry, until_dormant, until_ready
from benchmarks.search import Query, Tool, build
from benchmarks.table import spread
from supervisor.metatools.arguments import Discover
from supervisor.metatools.discovery import DiscoverySettings, cut, likely_server, search
from supervisor.metatools.servers import FITS

BORDERS: Final = (FITS, 0.3, 0.1, 0.03)
PAUSES_S: Final = (0.1, 0.5, 2.0)
IDLE_S: Final = 0.3


def predictions(catalogue: Catalogue, queries: Sequence[Query]) -> list[tuple[float, bool]]:
    """Return of each query whose first hit fits its distance, and whether its server serves what was asked."""
    made: list[tuple[float, bool]] = []
    for query in queries:
        wanted = cut(Discover(query=query.query), DiscoverySettings())
        found = search(catalogue, wanted, time.perf_counter).ranking
        if server := likely_server(found):
            right = any(server == good for group in query.groups for good, _ in group)
            made.append((found.hits[0].distance, right))
    return made


def print_predictions(made: Sequence[tuple[float, bool]], queries: int) -> None:
    print(f"{queries} searches\n{'surer than':>12} {'would start':>12} {'right':>8}")
    for border in BORDERS:
        sure = [right for distance, right in made if distance < border]
        share = f"{sum(sure) / len(sure) * 100:.1f} %" if sure else "-"
        print(f"{border:>12} {len(sure) / queries * 100:>10.1f} % {share:>8}")


def print_gains(rounds: int) -> None:
    servers = {
        "the minimal echo server": (ECHO, "it:echo", {"text": "x"}),
        "mcp-server-time": ((sys.executable, "-m", "mcp_server_time"), "it:get_current_time", {"timezone": "UTC"}),
    }
    print(f"\n{'the call after a search':<26} {'pause':>6} {'asleep':>9} {'ahead':>9} {'gained':>9}")
    for what, (command, path, arguments) in servers.items():
        tool: mcp.Tool = ("execute_mcp_tool", {"tool_path": path, "arguments": arguments})
        for pause_s in PAUSES_S:
            took = [gain(command, tool, path, pause_s, rounds, ahead=ahead) for ahead in (0, 1)]
            asleep, ahead = (spread(each).median * 1000 for each in took)
            print(f"{what:<26} {pause_s:>4} s {asleep:>6.0f} ms {ahead:>6.0f} ms {asleep - ahead:>6.0f} ms")


def gain(
    command: tuple[str, ...], tool: mcp.Tool, path: str, pause_s: float, rounds: int, *, ahead: int
) -> list[float]:
    """Return how long calls took, in seconds, that came so long after a search for their tool."""
    took: list[float] = []
    with tempfile.TemporaryDirectory() as directory:
        servers = {"it": entry(command, idle_timeout_s=IDLE_S + (pause_s if ahead else 0.0))}
        with daemon(Place(Path(directory)), servers, warm_up=ahead, warm_up_unused_s=1 + pause_s) as running:
            until_ready(running.port)
            for number in range(rounds + 1):  # the first is not counted, as in `benchmarks.wake`
                until_dormant(running.port)
                with mcp.Client(running.port) as client:
                    client.call(("discover_mcp_tools", {"query": path}))
                    time.sleep(pause_s)  # noqa: TID251 - a program of its own, without a loop
                    begin = time.perf_counter()
                    client.call(tool)
                    took += [time.perf_counter() - begin] if number else []
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catalog", type=Path)
    parser.add_argument("queries", type=Path)
    parser.add_argument("--rounds", type=int, default=10)
    given = parser.parse_args()
    tools = [msgspec.json.decode(line, type=Tool) for line in given.catalog.read_bytes().splitlines()]
    queries = [msgspec.json.decode(line, type=Query) for line in given.queries.read_bytes().splitlines()]
    print_predictions(predictions(build(tools), queries), len(queries))
    print_gains(given.rounds)


if __name__ == "__main__":
    main()
