"""What holds for the end-to-end tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

MEASURED = "COVERAGE_PROCESS_CONFIG"
"""By this `coverage` has the processes measured that are started."""


@pytest.fixture(scope="module", autouse=True)
def unmeasured() -> Iterator[None]:
    """Start daemons as users have them: measured they take twice the time, and other tests run what these run."""
    config = os.environ.pop(MEASURED, None)
    yield
    if config is not None:
        os.environ[MEASURED] = config
