"""The database: opening, reading, writing, which blocks; and using it on one thread at a time, never the loop's.

- A file that is damaged, found at opening or later, is moved aside and a fresh one is made: what is in it can be found
  out again. So is what no version of ours writes: rows with values of other types are not returned.
- A file that vanished is made anew: SQLite would go on writing into one without a name.
- An `sqlite3.Error` or `OSError` that leaves this module is about the disk, not about one row.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar, TypeVarTuple

import msgspec
import trio

from actors.errors import ConfigError
from actors.kit import Conditions, Pauses, is_want
from actors.kit.decoding import GivesWay
from supervisor.store.file import connect, identity, is_corrupt, move_aside
from supervisor.store.writes import Write

log = logging.getLogger(__name__)

Row = TypeVar("Row")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")

BUSY_TIMEOUT_S = 0.5
"""How long a writer waits for another process before the attempt has failed."""

_DIGESTS = 500  # in one statement
DATABASE = "database"
"""How the file is called in what is told of it."""
WHAT = "store"
"""How the condition is called while nothing can be saved."""
MAX_PAUSE_S = 5.0
_FAILURES = (sqlite3.Error, OSError, ConfigError, RuntimeError, MemoryError, ImportError)
"""What an outage may look like; `RuntimeError` and `ImportError` only if they are want of resources."""
# What sqlite3 raises when a value cannot be bound: too large, or text with half a surrogate pair.
_UNSAVABLE = (sqlite3.DataError, sqlite3.InterfaceError)


class Database:
    """One database file. It is opened at the first use, and again at the next one if that failed."""

    def __init__(self, path: Path, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        self._path = path
        self._busy_timeout_s = busy_timeout_s
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None  # device and inode of what is open
        self.moved = ""
        """What a damaged file is called now, the newest since the start."""

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
            self.moved = move_aside(self._path, time.time()).name
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
        dropped, turns = 0, GivesWay()
        with self._transaction() as connection:
            for write in batch:
                try:
                    for sql, values in write.statements:
                        turns.between()
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


class Outage(Exception):
    """The disk refuses, or the system lacks what using it needs. `conditions` and `Disk.trouble` say why."""


class Disk:
    """Uses one database. `trouble` is empty, or why the last use failed; `ready` is set once it could be used."""

    def __init__(self, database: Database, conditions: Conditions) -> None:
        self.ready = trio.Event()
        self.trouble = ""
        self._database = database
        self._conditions = conditions
        self._told = ""
        self._limiter = trio.CapacityLimiter(1)

    async def use(self, work: Callable[[*Ts], T], *args: *Ts) -> T:
        """Return what `work` of the database returns, in a thread. Raises `Outage`. A checkpoint."""
        try:
            # An abandoned thread keeps its place in the limiter until it ends, so two never use the file together.
            returned = await trio.to_thread.run_sync(work, *args, limiter=self._limiter, abandon_on_cancel=True)
        except _FAILURES as error:
            if isinstance(error, RuntimeError | ImportError) and not is_want(error):
                raise
            self.fail(str(error))
            raise Outage from error
        self.ready.set()
        if self._database.moved != self._told:
            self._told = self._database.moved
            self._conditions.note(DATABASE, f"it was damaged, so it is {self._told} now, and a fresh one was made")
        return returned

    def fail(self, why: str) -> None:
        self.trouble = why or "unknown error"
        self._conditions.begin(WHAT, f"nothing is saved until the disk recovers: {self.trouble}")

    def recover(self) -> None:
        self.trouble = ""
        self._conditions.end(WHAT)

    async def open(self, open_s: float) -> None:
        """Try for so long to open the file. Raises `ConfigError` for one that a newer version wrote."""
        with trio.move_on_after(open_s):
            try:
                await self.use(self._database.open)
            except Outage as outage:
                if isinstance(outage.__cause__, ConfigError):
                    raise outage.__cause__ from None
            return
        self.fail(f"the disk did not answer within {open_s:g} s")

    async def open_later(self) -> None:
        pauses = Pauses(max_s=MAX_PAUSE_S)
        while not self.ready.is_set():
            with trio.move_on_after(pauses.next()):
                await self.ready.wait()
                return
            try:
                await self.use(self._database.open)
            except Outage:
                continue
            self.recover()

    async def close(self, rest: Callable[[], object]) -> None:
        """Close the file. Without a thread to be had `rest`, what there is left to do, is done on the loop before."""
        try:
            await self.use(self._database.close)
        except Outage as outage:
            if outage.__cause__ is not None and is_want(outage.__cause__):
                self._close_here(rest)

    def _close_here(self, rest: Callable[[], object]) -> None:
        try:
            rest()
            self._database.close()
        except _FAILURES as error:
            self.fail(str(error))
