"""`python -m benchmarks.reload --minutes 60`: the configuration of a daemon under load is edited every second.

See `edits` for what is edited and judged. Memory, descriptors and threads of the daemon are sampled.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import trio

from benchmarks.edits import Walk
from benchmarks.machine import free_port, program
from benchmarks.soak import SAMPLE_S, Sample, compare, looked_at

EDIT_S = 1.0
"""From the beginning of one edit to that of the next, unless the daemon needs longer."""
DRAIN_S = 20


@contextmanager
def walking(directory: Path, seed: int) -> Iterator[tuple[Walk, int]]:
    """Run a daemon whose configuration is in a directory; entered with what edits it, and the daemon's process."""
    port = free_port()
    own = {"listen": f"127.0.0.1:{port}", "data_dir": f"{directory}/data", "log_level": "warning"}
    settings = {**own, "starts_per_s": 1000, "cold_starts": 16, "reload_drain_s": DRAIN_S}
    walk = Walk(directory / "mcp.json", settings, seed)
    walk.begin()
    walk.url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "supervisor", "run", "--config", f"{directory}/mcp.json"]
    with program(command, port, directory / "daemon.log") as process:
        yield walk, process.pid


async def run(walk: Walk, pid: int, minutes: float, clients: int) -> list[Sample]:
    """Edit for so long; return the samples."""
    samples: list[Sample] = []
    begin, sampled_at = time.monotonic(), 0.0
    async with walk, trio.open_nursery() as load:
        await walk.settle()
        for client in range(clients):
            load.start_soon(walk.call_for_ever, client)
        while (at_s := time.monotonic() - begin) < minutes * 60:
            next_at = trio.current_time() + EDIT_S
            await walk.step()
            if at_s - sampled_at >= SAMPLE_S:
                sampled_at = at_s
                samples.append(looked_at(pid, at_s))
                print(f"{at_s:6.0f} s: {samples[-1]}, {len(walk.wrong)} wrong", file=sys.stderr, flush=True)
            await trio.sleep_until(next_at)
        load.cancel_scope.cancel()
    return samples


def report(walk: Walk, samples: list[Sample], left: int) -> str:
    """Return what was seen, in words and a table."""
    edits = {name: count for name, count in walk.counts.items() if not name.startswith("calls")}
    cuts = statistics.quantiles(walk.took_s, n=100)
    return "\n".join(
        [
            f"{sum(edits.values())} edits ({', '.join(f'{count} {name}' for name, count in sorted(edits.items()))}), "
            f"{walk.counts['calls']} calls, of which {walk.counts['calls judged']} had to work; {len(walk.wrong)} "
            f"things were wrong, {left} processes were left. From an edit to the lists of clients it was "
            f"{cuts[49]:.2f} s in the median, {cuts[98]:.2f} s in the 99th percentile, {max(walk.took_s):.2f} s at "
            "the most.",
            "",
            *compare(samples),
            *walk.wrong[:20],
        ]
    )


def main() -> int:
    """Run the edits; return 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reload", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="reload-") as directory:
        with walking(Path(directory), arguments.seed) as (walk, pid):
            samples = trio.run(run, walk, pid, arguments.minutes, arguments.clients)
        left = len(walk.processes())
        print(report(walk, samples, left))
    return 1 if walk.wrong or left else 0


if __name__ == "__main__":
    sys.exit(main())
