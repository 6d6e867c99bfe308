"""The database: opening, reading, writing. Synchronous; one thread at a time, never the loop's.

- A batch is one transaction: all of it is saved or none of it.
- A file that is damaged, found at opening or later, is moved aside and a fresh one is made: what is in it can be found
  out again. So is what no version of ours writes: rows with values of other types are not returned.
- A file that vanished is made anew: SQLite would go on writing into one without a name.
- An `sqlite3.Error` or `OSError` that leaves this module is about the disk, not about one row.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import asdict, astuple

from actors.kit import is_want
from supervisor.store.file import connect, identity, is_corrupt, move_aside
from supervisor.store.records import ALL_UNTIL, ERA_TTL_S, MAX_VECTORS, SavedEra, SavedGrant, SavedServer, ToolUsage
from supervisor.store.rows import (
    DisabledRow,
    EndedSessionRow,
    EraRow,
    GrantRow,
    Row,
    ServerRow,
    UsageRow,
    VectorRow,
    checked,
)
from supervisor.store.writes import (
    AddUsage,
    EndSession,
    EndSessionsUntil,
    ForgetGrant,
    ForgetServer,
    SaveEra,
    SaveGrant,
    SaveServer,
    SaveVectors,
    SwitchServer,
    Write,
)

log = logging.getLogger(__name__)

BUSY_TIMEOUT_S = 0.5
"""How long a writer waits for another process before the attempt has failed."""

_ADD_USAGE = (
    "INSERT INTO tool_usage (principal, server, tool, calls, failures, total_ms, waited_ms)"
    " VALUES (?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (principal, server, tool) DO UPDATE SET calls = calls + excluded.calls,"
    " failures = failures + excluded.failures, total_ms = total_ms + excluded.total_ms,"
    " waited_ms = waited_ms + excluded.waited_ms"
)
_FORGET_VECTORS = (
    "DELETE FROM vectors WHERE digest IN (SELECT digest FROM vectors ORDER BY used_at DESC LIMIT -1 OFFSET ?)"
)
_DIGESTS = 500  # in one statement
# What sqlite3 raises when a value cannot be bound: too large, or text with half a surrogate pair.
_UNSAVABLE = (sqlite3.DataError, sqlite3.InterfaceError)


class Database:
    """One database file. It is opened at the first use, and again at the next one if that failed."""

    def __init__(self, path: Path, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        self._path = path
        self._busy_timeout_s = busy_timeout_s
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None  # device and inode of what is open

    def open(self) -> None:
        """Open the file, making or replacing it where needed.

        Raises `ConfigError` for a file of a newer version, `sqlite3.Error` or `OSError` if the disk refuses.
        """
        if self._connection is not None:
            if self._file == identity(self._path):
                return
            log.warning("%s vanished or was replaced; it is opened again", self._path)
            self.close()
        try:
            self._connection = connect(self._path, self._busy_timeout_s)
        except sqlite3.DatabaseError as error:
            if not is_corrupt(error):
                raise
            log.warning("%s is damaged (%s); it is moved aside and a fresh one is made", self._path, error)
            move_aside(self._path)
            self._connection = connect(self._path, self._busy_timeout_s)
        self._file = identity(self._path)

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
                except Exception as error:
                    if is_about_the_disk(error):
                        raise
                    log.warning("one write cannot be stored: %s", type(error).__name__)
                    dropped += 1
        return dropped

    def load_servers(self) -> dict[str, SavedServer]:
        """Return every saved server by name."""
        rows = self._rows(ServerRow, "SELECT name, digest, payload, updated_at FROM servers")
        return {
            row.name: SavedServer(digest=row.digest, payload=row.payload, updated_at=row.updated_at) for row in rows
        }

    def load_eras(self, now: float) -> dict[str, SavedEra]:
        """Return the era verdicts that have not expired at `now`, by launch digest; expired ones are removed."""
        # A date in the future was written by a wrong clock, and would otherwise never expire.
        expired = "abs(? - updated_at) >= CASE era WHEN 'legacy' THEN ? ELSE ? END"
        values = (now, ERA_TTL_S["legacy"], ERA_TTL_S["modern"])
        rows = self._rows(EraRow, f"SELECT digest, era, updated_at FROM eras WHERE NOT {expired}", values)
        self._tidy(f"DELETE FROM eras WHERE {expired}", values)
        return {row.digest: SavedEra(era=row.era, updated_at=row.updated_at) for row in rows}

    def load_ended_sessions(self, now: float) -> dict[str, float]:
        """Return the expiry (unix s) of each ended session that is not past at `now`; expired ones are removed."""
        rows = self._rows(EndedSessionRow, "SELECT id, expires_at FROM ended_sessions WHERE expires_at > ?", (now,))
        self._tidy("DELETE FROM ended_sessions WHERE expires_at <= ?", (now,))
        return {row.id: row.expires_at for row in rows}

    def load_usage(self) -> list[ToolUsage]:
        """Return the usage of every tool by every principal, in the order of their names."""
        columns = "principal, server, tool, calls, failures, total_ms, waited_ms"
        rows = self._rows(UsageRow, f"SELECT {columns} FROM tool_usage ORDER BY principal, server, tool")
        return [ToolUsage(**asdict(row)) for row in rows]

    def load_vectors(self, digests: Sequence[bytes], now: float) -> dict[bytes, bytes]:
        """Return what is kept under these digests, and note that it was used at `now`."""
        vectors: dict[bytes, bytes] = {}
        for first in range(0, len(digests), _DIGESTS):
            some = digests[first : first + _DIGESTS]
            marks = ", ".join("?" * len(some))
            rows = self._rows(VectorRow, f"SELECT digest, levels FROM vectors WHERE digest IN ({marks})", some)
            vectors |= {row.digest: row.levels for row in rows}
            self._tidy(f"UPDATE vectors SET used_at = ? WHERE digest IN ({marks})", (now, *some))
        return vectors

    def load_disabled(self) -> frozenset[str]:
        """Return the names of the servers that an operator has switched off."""
        return frozenset(row.name for row in self._rows(DisabledRow, "SELECT name, updated_at FROM disabled_servers"))

    def load_grants(self) -> list[SavedGrant]:
        """Return every login."""
        rows = self._rows(GrantRow, "SELECT principal, server, issuer, resource, sealed FROM grants")
        return [SavedGrant(**asdict(row)) for row in rows]

    def _rows(self, kind: type[Row], sql: str, values: Sequence[object] = ()) -> list[Row]:
        with self._watched() as connection:
            return checked(kind, connection.execute(sql, values).fetchall())

    def _tidy(self, sql: str, values: Sequence[object]) -> None:
        # Expired rows are never returned, so one that cannot be removed on a full or read-only disk does no harm; nor
        # does the time of a use that is not noted.
        with contextlib.suppress(sqlite3.Error), self._transaction() as connection:
            connection.execute(sql, values)

    def _opened(self) -> sqlite3.Connection:
        self.open()
        if self._connection is None:  # pragma: no cover - `open` either sets it or raises
            raise sqlite3.OperationalError("the database is not open")
        return self._connection

    @contextlib.contextmanager
    def _watched(self) -> Iterator[sqlite3.Connection]:
        """Give the open database; damage found meanwhile closes it, so that the next use moves the file aside."""
        try:
            yield self._opened()
        except sqlite3.DatabaseError as error:
            if is_corrupt(error):
                self.close()
            raise

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._watched() as connection:
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
        case SaveGrant(grant=grant, updated_at=at):
            run("INSERT OR REPLACE INTO grants VALUES (?, ?, ?, ?, ?, ?)", (*astuple(grant), at))
        case ForgetGrant(principal=principal, server=server):
            run("DELETE FROM grants WHERE principal = ? AND server = ?", (principal, server))
        case SaveEra(digest=digest, era=era, updated_at=at):
            run("INSERT OR REPLACE INTO eras VALUES (?, ?, ?)", (digest, era, at))
        case SaveVectors(vectors=vectors, used_at=at):
            for text, levels in vectors.items():
                run("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", (text, levels, at))
            run(_FORGET_VECTORS, (MAX_VECTORS,))
        case EndSession(id=session_id, expires_at=expires_at, now=now):
            run("DELETE FROM ended_sessions WHERE expires_at <= ?", (now,))
            run("INSERT OR REPLACE INTO ended_sessions VALUES (?, ?)", (session_id, expires_at))
        case EndSessionsUntil(moment=moment):
            run("DELETE FROM ended_sessions WHERE expires_at <= ?", (moment,))
            run("INSERT OR REPLACE INTO ended_sessions VALUES (?, ?)", (ALL_UNTIL, moment))
        case AddUsage(usage=usage):
            run(_ADD_USAGE, astuple(usage))


def is_about_the_disk(error: BaseException) -> bool:
    """Return whether an exception concerns the file as a whole, and not the values of one write."""
    if isinstance(error, _UNSAVABLE):
        return False
    return isinstance(error, sqlite3.Error | OSError) or is_want(error)
