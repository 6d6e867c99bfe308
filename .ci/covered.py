"""Holds what the tests ran through against what is asked for: everything in the pure modules, and 95 % of all.

Reads what `.ci/coverage` has found, as JSON of `coverage`, from stdin. Branches count as lines do. Which
modules are pure is said in their docstrings, or in those of their folders.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Any

from tests.sources import ROOT, is_pure, modules

LEAST = 95.0


def share(done: int, of: int) -> float:
    """Return a share in percent."""
    return 100.0 * done / of if of else 100.0


def room(name: str) -> str:
    """Return the module or folder below one of the two packages that a module stands in."""
    return ".".join(name.split(".")[:2])


def missing(found: dict[str, Any]) -> list[str]:
    """Return the lines of one file that no test ran, and the ways from line to line that none took."""
    lines = set(found["missing_lines"])
    ways = [(start, end) for start, end in found["missing_branches"] if start not in lines and end not in lines]
    return [*map(str, sorted(lines)), *(f"{start}->{'exit' if end < 0 else end}" for start, end in ways)]


def main() -> int:
    """Print the share of each room, and what the pure modules miss; return the exit code."""
    files: dict[str, Any] = json.load(sys.stdin)["files"]
    done, there = Counter[str](), Counter[str]()
    wrong = []
    for name, file in modules().items():
        found = files.get(str(file.relative_to(ROOT)))
        if found is None:
            wrong.append(f"{name}: not measured at all")
            continue
        of = found["summary"]
        done[room(name)] += of["covered_lines"] + of["covered_branches"]
        there[room(name)] += of["num_statements"] + of["num_branches"]
        if is_pure(name) and (places := missing(found)):
            wrong.append(f"{file.relative_to(ROOT)}: {', '.join(places)}")
    for each in there:
        print(f"{each:<24}{share(done[each], there[each]):6.1f} %")
    total = share(done.total(), there.total())
    print(f"{'all':<24}{total:6.1f} %")
    if total < LEAST:
        wrong.append(f"{total:.1f} % of all, {LEAST:g} % are asked for")
    for line in wrong:
        print(f"not covered: {line}", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
