"""The audit on a real disk: nothing of it is lost in silence, and it is removed by age and by bounds alone."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, given
from hypothesis import settings as limits
from hypothesis import strategies as st
from msgspec.structs import replace

from supervisor.audit_trail import EXPIRE_S, AuditTrail
from supervisor.config import Settings
from supervisor.identity.audit import AuditQuery, AuditRecord
from supervisor.identity.requester import RequestOrigin
from supervisor.identity.tokens import NotKept
from supervisor.store import Store, open_store, tables, write_behind
from supervisor.store.records import DAY_S, SavedServer

NOW = 1_800_000_000.0
ALL = AuditQuery()


class Scene:
    """A trail over a store, and a clock that is set by hand."""

    def __init__(self, store: Store, **settings: Any) -> None:
        self.now = NOW
        self.settings = Settings(**settings)
        self.store = store
        self.trail = AuditTrail(store, lambda: self.settings, lambda: self.now)

    async def kept(self, query: AuditQuery = ALL) -> list[tuple[str, str, int]]:
        records = (await self.trail.page(query, 500)).records
        return [(record.action, record.target, record.count) for record in reversed(records)]


@asynccontextmanager
async def scene(path: Path, *, busy_timeout_s: float = 0.5, **settings: Any) -> AsyncIterator[Scene]:
    async with open_store(path, busy_timeout_s=busy_timeout_s) as store:
        at = Scene(store, **settings)
        yield at
        at.trail.close()


async def test_equal_records_are_all_kept_in_their_order_over_a_restart(path: Path) -> None:
    async with scene(path) as at:
        for _ in range(3):
            at.trail.note("server.restart", "a")
        at.trail.note("server.sleep", "b", outcome="failed")
    async with scene(path) as at:
        at.trail.note("server.wake", "c")
        restart = ("server.restart", "a", 1)
        assert await at.kept() == [restart, restart, restart, ("server.sleep", "b", 1), ("server.wake", "c", 1)]
        assert [record.id for record in (await at.trail.page(ALL, 9)).records] == [5, 4, 3, 2, 1]


async def test_what_repeats_is_a_record_for_each_minute_and_none_is_left_at_the_end(path: Path) -> None:
    async with scene(path) as at:
        stranger = RequestOrigin(address="192.0.2.1")
        for moment in (0.0, 1.0, 30.0, 61.0, 62.0):
            at.now = NOW + moment
            at.trail.tally("credential.check", outcome="refused", origin=stranger)
        assert await at.kept() == [("credential.check", "", 3)]
    async with scene(path) as at:
        assert await at.kept() == [("credential.check", "", 3), ("credential.check", "", 2)]


async def test_a_minute_that_is_over_is_written_without_another_event(path: Path) -> None:
    async with scene(path) as at, trio.open_nursery() as nursery:
        at.trail.tally("page.ask", "GET /api/status", outcome="refused")
        at.trail.tick()
        assert await at.kept() == []
        at.now = NOW + 60
        nursery.start_soon(at.trail.run)
        await trio.testing.wait_all_tasks_blocked()
        assert await at.kept() == [("page.ask", "GET /api/status", 1)]
        nursery.cancel_scope.cancel()


async def test_what_is_too_old_is_not_shown_and_then_removed(path: Path) -> None:
    async with scene(path, audit_days=2) as at:
        at.trail.tick()
        for age in (3.0, 2.001, 1.999, 0.0):
            at.now = NOW - age * DAY_S
            at.trail.note("server.wake", f"{age}")
        assert await at.kept() == [("server.wake", "1.999", 1), ("server.wake", "0.0", 1)]
        rows = await at.store.audit.find(ALL, 9)
        assert rows is not None
        assert len(rows) == 4, "they are removed now and then"
        at.now = NOW + EXPIRE_S
        at.trail.tick()
        rows = await at.store.audit.find(ALL, 9)
        assert rows is not None
        assert [row.target for row in rows] == ["0.0"]


async def test_with_0_days_nothing_is_recorded(path: Path) -> None:
    async with scene(path, audit_days=0) as at:
        at.trail.note("server.wake", "a")
        at.trail.tally("page.ask", "GET /", outcome="refused")
    async with scene(path) as at:
        assert await at.kept() == []
        assert at.trail.status().days == 90


async def test_calls_are_recorded_where_that_is_wanted(path: Path) -> None:
    async with scene(path) as at:
        at.trail.note_call("a", "t", b"\x07\xff", "ok", 12.4)
        at.settings = Settings(audit_calls=True)
        at.trail.note_call("a", "t", b"\x07\xff", "error", 12.4)
        (record,) = (await at.trail.page(ALL, 9)).records
        assert (record.action, record.target, record.outcome) == ("tool.call", "a:t", "failed")
        assert record.detail == "12 ms, definition sha256 07ff"
        for outcome in ("rejected", "unreached", "cancelled"):
            at.trail.note_call("a", "_unknown", b"", outcome, 0.0)
        newest = (await at.trail.page(ALL, 9)).records[:3]
        told = [("unknown", "0 ms"), ("failed", "not sent"), ("refused", "not sent")]
        assert [(record.outcome, record.detail) for record in newest] == told


async def test_too_many_of_an_action_push_out_their_own_oldest_and_that_is_counted(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MAX_AUDIT_ROWS", 3)
    monkeypatch.setattr(tables, "MAX_AUDITED_CALLS", 1)
    async with scene(path, audit_calls=True) as at:
        at.trail.note("token.create", "first")
        for number in range(5):
            at.trail.note("server.wake", f"{number}")
            at.trail.note_call("a", f"{number}", b"", "ok", 1.0)
        kept = [*(("server.wake", f"{number}", 1) for number in (2, 3, 4)), ("tool.call", "a:4", 1)]
        assert await at.kept() == [("token.create", "first", 1), *kept]
        assert (await at.trail.page(ALL, 1)).dropped == {"server.wake": 2, "tool.call": 4}
    async with scene(path) as at:
        at.trail.note("server.wake", "5")
        assert (await at.trail.page(ALL, 1)).dropped == {"server.wake": 3, "tool.call": 4}


async def test_while_the_disk_is_locked_nothing_waits_and_what_has_no_room_is_counted_and_said(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_behind, "_MAX_RECORDS", 3)
    async with scene(path, busy_timeout_s=0.01) as at:
        assert await at.store.flush()
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            for number in range(8):
                at.trail.note("server.wake", f"{number}")
            assert not await at.store.flush()
            assert at.trail.status().lost == 5
            assert at.store.status().state == "degraded"
            at.store.servers.put(SavedServer("files", "d", b"x"))
            assert at.store.status().pending_writes == 4, "others have their room"
            other.execute("ROLLBACK")
        assert await at.store.flush()
        assert at.store.status().state == "ok"
        at.trail.note("server.wake", "last")
        first = [("server.wake", f"{number}", 1) for number in range(3)]
        assert await at.kept() == [*first, ("audit.lose", "", 5), ("server.wake", "last", 1)]
        assert at.trail.status().lost == 5


async def test_a_full_disk_loses_no_record_that_has_room_to_wait(path: Path) -> None:
    async with scene(path) as at:
        connection = at.store._database.open()
        connection.execute("PRAGMA max_page_count = 1")  # SQLite refuses growth as a full disk does
        for number in range(200):
            at.trail.note("server.wake", f"{number}" * 60)
        assert not await at.store.flush()
        assert "full" in at.store.status().last_error
        connection.execute("PRAGMA max_page_count = 100000")
        assert len(await at.kept()) == 200
        assert at.trail.status().lost == 0


async def test_a_table_that_cannot_be_read_is_not_taken_for_an_empty_one(path: Path) -> None:
    async with scene(path) as at:
        at.store._database.open().execute("DROP TABLE audit")
        with pytest.raises(NotKept, match="the audit cannot be read"):
            await at.trail.page(ALL, 1)


RECORDS = st.lists(
    st.builds(
        AuditRecord,
        time=st.sampled_from([NOW - 10, NOW, NOW + 10]),
        action=st.sampled_from(["token.create", "token.revoke", "tool.call", "server.add"]),
        user=st.sampled_from(["", "ana", "ben"]),
    ),
    max_size=30,
)
QUERIES = st.builds(
    AuditQuery,
    user=st.sampled_from(["", "ana", "ben", "cem"]),
    action=st.sampled_from(["", "token", "token.create", "tool", "server.add"]),
    since=st.sampled_from([0.0, NOW, NOW + 5]),
    before=st.none() | st.integers(1, 31),
)


@limits(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=RECORDS, query=QUERIES, size=st.integers(1, 7))
async def test_pages_have_each_wanted_record_once_the_newest_first_whatever_is_added_meanwhile(
    tmp_path_factory: pytest.TempPathFactory, records: list[AuditRecord], query: AuditQuery, size: int
) -> None:
    async with open_store(tmp_path_factory.mktemp("audit") / "store.sqlite3") as store:
        trail = AuditTrail(store, Settings, lambda: NOW)
        for record in records:
            assert store.audit.append(record)
        shown: list[AuditRecord] = []
        before = query.before
        while True:
            page = await trail.page(replace(query, before=before), size)
            assert len(page.records) <= size
            shown += page.records
            if page.next is None:
                break
            before = page.next
            store.audit.append(AuditRecord(time=NOW + 10, action="token.create", user="ana"))
        numbered = [replace(record, id=number) for number, record in enumerate(records, 1)]
        wanted = [record for record in reversed(numbered) if query.takes(record)]
        assert [record for record in shown if record.id and record.id <= len(records)] == wanted
