"""`python -m benchmarks.faults [SUBJECT ...]` tries the same faults on this daemon and on other proxies.

Prints each trial that is not passed, and how many are. `--write` keeps the results for the documentation.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.faults.clients import try_clients
from benchmarks.faults.ends import try_ends
from benchmarks.faults.kept import Kept, keep
from benchmarks.faults.subjects import Subject, subjects
from benchmarks.faults.verdict import Trial, score
from benchmarks.faults.wires import try_remote, try_wires

TRIES: dict[str, Callable[[Subject, Path], Iterator[Trial]]] = {
    "lines": try_wires,
    "remote": try_remote,
    "processes": try_ends,
    "clients": try_clients,
}


def tried(subject: Subject, groups: list[str]) -> Iterator[Trial]:
    """Yield each trial, as it is done."""
    with tempfile.TemporaryDirectory(prefix="faults-") as directory:
        for group in groups:
            yield from TRIES[group](subject, Path(directory) / group)


def main() -> int:
    """Try what was asked for; return the exit code, which is 0 whatever came out."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help="names; all that can be installed without any")
    parser.add_argument("--only", nargs="*", choices=TRIES, default=list(TRIES), help="groups of trials")
    parser.add_argument("--write", action="store_true", help="keep the results for docs/background/comparison.md")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended
    for subject in subjects():
        if arguments.subjects and subject.name not in arguments.subjects:
            continue
        print(subject.name, subject.version, flush=True)
        trials = []
        for each in tried(subject, arguments.only):
            trials.append(each)
            if each.mark == "missed" or each.says:
                print(f"  {each.mark}: {each.group}: {each.name}: {each.says}", flush=True)
        print(f"  passed {score(trials)}", flush=True)
        if arguments.write:
            today = f"{datetime.now(UTC):%-d %B %Y}"
            keep(Kept(subject.name, subject.version, subject.how, today, tuple(trials)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
