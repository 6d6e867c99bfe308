"""What holds for all tests: the same signals whoever starts them, the same examples in continuous integration."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest
from coverage import Coverage
from hypothesis import settings

# A parent such as nohup, or a shell that starts us in the background, leaves these ignored, and children inherit that.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: how long an example takes depends on what else the machine does. Few examples: `ci` tries the same ones
# each time, `dev` others with every run, and `.ci/properties` is for those that are rare.
settings.register_profile("dev", deadline=None, max_examples=30)
settings.register_profile("ci", deadline=None, max_examples=30, derandomize=True)
settings.register_profile("thousand", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


FIRST = ("e2e", "process")
"""The markers of those modules that take longest: they begin first, so that nobody is idle while the last one ends."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order the modules for processes that share them."""
    if not hasattr(config, "workerinput"):
        return
    ranks: dict[Path, int] = {}
    for item in items:
        rank = next((FIRST.index(name) for name in FIRST if item.get_closest_marker(name)), len(FIRST))
        ranks[item.path] = min(rank, ranks.get(item.path, rank))
    items.sort(key=lambda item: ranks[item.path])


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Save which lines a process ran that shares the tests: it is killed if it has not ended ten seconds later."""
    measured = Coverage.current() if hasattr(session.config, "workerinput") else None
    if measured is not None:
        measured.save()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Escape what a test printed or logged that is no Unicode: pytest-xdist ends the whole run at such a report."""
    report = yield
    report.sections = [(name, text.encode(errors="backslashreplace").decode()) for name, text in report.sections]
    return report
