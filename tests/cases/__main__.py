"""`python -m tests.cases [--new]` runs the tests of the catalogue, notes what became of them, and writes the pages.

`--new`: only those of which nothing is known yet. Ends with 1 where one failed.
"""

from __future__ import annotations

import os
import platform
import sys
from argparse import ArgumentParser
from datetime import UTC, datetime

import pytest

from docs import generate
from tests.cases.catalogue import TESTS, Results, keep, results, tests_of


def machine() -> str:
    """Return in words what the tests ran on."""
    return f"{os.cpu_count()} processors, {platform.system()} {platform.release()}, Python {platform.python_version()}"


class Outcomes:
    """A plugin of pytest: what became of each test, all its parameters together."""

    def __init__(self) -> None:
        self.by_name: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.passed:
            return
        name = report.nodeid.removeprefix("tests/").partition("[")[0]
        ranked = ("passed", "skipped", "failed")
        before = self.by_name.get(name, "passed")
        self.by_name[name] = max(before, report.outcome, key=ranked.index)


def main() -> int:
    """Run them, one after the other."""
    parser = ArgumentParser(prog="python -m tests.cases", description=__doc__)
    parser.add_argument("--new", action="store_true", help="only tests of which nothing is known yet")
    only_new = parser.parse_args().new
    before = results()
    wanted = sorted({name for names in tests_of().values() for name in names})
    known = {name: outcome for name, outcome in before.outcomes.items() if only_new and name in wanted}
    told = Outcomes()
    if names := [f"{TESTS.name}/{name}" for name in wanted if name not in known]:
        pytest.main(["-q", "-p", "no:cacheprovider", *names], plugins=[told])
    keep(Results(f"{datetime.now(UTC):%-d %B %Y}", machine(), known | told.by_name))
    generate.main()
    return 1 if "failed" in told.by_name.values() else 0


if __name__ == "__main__":
    sys.exit(main())
