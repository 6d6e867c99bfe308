"""`python -m tests.fuzz.remote --bytes N --seed N`: random answers of remote servers against all that reads them.

Counts what came of each case, and exits with 1 after a defect: an error that is not typed, something logged that nobody
foresaw, or a request without an answer in its time. What a case of a seed was is the same each time.
"""

from __future__ import annotations

import argparse
import logging
import sys
import traceback
from collections import Counter
from random import Random

import trio
from trio._core import _run
from trio.testing import MockClock

from tests.fuzz.cases import DEADLINE_S, KINDS
from tests.fuzz.grammars import Grammar
from tests.fuzz.network import Network, connected


class Logged(logging.Handler):
    """Keeps what the program logs."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line, and the last of a traceback."""
        self.lines.append(record.getMessage() + (f" {record.exc_info[1]!r}" if record.exc_info else ""))


async def _case(kind: str, seed: str) -> tuple[int, str]:
    """Return how many bytes a case had, and its outcome."""
    random = Random(seed)
    grammar = Grammar(random)
    server, client = KINDS[kind]
    outcome = "late"
    async with trio.open_nursery() as nursery:
        network = Network(server(grammar), random, nursery)
        with connected(network), trio.move_on_after(DEADLINE_S):
            outcome = await client(grammar)
        nursery.cancel_scope.cancel()
    return network.written, outcome


def run(kind: str, seed: str) -> tuple[int, str, str]:
    """Run a case; return how many bytes it had, its outcome, and what was wrong with it, empty for nothing."""
    _run._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[misc]  # as hypothesis has it
    _run._r.seed(seed)  # else the tasks of a pass run in any order
    logged = Logged()
    root = logging.getLogger("actors")
    root.addHandler(logged)
    try:
        written, outcome = trio.run(_case, kind, seed, clock=MockClock(autojump_threshold=0))
    except Exception as error:  # noqa: BLE001 - whatever it is, that is what is looked for
        return 0, "", "".join(traceback.format_exception(error)[-30:])
    finally:
        root.removeHandler(logged)
    wrong = "" if outcome != "late" and "silence" not in outcome else "no answer in its time"
    return written, outcome, wrong or "\n".join(logged.lines)


def fuzz(total: int, seed: int) -> tuple[Counter[str], dict[str, str], int]:
    """Run cases until so many bytes were written; return the outcomes, each kind of defect's first case, the bytes."""
    outcomes: Counter[str] = Counter()
    wrong: dict[str, str] = {}
    written = number = 0
    while written < total:
        kind = tuple(KINDS)[number % len(KINDS)]
        name = f"{seed}-{number}"
        size, outcome, defect = run(kind, name)
        outcomes[f"{kind}: {outcome}" if not defect else "defects"] += 1
        if defect:
            wrong.setdefault(f"{kind}: {defect[-300:]}", f"{name}\n{defect}")
        written += size
        number += 1
    return outcomes, wrong, written


def main() -> int:
    """Run, and print what came of it; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.remote", description=__doc__)
    parser.add_argument("--bytes", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    outcomes, wrong, written = fuzz(arguments.bytes, arguments.seed)
    for outcome, count in outcomes.most_common():
        print(f"{count:7} {outcome}")
    print(f"{sum(outcomes.values())} cases, {written} bytes, {len(wrong)} kinds of defects")
    for kind, first in wrong.items():
        print(f"\n== {kind[:200]}\nfirst seen in case {first}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
