"""`python -m benchmarks.worst_cases`: how long the worst input that is allowed holds the loop.

For each input the longest gap in the loop's turns while the daemon deals with it, the best of three rounds and their
median, and how much of it the daemon was computing: the rest is the machine, which does other things as well.
`--fail-over MS` exits with 1 if the daemon computes longer than that in the best round of one. What is refused is in
the list too: refusing must not cost more than doing. Nine minutes.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec
import trio

from benchmarks.hostile_remote import ATTACKS
from benchmarks.worst_inputs import all_cases
from benchmarks.worst_remotes import REMOTES, hostile
from benchmarks.worst_scene import Case, Gap, playing
from benchmarks.worst_servers import TOOLS, servers

BEGIN = "<!-- worst cases -->"
END = "<!-- end of worst cases -->"


class Measured(msgspec.Struct, frozen=True):
    """The longest gap of each round."""

    case: Case
    gaps: list[Gap]
    answer: str

    @property
    def best(self) -> Gap:
        """Return the shortest of the longest gaps."""
        return min(self.gaps)

    @property
    def line(self) -> str:
        """Return an item of the list."""
        late = [gap.late_ms for gap in self.gaps]
        computing = min(gap.computing_ms for gap in self.gaps)
        answer = f"; {self.answer}" if self.answer else ""
        gap = f"{min(late):.1f} ({statistics.median(late):.1f}) ms, {computing:.1f} computing"
        return f"  - {self.case.worst}: {gap}{answer}"


async def measure(cases: Sequence[Case], directory: Path, rounds: int) -> list[Measured]:
    """Return what each of these cases costs."""
    out: list[Measured] = []
    async with hostile() as more, playing(directory, servers(directory) | more, TOOLS + len(ATTACKS)) as scene:
        for case in cases:
            print(f"{case.input}: {case.worst} ...", file=sys.stderr, flush=True)
            gaps: list[Gap] = []
            for _ in range(1 if case.once else rounds):
                answer = await case.run(scene)
                gaps.append(scene.gap)
            out.append(Measured(case, gaps, answer.word))
    return out


def markdown(rows: Sequence[Measured]) -> str:
    """Return the rows as a list of Markdown, by their inputs."""
    groups: dict[str, list[str]] = {}
    for row in rows:
        groups.setdefault(row.case.input, []).append(row.line)
    return "".join("\n".join([f"- `{name}`", *lines, ""]) for name, lines in groups.items())


def main() -> int:
    """Measure, print the list; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.worst_cases", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often each case is tried")
    parser.add_argument("--only", action="append", default=[], help="a part of the row's text; may be repeated")
    parser.add_argument("--fail-over", type=float, metavar="MS", help="exit with 1 if the daemon computes longer")
    parser.add_argument("--write", type=Path, help="a Markdown file whose list is replaced")
    arguments = parser.parse_args()
    chosen = [
        case
        for case in (*all_cases(), *REMOTES)
        if not arguments.only or any(part in f"{case.input}: {case.worst}" for part in arguments.only)
    ]
    with tempfile.TemporaryDirectory(prefix="worst-cases-") as directory:
        rows = trio.run(measure, chosen, Path(directory), arguments.rounds)
    text = markdown(rows)
    print(text)
    if arguments.write is not None:
        head, _, rest = arguments.write.read_text().partition(BEGIN)
        arguments.write.write_text(f"{head}{BEGIN}\n{text}{END}{rest.partition(END)[2]}")
    over = [row for row in rows if arguments.fail_over is not None and row.best.computing_ms > arguments.fail_over]
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
