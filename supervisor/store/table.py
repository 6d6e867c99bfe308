"""Tables of the store: a struct of the row declares one, and its schema and statements follow from that.

A field is a column of its name and type, one that may be None takes none. The first fields are the keys: a row takes
the place of one with the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec.structs import astuple

Statement = tuple[str, tuple[Any, ...]]
"""SQL and its values. What makes a value may stand in its place: that is called on the thread that writes, as often as
the write is tried."""
Row = TypeVar("Row", bound=msgspec.Struct)

_AT_ONCE: Final = 500
_SQL: Final = {"IntType": "INTEGER", "FloatType": "REAL", "StrType": "TEXT", "LiteralType": "TEXT"}


class Table(Generic[Row]):
    """Rows of a struct, known by its first `keys` fields.

    - `stamp`: one more column, of the moment at which a row was put, or used last.
    - `order`: the column by which rows are read, the oldest first. Without one it is by their keys.
    - `most`: so many rows stay, of those that are the last in `order`; 0 for all.
    - `expires`: the column of the moment from which on a row is none any more.
    - `unique`: a column beside the keys, of which each value is there once.
    - `indexes`: by the end of their names, the columns.
    - `replicated`: all nodes of a fleet have these rows in common.

    An only key that may be None is given by the database, and counts up. Moments are unix seconds.
    """

    def __init__(
        self,
        name: str,
        row: type[Row],
        keys: int = 1,
        *,
        stamp: str = "",
        order: str = "",
        most: int = 0,
        expires: str = "",
        unique: str = "",
        indexes: Mapping[str, str] | None = None,
        replicated: bool = False,
    ) -> None:
        self.name = name
        self.row = row
        self.most = most
        self.expires = expires
        self.replicated = replicated
        self.keys = row.__struct_fields__[:keys]
        self._stamp = stamp
        self._order = order or ", ".join(self.keys)
        self._unique = unique
        self._indexes = indexes or {}

    def schema(self) -> Iterator[str]:
        """Yield the statements that make it, as SQLite keeps their text."""
        types = {field.name: _column_type(field.type) for field in msgspec.structs.fields(self.row)}
        columns = {name: sql if nullable else f"{sql} NOT NULL" for name, (sql, nullable) in types.items()}
        columns |= {self._stamp: "REAL NOT NULL"} if self._stamp else {}
        columns |= {self._unique: f"{columns[self._unique]} UNIQUE"} if self._unique else {}
        lines, first = [f"{name} {kind}" for name, kind in columns.items()], self.keys[0]
        is_number = len(self.keys) == 1 and types[first][0] == "INTEGER"
        if len(self.keys) == 1:
            counts = " AUTOINCREMENT" if types[first][1] else ""
            lines[0] = f"{first} {types[first][0]} PRIMARY KEY{counts}"
        else:
            lines.append(f"PRIMARY KEY ({', '.join(self.keys)})")
        # Rows lie in the tree of their keys; not those of a number, which is the rowid itself, nor those with a bound,
        # which two indexes find.
        suffix = "" if is_number or self.most else " WITHOUT ROWID"
        yield f"CREATE TABLE IF NOT EXISTS {self.name} ({', '.join(lines)}){suffix}"
        for end, of in self._indexes.items():
            yield f"CREATE INDEX IF NOT EXISTS {self.name}_{end} ON {self.name} ({of})"

    def key_of(self, row: Row) -> tuple[Any, ...]:
        return astuple(row)[: len(self.keys)]

    def put(self, row: Row, now: float) -> Statement:
        """Return what keeps a row in the place of one with the same keys."""
        values = (*astuple(row), now) if self._stamp else astuple(row)
        return f"INSERT OR REPLACE INTO {self.name} VALUES ({', '.join('?' * len(values))})", values

    def trim(self) -> Iterator[Statement]:
        """Yield what removes those of which there are too many."""
        if self.most:
            keys = ", ".join(self.keys)
            over = f"SELECT {keys} FROM {self.name} ORDER BY {self._order} DESC LIMIT -1 OFFSET ?"
            yield f"DELETE FROM {self.name} WHERE ({keys}) IN ({over})", (self.most,)

    def expire(self, now: float) -> Iterator[Statement]:
        """Yield what removes those that are none any more."""
        if self.expires:
            yield f"DELETE FROM {self.name} WHERE {self.expires} <= ?", (now,)

    def forget(self, *key: Any) -> Statement:
        """Return what removes the rows whose keys begin so."""
        some = " AND ".join(f"{name} = ?" for name in self.keys[: len(key)])
        return f"DELETE FROM {self.name}{f' WHERE {some}' if some else ''}", key

    def pages(self, keys: Sequence[object]) -> Iterator[tuple[str, Sequence[object]]]:
        """Yield conditions that an only key is one of these, with as many of them as a statement takes."""
        for first in range(0, len(keys), _AT_ONCE):
            some = keys[first : first + _AT_ONCE]
            yield f"{self.keys[0]} IN ({', '.join('?' * len(some))})", some

    def touch(self, now: float, keys: Sequence[object]) -> Iterator[Statement]:
        """Yield what notes that rows are used, by their only keys."""
        for where, some in self.pages(keys):
            yield f"UPDATE {self.name} SET {self._stamp} = ? WHERE {where}", (now, *some)

    def query(self, where: str = "") -> str:
        """Return what reads rows."""
        columns = ", ".join(self.row.__struct_fields__)
        return f"SELECT {columns} FROM {self.name}{f' WHERE {where}' if where else ''} ORDER BY {self._order}"


def _column_type(of: Any) -> tuple[str, bool]:
    """Return the type of a column in SQL, and whether it may be NULL."""
    kind = msgspec.inspect.type_info(of)
    if isinstance(kind, msgspec.inspect.UnionType):
        (only,) = (each for each in kind.types if not isinstance(each, msgspec.inspect.NoneType))
        return _SQL.get(type(only).__name__, "BLOB"), True
    return _SQL.get(type(kind).__name__, "BLOB"), False
