"""What holds for all tests: the same signals whoever starts them, the same examples in continuous integration."""

from __future__ import annotations

import os
import signal
import ssl
from collections.abc import Generator
from functools import cache
from pathlib import Path

import httpcore2
import pytest
from coverage import Coverage
from hypothesis import settings
from xdist.remote import Producer

from supervisor.host.loading import pause_gc
from tests.fakes.virtual_time import have_time_wait_for_threads
from tests.scheduling import SplitScheduling, is_for_another, is_split

# A parent such as nohup, or a shell that starts us in the background, leaves these ignored, and children inherit that.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: how long an example takes depends on what else the machine does. Few examples: `ci` tries the same ones
# each time, `dev` others with every run, and `.ci/properties` is for those that are rare.
settings.register_profile("dev", deadline=None, max_examples=20)
settings.register_profile("ci", deadline=None, max_examples=20, derandomize=True)
settings.register_profile("thousand", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

have_time_wait_for_threads()

# Each of some thousand clients would read all certificates of the system: a third of the start of a daemon in memory.
_read_certificates = httpcore2.default_ssl_context


@cache
def _read_once(trust_env: bool, *_named: str | None) -> ssl.SSLContext:
    return _read_certificates(_trust_env=trust_env)


def _trusted(*, _trust_env: bool = True) -> ssl.SSLContext:
    return _read_once(_trust_env, *map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR")))


httpcore2.default_ssl_context = _trusted


FIRST = ("e2e", "process")
"""The markers of those modules that take longest: they begin first, so that nobody is idle while the last one ends."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files to other processes."""
    return is_for_another(collection_path, config) or None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> SplitScheduling:
    """Expect that each process has files of its own."""
    return SplitScheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Search for no garbage while everything is imported, and never again among that: a third of the time it takes."""
    with pause_gc():
        return (yield)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order the modules for processes that share them."""
    if not hasattr(config, "workerinput"):
        return
    ranks: dict[Path, int] = {}
    for item in items:
        rank = next((FIRST.index(name) for name in FIRST if item.get_closest_marker(name)), len(FIRST))
        ranks[item.path] = min(rank, ranks.get(item.path, rank))
    # What is one process's own comes first, then what takes long: of the rest there is something for all in the end.
    split = {path: is_split(path, config.rootpath) for path in ranks}
    items.sort(key=lambda item: (not split[item.path], ranks[item.path]))


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
