"""A place for values in which there are none."""

from __future__ import annotations

from actors.kit import Latest
from supervisor.servers.deployment import Deployment
from supervisor.store.records import VALUES
from supervisor.values.table import ValueTable
from tests.fakes.rows import MemoryRows


def no_values() -> ValueTable:
    return ValueTable(Latest(Deployment()), MemoryRows(VALUES), b"k" * 32)
