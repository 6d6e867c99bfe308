"""The database: opening, reading, writing. Synchronous; one thread at a time, never the loop's.

- A file that is damaged, found at opening or later, is moved aside and a fresh one is made: what is in it can be found
  out again. So is what no version of ours writes: rows with values of other types are not returned.
- A file that vanished is made anew: SQLite would go on writing into one without a name.
- An `sqlite3.Error` or `OSError` that leaves this module is about the disk, not about one row.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from actors.kit import is_want
from supervisor.store.file import connect, identity, is_corrupt, move_aside
from supervisor.store.writes import Write

log = logging.getLogger(__name__)

Row = TypeVar("Row")

BUSY_TIMEOUT_S = 0.5
"""How long a writer waits for another process before the attempt has failed."""

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

    def open(self) -> sqlite3.Connection:
        """Open the file, made anew where needed. Raises `ConfigError` for a newer one, `sqlite3.Error`, `OSError`."""
        if self._connection is not None:
            if self._file == identity(self._path):
                return self._connection
            log.warning("%s vanished or was replaced; it is opened again", self._path)
            self.close()
        try:
            connection = connect(self._path, self._busy_timeout_s)
        except sqlite3.DatabaseError as error:
            if not is_corrupt(error):
                raise
            log.warning("%s is damaged (%s); it is moved aside and a fresh one is made", self._path, error)
            move_aside(self._path)
            connection = connect(self._path, self._busy_timeout_s)
        self._connection, self._file = connection, identity(self._path)
        return connection

    def close(self) -> None:
        """Close the file; the write-ahead log is folded into it. Closing twice is fine."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def write(self, batch: Sequence[Write]) -> int:
        """Save a batch in one transaction; return how many writes cannot be stored. Raises as `open`, all unsaved."""
        dropped = 0
        with self._transaction() as connection:
            for write in batch:
                try:
                    for sql, values in write.statements:
                        connection.execute(sql, [value() if callable(value) else value for value in values])
                except Exception as error:
                    if is_about_the_disk(error):
                        raise
                    log.warning("one write cannot be stored: %s", type(error).__name__)
                    dropped += 1
        return dropped

    def load_vectors(self, digests: Sequence[bytes], now: float) -> dict[bytes, bytes]:
        """Return what is kept under these digests, and note that it was used at `now`."""
        vectors: dict[bytes, bytes] = {}
        for first in range(0, len(digests), _DIGESTS):
            some = digests[first : first + _DIGESTS]
            marks = ", ".join("?" * len(some))
            sql = f"SELECT digest, levels FROM vectors WHERE digest IN ({marks})"
            vectors |= self.load(tuple[bytes, bytes], sql, some)
            self._tidy(f"UPDATE vectors SET used_at = ? WHERE digest IN ({marks})", (now, *some))
        return vectors

    def load(self, kind: type[Row], query: str, values: Sequence[object] = (), tidy: str = "") -> list[Row]:
        """Return the rows with values of the right types; the statement `tidy` removes others, by the same values."""
        with self._use() as connection:
            fetched = connection.execute(query, values).fetchall()
        if tidy:
            self._tidy(tidy, values)
        rows: list[Row] = []
        for row in fetched:
            with contextlib.suppress(msgspec.ValidationError):
                rows.append(msgspec.convert(row, kind, builtin_types=(bytes,)))
        if len(rows) < len(fetched):
            log.warning("%d rows of the database are not as they should be and are not used", len(fetched) - len(rows))
        return rows

    def _tidy(self, sql: str, values: Sequence[object]) -> None:
        # Expired rows are never returned, so one that cannot be removed on a full or read-only disk does no harm; nor
        # does the time of a use that is not noted.
        with contextlib.suppress(sqlite3.Error), self._transaction() as connection:
            connection.execute(sql, values)

    @contextlib.contextmanager
    def _use(self) -> Iterator[sqlite3.Connection]:
        """Give the open database; damage found meanwhile closes it, so that the next use moves the file aside."""
        try:
            yield self.open()
        except sqlite3.DatabaseError as error:
            if is_corrupt(error):
                self.close()
            raise

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._use() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # SQLite has already rolled back after some errors (a full disk), and then refuses to do it again.
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise


def is_about_the_disk(error: BaseException) -> bool:
    """Return whether an exception concerns the file as a whole, and not the values of one write."""
    if isinstance(error, _UNSAVABLE):
        return False
    return isinstance(error, sqlite3.Error | OSError) or is_want(error)
