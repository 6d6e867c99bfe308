"""Totals of calls: counted now, kept over restarts, and in the shape that criteria want."""

from __future__ import annotations

from pathlib import Path

from actors.catalogue.criteria import Criteria, select
from supervisor.store import open_store
from supervisor.usage import Usage
from tests.fakes.tool_catalogue import CATALOGUE


async def test_totals_survive_a_restart_and_sort_tools(tmp_path: Path) -> None:
    async with open_store(tmp_path / "store.sqlite3") as store:
        usage = Usage(store)
        usage.add("files", "read_file", True, 10.0)
        usage.add("files", "read_file", False, 30.0)
        usage.flush()
        usage.flush()
    async with open_store(tmp_path / "store.sqlite3") as store:
        usage = Usage(store)
        await usage.load()
        usage.add("shop", "ship", True, 5.0)
        assert usage.totals() == {("files", "read_file"): (2, 1, 40.0), ("shop", "ship"): (1, 0, 5.0)}
        assert [row["tool"] for row in usage.table()] == ["read_file", "ship"]
        rows = select(CATALOGUE, usage.totals(), Criteria(sort_by="calls", descending=True, limit=2)).rows
        assert [(row.name, row.success_rate, row.avg_ms) for row in rows] == [
            ("read_file", 0.5, 20.0),
            ("ship", 1.0, 5.0),
        ]
