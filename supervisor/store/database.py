"""The SQLite file: schema, opening, reading, writing. Synchronous; one thread at a time, never the loop's.

- A batch is one transaction: all of it is saved or none of it.
- A file that is damaged is moved aside and a fresh one is made: what is in it can be found out again.
- A file of a newer version is left alone (`ConfigError`): it is not ours to change.
- An `sqlite3.Error` or `OSError` that leaves this module is about the disk, not about one row.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from actors.errors import ConfigError
from supervisor.store.records import ERA_TTL_S, SavedEra, SavedServer, ToolUsage
from supervisor.store.writes import AddUsage, EndSession, ForgetServer, SaveEra, SaveServer, SwitchServer, Write

log = logging.getLogger(__name__)

SCHEMA_VERSION = 1
BUSY_TIMEOUT_S = 5.0
MAX_CORRUPT_COPIES = 9

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS servers (name TEXT PRIMARY KEY, digest TEXT NOT NULL, payload BLOB NOT NULL,"
    " updated_at REAL NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS eras (digest TEXT PRIMARY KEY, era TEXT NOT NULL, payload BLOB NOT NULL,"
    " updated_at REAL NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS ended_sessions (id TEXT PRIMARY KEY, expires_at REAL NOT NULL) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS ended_sessions_expiry ON ended_sessions (expires_at)",
    "CREATE TABLE IF NOT EXISTS tool_usage (server TEXT NOT NULL, tool TEXT NOT NULL, calls INTEGER NOT NULL,"
    " failures INTEGER NOT NULL, total_ms REAL NOT NULL, PRIMARY KEY (server, tool)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS disabled_servers (name TEXT PRIMARY KEY, updated_at REAL NOT NULL) WITHOUT ROWID",
)
_ADD_USAGE = (
    "INSERT INTO tool_usage (server, tool, calls, failures, total_ms) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT (server, tool) DO UPDATE SET calls = calls + excluded.calls,"
    " failures = failures + excluded.failures, total_ms = total_ms + excluded.total_ms"
)
# What sqlite3 raises when a value cannot be bound: too large, or text with half a surrogate pair.
_UNSAVABLE = (sqlite3.DataError, sqlite3.InterfaceError, OverflowError, ValueError)


class Database:
    """One database file. It is opened at the first use, and again at the next one if that failed."""

    def __init__(self, path: Path, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        self._path = path
        self._busy_timeout_s = busy_timeout_s
        self._connection: sqlite3.Connection | None = None

    def open(self) -> None:
        """Open the file, making or replacing it where needed.

        Raises `ConfigError` for a file of a newer version, `sqlite3.Error` or `OSError` if the disk refuses.
        """
        if self._connection is not None:
            return
        try:
            self._connection = _connect(self._path, self._busy_timeout_s)
        except sqlite3.DatabaseError as error:
            if not _is_corrupt(error):
                raise
            log.warning("%s is damaged (%s); it is moved aside and a fresh one is made", self._path, error)
            move_aside(self._path)
            self._connection = _connect(self._path, self._busy_timeout_s)

    def close(self) -> None:
        """Close the file; the write-ahead log is folded into it. Closing twice is fine."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def write(self, batch: Sequence[Write]) -> int:
        """Save a batch in one transaction; the number of writes dropped because their values cannot be stored.

        Raises `sqlite3.Error`, `OSError` or `ConfigError` when nothing was saved.
        """
        dropped = 0
        with self._transaction() as connection:
            for write in batch:
                try:
                    _execute(connection, write)
                except _UNSAVABLE:
                    dropped += 1
        return dropped

    def load_servers(self) -> dict[str, SavedServer]:
        """Return every saved server by name."""
        rows = self._rows("SELECT name, digest, payload, updated_at FROM servers")
        return {
            name: SavedServer(digest=digest, payload=payload, updated_at=updated_at)
            for name, digest, payload, updated_at in rows
        }

    def load_eras(self, now: float) -> dict[str, SavedEra]:
        """Return the era verdicts that have not expired at `now`, by launch digest; expired ones are removed."""
        # A date in the future was written by a wrong clock, and would otherwise never expire.
        expired = "abs(? - updated_at) >= CASE era WHEN 'legacy' THEN ? ELSE ? END"
        values = (now, ERA_TTL_S["legacy"], ERA_TTL_S["modern"])
        rows = self._rows(f"SELECT digest, era, payload, updated_at FROM eras WHERE NOT {expired}", values)
        self._purge(f"DELETE FROM eras WHERE {expired}", values)
        return {
            digest: SavedEra(era=era, payload=payload, updated_at=updated_at)
            for digest, era, payload, updated_at in rows
        }

    def load_ended_sessions(self, now: float) -> dict[str, float]:
        """Return the expiry (unix s) of each ended session that is not past at `now`; expired ones are removed."""
        rows = self._rows("SELECT id, expires_at FROM ended_sessions WHERE expires_at > ?", (now,))
        self._purge("DELETE FROM ended_sessions WHERE expires_at <= ?", (now,))
        return dict(rows)

    def load_usage(self) -> list[ToolUsage]:
        """Return the usage of every tool, by server and tool name."""
        rows = self._rows("SELECT server, tool, calls, failures, total_ms FROM tool_usage ORDER BY server, tool")
        return [
            ToolUsage(server=server, tool=tool, calls=calls, failures=failures, total_ms=total_ms)
            for server, tool, calls, failures, total_ms in rows
        ]

    def load_disabled(self) -> frozenset[str]:
        """Return the names of the servers that an operator has switched off."""
        return frozenset(name for (name,) in self._rows("SELECT name FROM disabled_servers"))

    def _rows(self, sql: str, values: Sequence[object] = ()) -> list[Any]:
        return self._opened().execute(sql, values).fetchall()

    def _purge(self, sql: str, values: Sequence[object]) -> None:
        # Expired rows are never returned, so one that cannot be removed on a full or read-only disk does no harm.
        with contextlib.suppress(sqlite3.Error), self._transaction() as connection:
            connection.execute(sql, values)

    def _opened(self) -> sqlite3.Connection:
        self.open()
        if self._connection is None:  # pragma: no cover - `open` either sets it or raises
            raise sqlite3.OperationalError("the database is not open")
        return self._connection

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        connection = self._opened()
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            # SQLite has already rolled back after some errors (a full disk), and then refuses to do it again.
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise


def _execute(connection: sqlite3.Connection, write: Write) -> None:
    run: Callable[[str, tuple[Any, ...]], object] = connection.execute
    match write:
        case SaveServer(name=name, digest=digest, payload=payload, updated_at=at):
            made = payload if isinstance(payload, bytes) else payload()
            run("INSERT OR REPLACE INTO servers VALUES (?, ?, ?, ?)", (name, digest, made, at))
        case ForgetServer(name=name):
            run("DELETE FROM servers WHERE name = ?", (name,))
        case SwitchServer(name=name, disabled=True, updated_at=at):
            run("INSERT OR REPLACE INTO disabled_servers VALUES (?, ?)", (name, at))
        case SwitchServer(name=name):
            run("DELETE FROM disabled_servers WHERE name = ?", (name,))
        case SaveEra(digest=digest, era=era, payload=payload, updated_at=at):
            run("INSERT OR REPLACE INTO eras VALUES (?, ?, ?, ?)", (digest, era, payload, at))
        case EndSession(id=session_id, expires_at=expires_at, now=now):
            run("DELETE FROM ended_sessions WHERE expires_at <= ?", (now,))
            run("INSERT OR REPLACE INTO ended_sessions VALUES (?, ?)", (session_id, expires_at))
        case AddUsage(usage=usage):
            run(_ADD_USAGE, (usage.server, usage.tool, usage.calls, usage.failures, usage.total_ms))


def _connect(path: Path, busy_timeout_s: float) -> sqlite3.Connection:
    # Made by us first, because SQLite would make it with the umask's mode; its log files copy the mode of the file.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    connection = sqlite3.connect(path, timeout=busy_timeout_s, isolation_level=None, check_same_thread=False)
    try:
        _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > SCHEMA_VERSION:
        raise ConfigError(
            f"the database was written by a newer version (schema {version}, this one knows {SCHEMA_VERSION})",
            path=str(path),
            hint="run the newer version, or move the file away to start afresh",
        )
    if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
        raise _Corrupt("the quick check found damage")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("BEGIN IMMEDIATE")
    for statement in _SCHEMA:
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT")


class _Corrupt(sqlite3.DatabaseError):
    """Damage that SQLite reported as a row, not as an error."""


def _is_corrupt(error: sqlite3.DatabaseError) -> bool:
    code: int = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the low byte of an extended code is its family
    return isinstance(error, _Corrupt) or code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def move_aside(path: Path) -> None:
    """Rename the file and its logs to `*.corrupt-N`, the first N that is free up to 9. Raises `OSError`."""
    numbers = range(1, MAX_CORRUPT_COPIES)
    free = (number for number in numbers if not path.with_name(f"{path.name}.corrupt-{number}").exists())
    number = next(free, MAX_CORRUPT_COPIES)  # the last one is replaced: damage must not fill the disk
    path.replace(path.with_name(f"{path.name}.corrupt-{number}"))
    for suffix in ("-wal", "-shm"):
        beside = path.with_name(path.name + suffix)
        if beside.exists():
            beside.replace(path.with_name(f"{path.name}.corrupt-{number}{suffix}"))
