"""Totals of calls: counted now, kept over restarts, and in the shape that criteria want."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest
import trio
import trio.testing

from actors.catalogue.criteria import Criteria, select
from actors.principal import LOCAL, Principal
from supervisor.store import Store, ToolUsage, open_store
from supervisor.store.records import USAGE
from supervisor.store.tables import UsageRows
from supervisor.usage.history import FLUSH_S
from supervisor.usage.records import CallOutcome, CallRecord
from supervisor.usage.totals import QUIET_S, SETTLE_S, KeptArguments, Usage
from tests.fakes.call_memory import CallMemory
from tests.fakes.rows import MemoryRows
from tests.fakes.tool_catalogue import CATALOGUE

UNWANTED = KeptArguments(10, lambda: False, lambda principal: str)


def usage_of(store: Store) -> Usage:
    return Usage(store, lambda: 0.0, 10, UNWANTED)


def call(
    principal: Principal, server: str, tool: str, *, good: bool, took_ms: float, waited_ms: float = 0.0
) -> CallRecord:
    outcome: CallOutcome = "ok" if good else "error"
    return CallRecord(
        principal=principal, server=server, tool=tool, outcome=outcome, took_ms=took_ms, waited_ms=waited_ms
    )


async def test_totals_survive_a_restart_and_sort_tools(tmp_path: Path) -> None:
    async with open_store(tmp_path / "store.sqlite3") as store:
        usage = usage_of(store)
        usage.ledger.add(call(LOCAL, "files", "read_file", good=True, took_ms=10.0, waited_ms=900.0))
        usage.ledger.add(call(LOCAL, "files", "read_file", good=False, took_ms=30.0))
        usage.flush()
        usage.flush()
    async with open_store(tmp_path / "store.sqlite3") as store:
        usage = usage_of(store)
        await usage.load()
        usage.ledger.add(call(LOCAL, "shop", "ship", good=True, took_ms=5.0))
        assert usage.totals(LOCAL) == {("files", "read_file"): (2, 1, 40.0, 900.0), ("shop", "ship"): (1, 0, 5.0, 0.0)}
        assert [row["tool"] for row in usage.table(LOCAL)] == ["read_file", "ship"]
        rows = select(CATALOGUE, usage.totals(LOCAL), Criteria(sort_by="calls", descending=True, limit=2)).rows
        assert [(row.name, row.success_rate, row.avg_ms, row.avg_wait_ms) for row in rows] == [
            ("read_file", 0.5, 20.0, 450.0),
            ("ship", 1.0, 5.0, 0.0),
        ]


@pytest.mark.parametrize("outcome", ["rejected", "unreached", "cancelled"])
async def test_a_call_that_says_nothing_of_its_tool_is_none_of_it(tmp_path: Path, outcome: CallOutcome) -> None:
    async with open_store(tmp_path / "store.sqlite3") as store:
        usage = usage_of(store)
        usage.ledger.add(CallRecord(server="files", tool="read_file", outcome=outcome, took_ms=1.0))
        assert usage.totals(LOCAL) == {}


async def test_what_one_principal_called_is_no_business_of_another(tmp_path: Path) -> None:
    other = Principal("other")
    async with open_store(tmp_path / "store.sqlite3") as store:
        usage = usage_of(store)
        usage.ledger.add(call(LOCAL, "files", "read_file", good=True, took_ms=10.0))
        usage.ledger.add(call(other, "files", "read_file", good=False, took_ms=5.0))
        usage.flush()
    async with open_store(tmp_path / "store.sqlite3") as store:
        usage = usage_of(store)
        await usage.load()
        assert usage.totals(LOCAL) == {("files", "read_file"): (1, 0, 10.0, 0.0)}
        assert usage.totals(other) == {("files", "read_file"): (1, 1, 5.0, 0.0)}
        (row,) = usage.table(other)
        assert row == {
            "server": "files",
            "tool": "read_file",
            "calls": 1,
            "failures": 1,
            "total_ms": 5.0,
            "waited_ms": 0.0,
        }
        assert usage.table(Principal("nobody")) == []
        usage.ledger.add(call(other, "files", "read_file", good=True, took_ms=3.0))
        assert usage.totals(None) == {("files", "read_file"): (3, 1, 18.0, 0.0)}, "what all have, for who may see it"
        await usage.load()
        assert usage.totals(None) == {("files", "read_file"): (3, 1, 18.0, 0.0)}


async def test_a_row_that_is_no_number_costs_no_call_its_answer(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    async with open_store(path) as store:
        usage = usage_of(store)
        usage.ledger.add(call(LOCAL, "files", "read_file", good=True, took_ms=10.0))
        usage.flush()
    with closing(sqlite3.connect(path)) as other:
        other.execute("UPDATE tool_usage SET calls = 'many'")
        other.commit()
    async with open_store(path) as store:
        usage = usage_of(store)
        await usage.load()
        usage.ledger.add(call(LOCAL, "files", "read_file", good=True, took_ms=5.0))
        assert usage.totals(LOCAL) == {("files", "read_file"): (1, 0, 5.0, 0.0)}


async def test_totals_of_earlier_runs_are_added_once_the_store_can_be_opened(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    async with open_store(path) as store:
        usage = usage_of(store)
        usage.ledger.add(call(LOCAL, "files", "read_file", good=True, took_ms=10.0))
        usage.flush()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        async with open_store(path) as store:
            usage = usage_of(store)
            await usage.load()
            usage.ledger.add(call(LOCAL, "files", "read_file", good=True, took_ms=10.0))
            usage.flush()
            usage.ledger.add(call(LOCAL, "files", "read_file", good=True, took_ms=10.0))
            assert usage.totals(LOCAL) == {("files", "read_file"): (2, 0, 20.0, 0.0)}
            other.execute("ROLLBACK")
            other.close()
            with trio.fail_after(20):
                await store.ready.wait()
            await usage.load()
            assert usage.totals(LOCAL) == {("files", "read_file"): (3, 0, 30.0, 0.0)}


class MemoryUsage(MemoryRows[ToolUsage], UsageRows):
    def add(self, used: Iterable[ToolUsage]) -> None:
        self.put(*used)


async def test_totals_are_handed_over_soon_and_nothing_wakes_up_where_nothing_is_called(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Memory(CallMemory):
        usage = MemoryUsage(USAGE)

    store = Memory()
    store.ready.set()
    usage = Usage(cast("Store", store), lambda: 1000.0, 10, UNWANTED)
    flushes: list[float] = []
    monkeypatch.setattr(usage.arguments, "drop_unwanted", lambda: flushes.append(trio.current_time()))
    await usage.load()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(usage.run)
        await trio.sleep(600)
        assert len(flushes) <= 600 / QUIET_S
        usage.ledger.add(call(LOCAL, "files", "read_file", good=True, took_ms=10.0))
        await trio.sleep(SETTLE_S + FLUSH_S + 0.1)
        assert [row.calls for row in store.usage.kept.values()] == [1]
        nursery.cancel_scope.cancel()
