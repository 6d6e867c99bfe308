"""`python -m benchmarks.open_page --minutes 60`: what an open dashboard holds, and what the daemon does meanwhile.

Chromium has the overview and the page of a server open. A client calls a tool all the time, and the process of another
server is killed now and then, so that there is something to show. What the pages hold is read after a collection of
garbage. In the first hour the plots of it fill: what comes then is compared. `.ci/environment` installs the browser.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from benchmarks.client import page
from benchmarks.execute import THROUGH_US, http_job
from benchmarks.machine import ROOT, pause
from benchmarks.running import ECHO, Place, Running, daemon, entry, until_ready
from benchmarks.soak import Sample, looked_at

PAGES = ("/ui", "/ui/servers/echo")
SCRIPT = Path(__file__).with_suffix(".cjs")
KILL_EACH = 4
"""Samples between two kills."""
BURST_S, REST_S = 0.1, 1.5
"""Calls are made for so long, and none for so long."""


class Held(msgspec.Struct, frozen=True):
    """What all pages hold together; see the script."""

    heap: int
    nodes: int
    documents: int
    listeners: int
    looks: int
    wrong: list[str]


@contextmanager
def pages(url: str, every_s: float, packages: Path) -> Iterator[Iterator[Held]]:
    """Open the pages; gives what they hold, every so many seconds."""
    command = ["node", str(SCRIPT), str(packages), url, str(every_s), *PAGES]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as browser:
        assert browser.stdin is not None
        assert browser.stdout is not None
        try:
            yield (msgspec.json.decode(line, type=Held) for line in browser.stdout)
        finally:
            browser.stdin.close()


def watch(running: Running, minutes: float, every_s: float, packages: Path) -> list[tuple[Held, Sample]]:
    """Have pages open for so long, while calls are made and servers die; return what was seen."""
    seen: list[tuple[Held, Sample]] = []
    began = time.monotonic()
    url = f"http://127.0.0.1:{running.port}"
    with http_job(running.port, THROUGH_US, "legacy", 2) as job, pages(url, every_s, packages) as held:
        for now in held:
            at_s = time.monotonic() - began
            seen.append((now, looked_at(running.process.pid, at_s)))
            print(_line(*seen[-1]), file=sys.stderr, flush=True)
            if at_s > minutes * 60:
                break
            if len(seen) % KILL_EACH == 0:
                kill(running.port)
            end = time.monotonic() + every_s - 1
            while time.monotonic() < end:
                job.run(BURST_S)
                pause(REST_S)
    return seen


def kill(port: int) -> None:
    """Kill the process of the server that nobody calls, if it has one."""
    if pid := page(port, "/api/servers/mortal")["pid"]:
        os.kill(pid, signal.SIGKILL)


def _line(held: Held, sample: Sample) -> str:
    return (
        f"{sample.at_s:6.0f} s: pages {held.heap / 1e6:.2f} MB, {held.nodes} nodes, {held.listeners} listeners, "
        f"{held.looks} looks; daemon {sample.rss_mib:.0f} MiB, {sample.descriptors} descriptors"
    )


def table(seen: Sequence[tuple[Held, Sample]]) -> str:
    """Return a table of how all was in the first half of what was seen, and in the second."""
    half = max(1, len(seen) // 2)
    early, late = seen[:half], seen[-half:]

    def row(words: str, of: int, name: str, unit: float = 1) -> str:
        means = (sum(getattr(both[of], name) for both in part) / len(part) / unit for part in (early, late))
        return f"| {words} | {' | '.join(f'{mean:,.1f}' for mean in means)} |"

    return "\n".join(
        [
            "| mean | first half | second half |",
            "| --- | --- | --- |",
            row("JavaScript of both pages, MB", 0, "heap", 1e6),
            row("nodes", 0, "nodes"),
            row("documents", 0, "documents"),
            row("listeners", 0, "listeners"),
            row("daemon, MiB", 1, "rss_mib"),
            row("its descriptors", 1, "descriptors"),
            row("its threads", 1, "threads"),
        ]
    )


def main() -> int:
    """Print the table; return 1 if a console of a page said anything."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.open_page", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="that are compared")
    parser.add_argument("--fill", type=float, default=62.0, help="minutes before them")
    parser.add_argument("--every", type=float, default=15.0, help="seconds between two samples")
    parser.add_argument("--packages", type=Path, default=ROOT / ".cache" / "browser")
    arguments = parser.parse_args()
    servers = {"echo": entry(ECHO, idle_timeout_s=0), "mortal": entry(ECHO, idle_timeout_s=0)}
    with (
        tempfile.TemporaryDirectory(prefix="open-page-") as directory,
        daemon(Place(Path(directory)), servers) as running,
    ):
        until_ready(running.port)
        whole = arguments.fill + arguments.minutes
        seen = watch(running, whole, arguments.every, arguments.packages)
    print(table([both for both in seen if both[1].at_s >= arguments.fill * 60]))
    wrong = seen[-1][0].wrong
    print(f"{seen[-1][0].looks} looks; consoles: {len(wrong)} messages {wrong[:5]}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
