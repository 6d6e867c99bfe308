"""What the store keeps: the rows of its tables as plain values, and which tables there are.

A struct of the row declares a table, and its schema and statements follow from that. A field is a column of its name
and type, one that may be None takes none. The first fields are the keys: a row takes the place of one with the same.

Payloads are opaque here: whoever saves one encodes it and must be able to reject what it no longer understands.
Times are unix seconds of the wall clock, durations are milliseconds.

A new table is a row, a `Table` among the others, and the next `SCHEMA_VERSION` (`supervisor/store/database.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Generic, Literal, TypeVar

import msgspec
from msgspec.structs import astuple

from actors.principal import Principal
from actors.protocol.agreement.versions import Era
from actors.transport.redaction import Confidential
from supervisor.identity.audit import AuditRecord
from supervisor.identity.people import Tier
from supervisor.identity.tokens import SavedToken

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


# What is kept ---------------------------------------------------------------------------------------------------------


if TYPE_CHECKING:
    Payload = Any
else:
    Payload = bytes  # what is read; what is put may be made by the thread that writes, see `Statement`
DAY_S = 86_400.0

# A stale legacy verdict keeps succeeding silently, so it must be asked again; a stale modern one fails loudly at the
# first request. The second bound only keeps verdicts of launches that no longer exist from piling up.
ERA_TTL_S: dict[Era, float] = {"legacy": 7 * DAY_S, "modern": 90 * DAY_S}
ALL_UNTIL = "*"
"""In the place of a session's digest: all sessions that expire by then are ended."""
LAUNCH_KEPT_S = 30 * DAY_S
"""What is known of a launch that not all share is kept for so long after it was read last."""
_MAX_VECTORS = 50_000
"""Of texts of the search that are kept, 0.5 kB each; those not used for the longest time are dropped."""
MAX_PHRASES = 20_000
"""Definitions of which is kept what a model said, 0.4 kB each; those not used for the longest time are dropped."""
MAX_REPLACED = 10
"""Earlier definitions that are kept of each tool; the oldest go first."""
MAX_DEFINITION_BYTES = 65_536
"""Of a longer one it is only kept that it was replaced."""
MAX_REPLACED_BYTES = 4_194_304
"""Of all that is kept so of one server."""


class SavedServer(msgspec.Struct, frozen=True, array_like=True):
    """What a server, or a launch of it that not all share, offered when it was started so that its digest is this."""

    name: str
    digest: str
    payload: Payload


class SavedEra(msgspec.Struct, frozen=True, array_like=True):
    """What the launch of a digest speaks; it decides when that is asked again (`ERA_TTL_S`)."""

    digest: str
    era: Era


class EndedSession(msgspec.Struct, frozen=True, array_like=True):
    """A session that is over, by the digest of its token or `ALL_UNTIL`, until that token is good no more."""

    id: str
    expires_at: float


class ToolUsage(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Calls of one tool by one principal: how many, how many of them failed, and their summed milliseconds.

    `waited_ms` is the time before that, in which they waited for their server; earlier versions counted it with them.
    """

    principal: Principal
    server: str
    tool: str
    calls: Annotated[int, msgspec.Meta(ge=0)]
    failures: Annotated[int, msgspec.Meta(ge=0)]
    total_ms: Annotated[float, msgspec.Meta(ge=0)]
    waited_ms: Annotated[float, msgspec.Meta(ge=0)] = 0.0

    def plus(self, other: ToolUsage) -> ToolUsage:
        return msgspec.structs.replace(
            self,
            calls=self.calls + other.calls,
            failures=self.failures + other.failures,
            total_ms=self.total_ms + other.total_ms,
            waited_ms=self.waited_ms + other.waited_ms,
        )


class SwitchedOff(msgspec.Struct, frozen=True, array_like=True):
    """A server that an operator has switched off."""

    name: str


class SavedGrant(Confidential, msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A login at one server, sealed; what stands beside `sealed` is sealed with it."""

    principal: Principal
    server: str
    issuer: str
    resource: str
    sealed: bytes


class ReplacedDefinition(msgspec.Struct, frozen=True, array_like=True):
    """What a tool was defined as until `replaced_at`, the `number`-th; empty if that was too long to be kept."""

    server: str
    tool: str
    number: int
    replaced_at: float
    definition: bytes


class SavedPins(msgspec.Struct, frozen=True, array_like=True):
    """Which definitions of a server's tools are approved. One that cannot be read is not one that is not there: it may
    be of any type."""

    server: str
    payload: Any


class SavedVector(msgspec.Struct, frozen=True, array_like=True):
    """The vector of a text, by its digest."""

    digest: bytes
    levels: bytes


class SavedPhrases(msgspec.Struct, frozen=True, array_like=True):
    """What a model said of a definition, by its digest."""

    digest: bytes
    payload: bytes


class SavedValue(Confidential, msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A value that a team or a user gave for a server, sealed; what stands beside `sealed` is sealed with it."""

    tier: Tier
    owner: str
    server: str
    name: str
    sealed: bytes


class FleetRecord(msgspec.Struct, frozen=True, array_like=True):
    """What this node has seen of a record of its fleet."""

    key: str
    sealed: bytes


class DroppedRecords(msgspec.Struct, frozen=True, array_like=True):
    """How many records of an action were removed from the audit as they were too many."""

    action: str
    rows: int


class SavedPeriod(msgspec.Struct, frozen=True, array_like=True):
    """The sums of the period of a level that begins then."""

    level: str
    start: int
    payload: bytes


class SavedConsent(msgspec.Struct, frozen=True, array_like=True):
    """A yes for good to a tool, of which `pinned` is a digest."""

    principal: Principal
    server: str
    tool: str
    pinned: bytes
    given_at: float


class SavedCalls(msgspec.Struct, frozen=True, array_like=True):
    """Calls, of which the first is the `number`-th of all."""

    number: int
    payload: bytes


class SavedEvent(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """An event that a sink of the type `store` keeps, the `number`-th; None before it is kept."""

    number: int | None = None
    id: str
    time: float
    type: str
    server: str
    payload: bytes


class SavedOccurrence(msgspec.Struct, frozen=True, array_like=True):
    """One event of a server that is kept, or a gap in its topic, which has neither id nor body. `time`: it happened."""

    number: int
    topic: str
    event_id: str
    time: float
    body: bytes


class SavedTopic(msgspec.Struct, frozen=True, array_like=True):
    """How far a topic was followed: by the `cursor` of its source; nothing up to `since` is kept."""

    topic: str
    since: int
    cursor: str | None


class SavedJournal(msgspec.Struct, frozen=True, array_like=True):
    """The name of the journal of what servers say, and a number that none of it reaches."""

    life: str
    reserved: int


class SavedWebhook(Confidential, msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A subscription whose events are posted to an address, until `expires_at`. `cursor`: behind which it goes on. The
    rest of it is `sealed`, with its id."""

    id: str
    expires_at: float
    cursor: str
    sealed: bytes


class StoreStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What the status page shows.

    `lost_writes` counts writes that did not reach the disk when their turn came, each once; those that may still
    be saved by a later attempt are among `pending_writes`. `last_error` is empty while the state is "ok". `damaged` is
    what a damaged file is called now that was replaced since the start, if there was one.
    """

    state: Literal["ok", "degraded"]
    lost_writes: int
    pending_writes: int
    last_error: str
    damaged: str = ""


SERVERS: Final = Table("servers", SavedServer, stamp="updated_at")
ERAS: Final = Table("eras", SavedEra, stamp="updated_at")
SESSIONS: Final = Table("ended_sessions", EndedSession, expires="expires_at", indexes={"expiry": "expires_at"})
USAGE: Final = Table("tool_usage", ToolUsage, 3)
SWITCHED_OFF: Final = Table("disabled_servers", SwitchedOff, stamp="updated_at", replicated=True)
GRANTS: Final = Table("grants", SavedGrant, 2, stamp="updated_at", replicated=True)
DEFINITIONS: Final = Table("definitions", ReplacedDefinition, 3)
PINS: Final = Table("pins", SavedPins, stamp="updated_at", replicated=True)
VECTORS: Final = Table(
    "vectors", SavedVector, stamp="used_at", order="used_at", most=_MAX_VECTORS, indexes={"use": "used_at"}
)
PHRASES: Final = Table(
    "phrases", SavedPhrases, stamp="used_at", order="used_at", most=MAX_PHRASES, indexes={"use": "used_at"}
)
TOKENS: Final = Table("tokens", SavedToken, replicated=True)
VALUES: Final = Table("given_values", SavedValue, 4, stamp="updated_at", replicated=True)
RECORDS: Final = Table("fleet_records", FleetRecord, replicated=True)
AUDIT: Final = Table("audit", AuditRecord, indexes={"actions": "action, id", "times": "time"})
DROPPED: Final = Table("audit_dropped", DroppedRecords)
PERIODS: Final = Table("call_periods", SavedPeriod, 2)
CONSENTS: Final = Table("consents", SavedConsent, 4, order="given_at")
CALLS: Final = Table("calls", SavedCalls)
EVENTS: Final = Table("events", SavedEvent, unique="id", indexes={"times": "time", "types": "type, server"})
OCCURRENCES: Final = Table(
    "occurrences", SavedOccurrence, stamp="saved_at", indexes={"topics": "topic, number", "times": "saved_at"}
)
TOPICS: Final = Table("event_topics", SavedTopic, stamp="saved_at")
JOURNAL: Final = Table("event_journal", SavedJournal)
WEBHOOKS: Final = Table("webhooks", SavedWebhook, expires="expires_at")

TABLES: Final[tuple[Table[Any], ...]] = tuple(each for each in globals().values() if isinstance(each, Table))
"""Those of above: a database has all of them."""
