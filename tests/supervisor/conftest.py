"""What tests of whole daemons, and of what they keep, have in common."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor.host.datadir import DataDir, open_data_dir


@pytest.fixture
def data(tmp_path: Path) -> Iterator[DataDir]:
    """A data directory that is locked as a daemon locks its own."""
    with open_data_dir(tmp_path / "data", {}) as directory:
        yield directory


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store of a test is."""
    return tmp_path / "store.sqlite3"
