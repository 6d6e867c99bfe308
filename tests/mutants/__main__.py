"""`python -m tests.mutants [NAME ...] [--list]`: put slips into a copy of the sources, each alone, and run their tests.

NAME is a part of what those are called that are wanted, or of the paths of their tests; without one it is all of them.
Each should be killed: a test fails with it. Ends with 1 where one survives or cannot be put in, or where the tests fail
without any. Nothing here changes: what is tried is a copy of all files that are not ignored, with the changes that are
not committed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from tests.mutants.catalogue import Mutant, mutants, places, sources
from tests.sources import ROOT

PATIENCE_S: Final = 300.0
"""A mutant whose tests do not end is one that somebody would notice."""
PASSED: Final = 0
FAILED: Final = 1
_FIRST: Final = re.compile(r"^(?:FAILED|ERROR) (.+?)(?= - |$)", re.MULTILINE)


def copy(to: Path) -> None:
    """Copy what git knows, and what it would be told of."""
    git = ["git", "ls-files", "-zco", "--exclude-standard"]
    listed = subprocess.run(git, cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (file := ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, to / name)


def run(tests: Iterable[str], root: Path) -> tuple[int | None, str]:
    """Run tests of a copy up to the first that fails. Return how pytest ended, None if it did not, and what it said."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    # The daemons that tests start are those of the copy, too, and not what is installed.
    environment = {**os.environ, "PYTHONPATH": str(root), "CI": "1"}
    try:
        ended = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    except subprocess.TimeoutExpired:
        return None, ""
    return ended.returncode, ended.stdout


def verdict(mutant: Mutant, root: Path) -> tuple[bool, str]:
    """Return whether a mutant is killed, and what came of it in words."""
    found = [*places(mutant, sources(root))]
    if len(found) != 1:
        return False, f"does not apply: what it replaces stands in {len(found)} places"
    whole = found[0].read_text(encoding="utf-8")
    found[0].write_text(whole.replace(mutant.find, mutant.replace), encoding="utf-8")
    try:
        ended, said = run(mutant.tests, root)
    finally:
        found[0].write_text(whole, encoding="utf-8")
    match ended:
        case None:
            return True, "killed by tests that do not end"
        case int() if ended == PASSED:
            return False, "SURVIVED"
        case int() if ended == FAILED:
            by = _FIRST.search(said)
            return True, f"killed by {by[1] if by else 'a test'}"
        case _:
            return False, f"does not apply: its tests cannot be run\n{said[-2000:]}"


def chosen(names: Sequence[str]) -> list[Mutant]:
    """Return the mutants that have any of the names in theirs, or in the path of a test; all of them without one."""
    wanted = [name.lower() for name in names]
    told = {each: "\n".join((each.name, *each.tests)).lower() for each in mutants()}
    return [each for each, text in told.items() if not wanted or any(name in text for name in wanted)]


def main() -> int:
    """Try them."""
    summary, _, more = (__doc__ or "").partition("\n\n")
    parser = ArgumentParser(prog="python -m tests.mutants", description=summary.partition(": ")[2], epilog=more)
    parser.add_argument("name", nargs="*", help="a part of the name of a mutant, or of the path of a test of it")
    parser.add_argument("--list", action="store_true", help="say which there are, and run nothing")
    given = parser.parse_args()
    wanted = chosen(given.name)
    if given.list or not wanted:
        print(*(each.name for each in wanted), sep="\n")
        return 0 if wanted else 1
    alive = 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy(root := Path(folder).resolve())
        ended, said = run(sorted({test for each in wanted for test in each.tests}), root)
        if ended != PASSED:
            print(f"their tests fail without any mutant\n{said[-4000:]}")
            return 1
        for number, mutant in enumerate(wanted, 1):
            began = time.monotonic()
            killed, what = verdict(mutant, root)
            alive += not killed
            print(f"{number}/{len(wanted)} ({time.monotonic() - began:.0f} s) {mutant.name}: {what}", flush=True)
    print(f"{len(wanted) - alive} killed, {alive} not")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
