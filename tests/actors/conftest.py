"""The clocks of these tests: whoever sleeps is woken late. On virtual time each test runs with a perfect clock, too."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from tests.fakes.late_clock import late_clock, seed_of, wake_late


@pytest.fixture(params=["exact", "late"])
def autojump_clock(request: pytest.FixtureRequest) -> MockClock:
    """Time that runs on whenever nobody has anything to do."""
    return MockClock(autojump_threshold=0) if request.param == "exact" else late_clock(seed_of(request.node.nodeid))


@pytest.fixture(autouse=True)
def late_real_clock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the real clock wake late, where a test runs on it."""
    wake_late(monkeypatch, seed_of(request.node.nodeid))
