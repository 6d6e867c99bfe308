"""The audit as a table: rows are added at its end, and removed by age and by a bound for each action, oldest first.

A bound for each action, so that nobody drives out what others did by repeating what they may do. What a bound has
removed is counted. Ids only go up (`AUTOINCREMENT`), so a place in the table stays one.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import astuple

from supervisor.identity.audit import AuditQuery, AuditRecord
from supervisor.store.writes import Statement

MAX_ROWS: Final = 10_000
"""Of one action; a row has at most 2 kB."""
MAX_CALLS: Final = 100_000
"""Of calls of tools, which are recorded by a setting alone."""
_CALL: Final = "tool.call"

AUDIT_SCHEMA: Final = (
    "CREATE TABLE IF NOT EXISTS audit (id INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, action TEXT NOT NULL,"
    " outcome TEXT NOT NULL, principal TEXT NOT NULL, user TEXT NOT NULL, team TEXT NOT NULL, role TEXT NOT NULL,"
    " credential TEXT NOT NULL, address TEXT NOT NULL, door TEXT NOT NULL, target TEXT NOT NULL, detail TEXT NOT NULL,"
    " request TEXT NOT NULL, count INTEGER NOT NULL)",
    "CREATE INDEX IF NOT EXISTS audit_actions ON audit (action, id)",
    "CREATE INDEX IF NOT EXISTS audit_times ON audit (time)",
    "CREATE TABLE IF NOT EXISTS audit_dropped (action TEXT PRIMARY KEY, rows INTEGER NOT NULL) WITHOUT ROWID",
)
_COLUMNS: Final = ", ".join(AuditRecord.__struct_fields__)
_APPEND: Final = f"INSERT INTO audit VALUES ({', '.join('?' * len(AuditRecord.__struct_fields__))})"
_BOUND: Final = (
    "DELETE FROM audit WHERE action = ? AND id <= (SELECT id FROM audit WHERE action = ? ORDER BY id DESC LIMIT 1"
    " OFFSET ?)"
)
_COUNT_DROPPED: Final = (
    "INSERT INTO audit_dropped SELECT ?, changes() WHERE changes() > 0"
    " ON CONFLICT (action) DO UPDATE SET rows = rows + excluded.rows"
)
EXPIRE: Final = "DELETE FROM audit WHERE time < ?"
DROPPED: Final = "SELECT action, rows FROM audit_dropped"


def append(record: AuditRecord) -> tuple[Statement, ...]:
    """Return what adds a record, and removes what is too much of its action."""
    action = record.action
    most = MAX_CALLS if action == _CALL else MAX_ROWS
    return (_APPEND, astuple(record)), (_BOUND, (action, action, most)), (_COUNT_DROPPED, (action,))


def select(query: AuditQuery, limit: int) -> tuple[str, tuple[Any, ...]]:
    """Return what finds so many records, the newest first."""
    wanted: list[tuple[str, tuple[Any, ...]]] = [("time >= ?", (query.since,))]
    if query.before is not None:
        wanted.append(("id < ?", (query.before,)))
    if query.user:
        wanted.append(("user = ?", (query.user,)))
    if query.action:
        wanted.append(("(action = ? OR action GLOB ?)", (query.action, f"{query.action}.*")))
    conditions = " AND ".join(condition for condition, _ in wanted)
    values = tuple(value for _, values in wanted for value in values)
    return f"SELECT {_COLUMNS} FROM audit WHERE {conditions} ORDER BY id DESC LIMIT ?", (*values, limit)
