"""The database: one SQLite file, made and opened with the right mode and schema, examined, read and written.
All of that blocks.

- A file of a newer version is left alone (`ConfigError`): it is not ours to change.
- A file of an earlier version is copied before it is changed: that version can be gone back to.
- Nobody else may have written it: what it says of servers is believed (`ConfigError`). Reading by others is taken back.
- A file that is damaged, found at opening or later, is moved aside and a fresh one is made: what is in it can be found
  out again. So is what no version of ours writes: rows with values of other types are not returned.
- A file that vanished is made anew: SQLite would go on writing into one without a name.
- An `sqlite3.Error` or `OSError` that leaves this module is about the disk, not about one row.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import logging
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import astuple

from actors.errors import ConfigError
from actors.kit import is_want
from actors.kit.decoding import GivesWay
from actors.principal import LOCAL
from supervisor.store.records import TABLES, Row, Statement, Table, ToolUsage

log = logging.getLogger(__name__)

SCHEMA_VERSION = 15
"""Of what `TABLES` says now."""
_MAX_DAMAGED_COPIES = 3
"""Of damaged files so many are kept, the newest: damage must not fill the disk."""
_CHECK_S = 1.5
"""A file that takes longer to examine is used as it is: it may be large, or its disk slow. Use shows damage, too."""
_CHECK_STEPS = 10_000
"""Steps of SQLite between two looks at the time; some ten milliseconds."""

_OTHERWISE_BEFORE: dict[int, dict[str, str]] = {
    4: {
        "eras": "digest, era, updated_at",
        "tool_usage": f"'{LOCAL}', server, tool, calls, failures, total_ms, 0.0",
    },
    6: {"tool_usage": "principal, server, tool, calls, failures, total_ms, 0.0"},
    8: {},  # the first with tokens
    9: {"tokens": "digest, user, role, team, label, created_at, expires_at, used_at, ''"},
}
"""Tables whose columns changed with a schema, and what of those before it goes into the newest. The first row that is
newer than a file counts for it."""
_DAMAGED = ".corrupt-"
_LOGS = ("-wal", "-shm")
# SQLite's file format, section 1.3: the header string, and the user version as a big-endian number.
_MAGIC = b"SQLite format 3\0"
_USER_VERSION = slice(60, 64)


def examine(path: Path) -> None:
    """Raise `ConfigError` for a file that cannot be used as it is: a newer version's, a link, or one others can write.

    Looks at the file only, without a lock, so that it neither waits for another process nor disturbs one. A file that
    is missing or damaged is no error: a fresh one is made.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ELOOP:  # what O_NOFOLLOW says of a link (open(2))
            raise _link_error(path) from error
        return  # the store says what is wrong with it, and goes on trying
    try:
        about = os.fstat(fd)
        head = os.pread(fd, 64, 0) if stat.S_ISREG(about.st_mode) else b""
    finally:
        os.close(fd)
    if about.st_uid != os.geteuid():
        raise ConfigError(
            "the database belongs to another user, who may have written anything into it",
            path=str(path),
            hint="run the daemon as that user, or delete it: servers are discovered again",
        )
    if about.st_mode & 0o022:
        raise ConfigError(
            "others may have written the database: only this user may be able to write it",
            path=str(path),
            hint="chmod 600 it if you trust what is in it, or delete it: servers are discovered again",
        )
    if head.startswith(_MAGIC):
        _check_version(path, int.from_bytes(head[_USER_VERSION], "big"))


def _link_error(path: Path) -> ConfigError:
    return ConfigError(
        "the database is a symbolic link: what it points to would be written, and its mode changed",
        path=str(path),
        hint="move the file here, or set data_dir to the directory where it is",
    )


def _check_version(path: Path, version: int) -> None:
    if version > SCHEMA_VERSION:
        raise ConfigError(
            f"the database was written by a newer version (schema {version}, this one knows {SCHEMA_VERSION})",
            path=str(path),
            hint="run the newer version, or put the copy of this one in its place",
        )


def connect(path: Path, busy_timeout_s: float) -> sqlite3.Connection:
    """Open the file, made if it is missing; no link is followed. Raises `ConfigError`, `sqlite3.Error`, `OSError`."""
    # Made by us first, because SQLite would make it with the umask's mode; its log files copy the mode of the file.
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        if stat.S_IMODE(os.fstat(fd).st_mode) != 0o600:
            with contextlib.suppress(OSError):
                os.fchmod(fd, 0o600)
    finally:
        os.close(fd)
    connection = sqlite3.connect(path, timeout=busy_timeout_s, isolation_level=None, check_same_thread=False)
    try:
        _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    _check_version(path, version)
    if not _is_whole(connection):
        raise _Corrupt("the quick check found damage")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    if version == SCHEMA_VERSION:
        return  # without a write, so that it can be read while another process holds the lock
    if version:
        _copy(connection, path.with_name(f"{path.name}.schema-{version}"))
    connection.execute("BEGIN IMMEDIATE")
    for statement in _statements(version):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT")


def _is_whole(connection: sqlite3.Connection) -> bool:
    """Return whether nothing of the file is damaged, as far as that is found in `_CHECK_S`."""
    until = time.monotonic() + _CHECK_S
    connection.set_progress_handler(lambda: time.monotonic() > until, _CHECK_STEPS)
    try:
        return bool(connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        log.info("the database was examined for %g s only, as it is large or its disk is slow", _CHECK_S)
        return True
    finally:
        connection.set_progress_handler(None, 0)


def _copy(connection: sqlite3.Connection, copy: Path) -> None:
    """Copy the database, in the place of an earlier copy. Raises `sqlite3.Error`, `OSError`; that one stays then."""
    draft = copy.with_name(f"{copy.name}.new")
    draft.unlink(missing_ok=True)
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        connection.execute("VACUUM INTO ?", (str(draft),))
        draft.replace(copy)
    finally:
        draft.unlink(missing_ok=True)


def _statements(version: int) -> list[str]:
    """Return what makes the present schema of one of an earlier version; 0 is a fresh file."""
    since = min((schema for schema in _OTHERWISE_BEFORE if 0 < version < schema), default=0)
    changed = _OTHERWISE_BEFORE.get(since, {})
    aside = [f"ALTER TABLE {table} RENAME TO {table}_before" for table in changed]
    back = [f"INSERT INTO {table} SELECT {columns} FROM {table}_before" for table, columns in changed.items()]
    schema = chain.from_iterable(table.schema() for table in TABLES)
    return [*aside, *schema, *back, *(f"DROP TABLE {table}_before" for table in changed)]


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        about = path.lstat()
    except FileNotFoundError:
        return None
    return about.st_dev, about.st_ino


class _Corrupt(sqlite3.DatabaseError):
    """Damage that SQLite reported as a row, not as an error."""


def _is_corrupt(error: sqlite3.DatabaseError) -> bool:
    code: int = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the low byte of an extended code is its family
    return isinstance(error, _Corrupt) or code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def move_aside(path: Path, now: float) -> Path:
    """Rename the file and its logs to `*.corrupt-DATE` (UTC), `now` in unix seconds; return the new name of the file.

    Earlier ones make room. Raises `OSError`.
    """
    kept = damaged_copies(path)
    for old in kept[: max(0, len(kept) - _MAX_DAMAGED_COPIES + 1)]:
        for each in _with_logs(old):
            with contextlib.suppress(OSError):
                each.unlink()
    copy = path.with_name(f"{path.name}{_DAMAGED}{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}")
    for each, aside in zip(_with_logs(path), _with_logs(copy), strict=True):
        if each == path or each.exists():
            each.replace(aside)
    return copy


def damaged_copies(path: Path) -> list[Path]:
    """Return what was moved aside of a file, the oldest first. Raises `OSError`."""
    every = path.parent.glob(f"{glob.escape(path.name)}{_DAMAGED}*")
    copies = [copy for copy in every if not copy.name.endswith(_LOGS)]
    return sorted(copies, key=lambda copy: (len(copy.name), copy.name))  # earlier versions counted from 1 to 9


def _with_logs(path: Path) -> list[Path]:
    return [path, *(path.with_name(path.name + suffix) for suffix in _LOGS)]


# What is saved --------------------------------------------------------------------------------------------------------


Key = tuple[Hashable, ...]
"""The name of a table, and the keys of a row or of the rows that begin so."""
RECORD = "audit record"
"""The first part of the keys under which records of the audit wait."""


class Later(msgspec.Struct, frozen=True):
    """Statements that are made on the thread that writes, one by one, as often as the write is tried.

    `size`: the bytes that nobody else holds meanwhile.
    """

    make: Callable[[], Iterable[Statement]]
    size: int


_ADD_USAGE = (
    "INSERT INTO tool_usage (principal, server, tool, calls, failures, total_ms, waited_ms)"
    " VALUES (?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (principal, server, tool) DO UPDATE SET calls = calls + excluded.calls,"
    " failures = failures + excluded.failures, total_ms = total_ms + excluded.total_ms,"
    " waited_ms = waited_ms + excluded.waited_ms"
)


class Write(msgspec.Struct, frozen=True):
    """What is to be saved together, in the place of an older write of the same key; `usage` is added to it instead.
    What there is `later` goes before the rest.

    `tried`: it has failed before.
    """

    key: Key
    _statements: tuple[Statement, ...] = ()
    usage: ToolUsage | None = None
    tried: bool = False
    later: Later | None = None

    @property
    def is_record(self) -> bool:
        """Whether it adds a record to the audit."""
        return self.key[0] == RECORD

    @property
    def size(self) -> int:
        """Return how many bytes its values have, about; those of records of the audit do not count."""
        if self.is_record:
            return 0
        values = chain.from_iterable(values for _, values in self._statements)
        size = sum(len(value) for value in values if isinstance(value, bytes | str))
        return size if self.later is None else size + self.later.size

    @property
    def statements(self) -> Iterable[Statement]:
        if self.usage is not None:
            return ((_ADD_USAGE, astuple(self.usage)),)
        return self._statements if self.later is None else chain(self.later.make(), self._statements)


# Reading and writing --------------------------------------------------------------------------------------------------


T = TypeVar("T")

BUSY_TIMEOUT_S = 0.5
"""How long a writer waits for another process before the attempt has failed."""
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
            if self._file == _identity(self._path):
                return self._connection
            log.warning("%s vanished or was replaced; it is opened again", self._path)
            self.close()
        try:
            connection = connect(self._path, self._busy_timeout_s)
        except sqlite3.DatabaseError as error:
            if not _is_corrupt(error):
                raise
            log.warning("%s is damaged (%s); it is moved aside and a fresh one is made", self._path, error)
            self.moved = move_aside(self._path, time.time()).name
            connection = connect(self._path, self._busy_timeout_s)
        self._connection, self._file = connection, _identity(self._path)
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
                    if _is_about_the_disk(error):
                        raise
                    log.warning("one write cannot be stored: %s", type(error).__name__)
                    dropped += 1
        return dropped

    def load_used(self, table: Table[Row], keys: Sequence[object], now: float) -> list[Row]:
        """Return the rows under these keys, each of one column, and note that they were used at `now`."""
        rows: list[Row] = []
        for where, some in table.pages(keys):
            rows += self.load(table.row, table.query(where), some)
            for statement in table.touch(now, some):
                self._tidy(*statement)
        return rows

    def load(self, kind: type[T], query: str, values: Sequence[object] = (), tidy: str = "") -> list[T]:
        """Return the rows with values of the right types; the statement `tidy` removes others, by the same values."""
        with self._use() as connection:
            fetched = connection.execute(query, values).fetchall()
        if tidy:
            self._tidy(tidy, values)
        rows: list[T] = []
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
            if _is_corrupt(error):
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


def _is_about_the_disk(error: BaseException) -> bool:
    """Return whether an exception concerns the file as a whole, and not the values of one write."""
    if isinstance(error, _UNSAVABLE):
        return False
    return isinstance(error, sqlite3.Error | OSError) or is_want(error)
