"""The tables of an open store: what reads and writes each; see `supervisor/store/records.py` for their rows."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Final, Generic

import trio

from actors.kit import Conditions
from actors.launch import SEPARATOR
from actors.protocol.agreement.versions import Era
from actors.protocol.wire.jsonrpc import encode
from supervisor.identity.audit import AuditQuery, AuditRecord
from supervisor.store import records
from supervisor.store.database import BUSY_TIMEOUT_S, RECORD, Database, Later
from supervisor.store.records import Row, Statement, Table
from supervisor.store.write_behind import CLOSE_S, LINGER_S, MAX_KEYS, OPEN_S, WriteBehind


class Rows(Generic[Row]):
    """Those of one table. Nothing raises because of the disk; writing waits for nothing, reading is a checkpoint."""

    def __init__(self, store: WriteBehind, table: Table[Row]) -> None:
        self._store = store
        self._table = table
        self.ready, self.secure, self.keep = store.ready, store.secure, store.keep

    def put(self, *rows: Row) -> bool:
        """Keep rows, each in the place of one with the same keys; False if they are lost, as too much waits."""
        table, now = self._table, self._store.clock()
        statements = (*table.expire(now), *(table.put(row, now) for row in rows), *table.trim())
        return not rows or self._write(tuple(chain.from_iterable(map(table.key_of, rows))), *statements)

    def forget(self, *key: Any) -> None:
        """Forget the rows whose keys begin so; without any all."""
        self._write(key, self._table.forget(*key))

    def forget_others(self, names: Collection[str]) -> None:
        """Forget the rows of which the first key is none of these names."""
        others = f"DELETE FROM {self._table.name} WHERE {self._table.keys[0]} NOT IN (SELECT value FROM json_each(?))"
        self._write((None, frozenset(names)), (others, (encode([*names]).decode(),)))

    def touch(self, *keys: Any) -> None:
        """Note that the rows of these only keys are used."""
        self._write((None, *keys), *self._table.touch(self._store.clock(), keys))

    async def load(self) -> list[Row]:
        """Return all rows; none if the disk does not say."""
        return await self.read() or []

    async def read(self) -> list[Row] | None:
        """Return all rows; None if the disk does not say."""
        table, now = self._table, self._store.clock()
        if not table.expires:
            return await self._store.read(table.row, table.query())
        ((tidy, _),) = table.expire(now)
        return await self._store.read(table.row, table.query(f"{table.expires} > ?"), (now,), tidy)

    async def _find(self, where: str, *values: object) -> list[Row]:
        return await self._store.read(self._table.row, self._table.query(where), values) or []

    def _write(self, key: tuple[Any, ...], *statements: Statement) -> bool:
        """Save by statements, in the place of what waits under the same key; None begins one that is no row's."""
        return self._store.write((self._table.name, *key), *statements)


class ServerRows(Rows[records.SavedServer]):
    """Encoded snapshots: of servers, and of launches that not all share, which have a name of their own."""

    async def load_shared(self) -> dict[str, records.SavedServer]:
        """Return those of the launch that all share, by server."""
        return {row.name: row for row in await self._find("instr(name, ?) = 0", SEPARATOR)}

    async def load_launches(self, launches: Collection[str]) -> dict[str, bytes]:
        """Return the snapshots of launches by name."""
        rows = await self._find("name IN (SELECT value FROM json_each(?))", encode([*launches]).decode())
        return {row.name: row.payload for row in rows}

    def keep_launches_of(self, servers: Collection[str]) -> None:
        """Forget the launches of all other servers, and those that nobody had for `LAUNCH_KEPT_S`."""
        others = (
            "DELETE FROM servers WHERE instr(name, ?1) > 0 AND (substr(name, 1, instr(name, ?1) - 1) NOT IN"
            " (SELECT value FROM json_each(?2)) OR updated_at < ?3)"
        )
        values = (SEPARATOR, encode([*servers]).decode(), self._store.clock() - records.LAUNCH_KEPT_S)
        self._write((None, "launches"), (others, values))


class EraRows(Rows[records.SavedEra]):
    """Verdicts, by launch digest. One from the future was written by a wrong clock, and would never expire else."""

    _EXPIRED: Final = "abs(? - updated_at) >= CASE era WHEN 'legacy' THEN ? ELSE ? END"
    _TTL_S: Final = (records.ERA_TTL_S["legacy"], records.ERA_TTL_S["modern"])

    async def find(self, digest: str) -> Era | None:
        """Return what the launch of that digest speaks; None if that is not known, or was too long ago."""
        eras = await self._find(f"digest = ? AND NOT {self._EXPIRED}", digest, self._store.clock(), *self._TTL_S)
        return eras[0].era if eras else None

    async def load_all(self, now: float) -> dict[str, Era]:
        """Return those that have not expired at `now`; the others are removed."""
        query, tidy = self._table.query(f"NOT {self._EXPIRED}"), f"DELETE FROM eras WHERE {self._EXPIRED}"
        rows = await self._store.read(records.SavedEra, query, (now, *self._TTL_S), tidy) or []
        return {row.digest: row.era for row in rows}


class SessionRows(Rows[records.EndedSession]):
    """Sessions that have ended."""

    def end(self, session_id: str, expires_at: float) -> None:
        """Remember one by the digest of its token until `expires_at`."""
        self.put(records.EndedSession(session_id, expires_at))

    def end_until(self, moment: float) -> None:
        """Remember that every session that expires at `moment` or before is ended: one row in their place."""
        row = self._table.put(records.EndedSession(records.ALL_UNTIL, moment), moment)
        self._write((None, "until"), *self._table.expire(moment), row)

    async def load_ended(self) -> dict[str, float]:
        """Return when they expire, by digest or `ALL_UNTIL`."""
        return {row.id: row.expires_at for row in await self.load()}


class UsageRows(Rows[records.ToolUsage]):
    """Totals, which are added to."""

    def add(self, used: Iterable[records.ToolUsage]) -> None:
        for usage in used:
            self._store.write((self._table.name, *self._table.key_of(usage)), usage=usage)


class DefinitionRows(Rows[records.ReplacedDefinition]):
    """What tools were defined as before."""

    def replace(self, server: str, replaced: Callable[[], Iterable[tuple[str, bytes]]], size: int, turn: int) -> None:
        """Keep what tools were defined as until now: names and definitions, which the writer asks for one by one.

        `size`: the bytes that nobody else holds until then. Of those that wait to be saved, the one of the same `turn`
        gives way.
        """
        now, of_tool = self._store.clock(), "(SELECT max(number) FROM definitions WHERE server = ? AND tool = ?)"
        insert = f"INSERT INTO definitions SELECT ?, ?, coalesce({of_tool}, 0) + 1, ?, ?"
        forget = f"DELETE FROM definitions WHERE server = ? AND tool = ? AND number <= {of_tool} - ?"
        trim = (
            "DELETE FROM definitions WHERE server = ? AND (tool, number) IN (SELECT tool, number FROM (SELECT tool,"
            " number, sum(length(definition) + 100) OVER (ORDER BY replaced_at DESC, tool, number DESC) AS bytes"
            " FROM definitions WHERE server = ?) WHERE bytes > ?)"
        )

        def make() -> Iterator[Statement]:
            for tool, before in replaced():
                yield insert, (server, tool, server, tool, now, before)
                yield forget, (server, tool, server, tool, records.MAX_REPLACED)

        key = (self._table.name, server, turn % records.MAX_REPLACED)
        self._store.write(key, (trim, (server, server, records.MAX_REPLACED_BYTES)), later=Later(make, size))

    async def load_of(self, server: str, tool: str) -> list[records.ReplacedDefinition]:
        """Return what a tool was defined as before, the oldest first."""
        return await self._find("server = ? AND tool = ?", server, tool)


class VectorRows(Rows[records.SavedVector]):
    """Implements `actors.registry.indexing.Vectors`."""

    async def load_vectors(self, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return what is kept under these digests, and note its use; nothing until the file could be opened."""
        rows = await self._store.read_used(self._table, digests) if self.ready.is_set() else None
        return {row.digest: row.levels for row in rows or ()}

    def save_vectors(self, vectors: Mapping[bytes, bytes]) -> None:
        self.put(*(records.SavedVector(digest, levels) for digest, levels in vectors.items()))


MAX_AUDIT_ROWS: Final = 10_000
"""Of one action; a row has at most 2 kB."""
MAX_AUDITED_CALLS: Final = 100_000
"""Of calls of tools, which are recorded by a setting alone."""


class AuditRows(Rows[AuditRecord]):
    """The audit: rows are added at its end, and removed by age and by a bound for each action, oldest first. So nobody
    drives out what others did by repeating what they may do. What a bound has removed is counted.
    """

    _added = 0

    def append(self, record: AuditRecord) -> bool:
        """Add a record; False if it is lost, as too many wait for the disk."""
        self._added += 1
        action = record.action
        most = MAX_AUDITED_CALLS if action == "tool.call" else MAX_AUDIT_ROWS
        bound = (
            "DELETE FROM audit WHERE action = ? AND id <= (SELECT id FROM audit WHERE action = ? ORDER BY id DESC"
            " LIMIT 1 OFFSET ?)"
        )
        count = (
            "INSERT INTO audit_dropped SELECT ?, changes() WHERE changes() > 0"
            " ON CONFLICT (action) DO UPDATE SET rows = rows + excluded.rows"
        )
        insert = self._table.put(record, record.time)
        return self._store.write((RECORD, self._added), insert, (bound, (action, action, most)), (count, (action,)))

    def remove_before(self, moment: float) -> None:
        self._write((None, "old"), ("DELETE FROM audit WHERE time < ?", (moment,)))

    async def find(self, query: AuditQuery, limit: int) -> list[AuditRecord] | None:
        """Return so many of the records that are wanted, the newest first; None if they cannot be read."""
        wanted: list[tuple[str, tuple[Any, ...]]] = [("time >= ?", (query.since,))]
        if query.before is not None:
            wanted.append(("id < ?", (query.before,)))
        if query.user:
            wanted.append(("user = ?", (query.user,)))
        if query.action:
            wanted.append(("(action = ? OR action GLOB ?)", (query.action, f"{query.action}.*")))
        sql = self._table.query(" AND ".join(condition for condition, _ in wanted))
        values = (value for _, values in wanted for value in values)
        return await self._store.read(AuditRecord, f"{sql} DESC LIMIT ?", (*values, limit))


class PeriodRows(Rows[records.SavedPeriod]):
    """Sums of what was called, by level."""

    async def find(self, level: str, since: float) -> list[records.SavedPeriod] | None:
        """Return those of a level that begin then or later, the oldest first; None if the disk does not say."""
        return await self._store.read(
            records.SavedPeriod, self._table.query("level = ? AND start >= ?"), (level, since)
        )

    def remove_before(self, level: str, moment: float) -> None:
        """Forget those of a level that began before a moment."""
        self._write((None, "old", level), ("DELETE FROM call_periods WHERE level = ? AND start < ?", (level, moment)))


class CallRows(Rows[records.SavedCalls]):
    """Batches of calls."""

    MAX_WAITING: Final = 4096
    """Of those that wait for the disk; the oldest give way."""

    def append(self, batch: records.SavedCalls, keep: int) -> None:
        """Add one, and forget those of which the calls are `keep` older."""
        trim = ("DELETE FROM calls WHERE number < ?", (batch.number - keep,))
        self._write((batch.number % self.MAX_WAITING,), self._table.put(batch, 0.0), trim)


class EventRows(Rows[records.SavedEvent]):
    """Events that a sink of the type `store` keeps: they are added, and removed by age and number."""

    def append(
        self, key: str, events: Sequence[records.SavedEvent], before: float, rows: int, newest_of: Collection[str] = ()
    ) -> bool:
        """Add events, and remove those from before a moment and those over a number; False if that is lost.

        Of what waits to be saved, the one with the same key gives way. An event that is there already stays once. Of
        the types `newest_of` only the newest of each server is kept.
        """
        statements: list[Statement] = []
        for event in events:
            if event.type in newest_of:
                statements.append(("DELETE FROM events WHERE type = ? AND server = ?", (event.type, event.server)))
            statements.append(self._table.put(event, before))
        expire = ("DELETE FROM events WHERE time < ?", (before,))
        bound = ("DELETE FROM events WHERE number <= (SELECT max(number) FROM events) - ?", (rows,))
        return self._write((key,), *statements, expire, bound)

    async def find(self, limit: int, before: int | None, type_: str, server: str) -> list[tuple[int, bytes]]:
        """Return so many events with their numbers, the newest first, those before a number if one is given.

        `type_` may have a `*`; it and `server` are empty for all.
        """
        query = (
            "SELECT number, payload FROM events WHERE number < ? AND (? = '' OR type GLOB ?) AND (? = '' OR server = ?)"
            " ORDER BY number DESC LIMIT ?"
        )
        values = (2**62 if before is None else before, type_, type_, server, server, limit)
        return await self._store.read(tuple[int, bytes], query, values) or []


MAX_OCCURRENCES: Final = 100_000
MAX_OCCURRENCE_BYTES: Final = 256 * 1024 * 1024
OCCURRENCE_KEPT_S: Final = 7 * 86_400.0
"""So much is kept of all topics together, and for so long; the oldest goes first."""
_TOPIC_KEPT_S: Final = 30 * 86_400.0
MAX_TOPICS: Final = 10_000
"""How far topics were followed is kept longer, as it is little."""
_LAST_FORGOTTEN: Final = (
    "SELECT max(coalesce((SELECT max(number) FROM occurrences WHERE saved_at < ?), 0),"
    " coalesce((SELECT number FROM occurrences ORDER BY number DESC LIMIT 1 OFFSET ?), 0),"
    " coalesce((SELECT number FROM (SELECT number, sum(length(body)) OVER (ORDER BY number DESC) AS bytes"
    " FROM occurrences) WHERE bytes > ? ORDER BY number DESC LIMIT 1), 0))"
)
"""The last number that is not kept any more."""
_RAISE_SINCE: Final = (
    f"WITH gone AS (SELECT topic, max(number) AS number FROM occurrences WHERE number <= ({_LAST_FORGOTTEN})"
    " GROUP BY topic)"
    " UPDATE event_topics SET since = max(since, (SELECT number FROM gone WHERE gone.topic = event_topics.topic))"
    " WHERE topic IN (SELECT topic FROM gone)"
)


class OccurrenceRows(Rows[records.SavedOccurrence]):
    """Events of servers: the journal of occurrences, by topic, and how far each topic was followed.

    Numbers only go up, over all topics. What is kept of a topic and how far it was followed is written together, so
    after a crash it is followed on from what is there. A place that was lost is a row without an id: a gap.
    """

    def append(self, rows: Sequence[records.SavedOccurrence], followed: records.SavedTopic) -> bool:
        """Add what happened in a topic, and say how far it was followed with that; False if that is lost.

        So it is where much waits for the disk: servers tell as much as they like, and nothing else is lost for that.
        """
        if self._store.is_busy:
            return False
        now = self._store.clock()
        follow = (
            "INSERT INTO event_topics VALUES (?, ?, ?, ?) ON CONFLICT (topic) DO UPDATE SET"
            " since = max(since, excluded.since), cursor = excluded.cursor, saved_at = excluded.saved_at"
        )
        saved = (follow, (followed.topic, followed.since, followed.cursor, now))
        trim = ("DELETE FROM occurrences WHERE topic = ? AND number <= ?", (followed.topic, followed.since))
        key = (rows[0].number,) if rows else (None, followed.topic)
        return self._write(key, *(self._table.put(row, now) for row in rows), saved, trim)

    def trim(self) -> None:
        """Forget what is too old or too much."""
        now = self._store.clock()
        bounds = (now - OCCURRENCE_KEPT_S, MAX_OCCURRENCES, MAX_OCCURRENCE_BYTES)
        trim = (f"DELETE FROM occurrences WHERE number <= ({_LAST_FORGOTTEN})", bounds)
        topics = (
            "DELETE FROM event_topics WHERE saved_at < ? OR topic IN"
            " (SELECT topic FROM event_topics ORDER BY saved_at DESC LIMIT -1 OFFSET ?)"
        )
        self._write((None, "trimmed", ""), (_RAISE_SINCE, bounds), trim, (topics, (now - _TOPIC_KEPT_S, MAX_TOPICS)))

    async def load_topic(self, topic: str) -> tuple[records.SavedTopic, list[records.SavedOccurrence]] | None:
        """Return how far a topic was followed, and what is kept of it, the oldest first; None if nothing is known."""
        topics = await self._store.read(records.SavedTopic, records.TOPICS.query("topic = ?"), (topic,))
        if not topics:
            return None
        return topics[0], await self._find("topic = ? AND number > ?", topic, topics[0].since)

    async def load_journal(self) -> records.SavedJournal:
        """Return the name of this journal, and a number under which all are that were given so far; empty and 0 for a
        new one, or if the disk does not say."""
        query = (
            "SELECT coalesce(max(life), ''), max(coalesce(max(reserved), 0),"
            " coalesce((SELECT max(number) FROM occurrences), 0)) FROM event_journal"
        )
        found = await self._store.read(records.SavedJournal, query)
        return found[0] if found else records.SavedJournal("", 0)

    def save_journal(self, journal: records.SavedJournal) -> None:
        """Keep the name of the journal, and a number that no other one reaches."""
        others = ("DELETE FROM event_journal WHERE life <> ?", (journal.life,))
        self._write((None, "journal", ""), others, records.JOURNAL.put(journal, 0.0))


class Store(WriteBehind):
    """The daemon's memory across restarts, opened with `open_store`: its tables. Moments are unix seconds."""

    def __init__(self, database: Database, **options: Any) -> None:
        super().__init__(database, **options)
        self.servers = ServerRows(self, records.SERVERS)
        self.eras = EraRows(self, records.ERAS)
        self.sessions = SessionRows(self, records.SESSIONS)
        self.usage = UsageRows(self, records.USAGE)
        self.switched_off = Rows(self, records.SWITCHED_OFF)
        self.grants = Rows(self, records.GRANTS)
        self.definitions = DefinitionRows(self, records.DEFINITIONS)
        self.pins = Rows(self, records.PINS)
        self.vectors = VectorRows(self, records.VECTORS)
        self.phrases = Rows(self, records.PHRASES)
        self.tokens = Rows(self, records.TOKENS)
        self.values = Rows(self, records.VALUES)
        self.fleet_records = Rows(self, records.RECORDS)
        self.audit = AuditRows(self, records.AUDIT)
        self.dropped = Rows(self, records.DROPPED)
        self.periods = PeriodRows(self, records.PERIODS)
        self.consents = Rows(self, records.CONSENTS)
        self.calls = CallRows(self, records.CALLS)
        self.events = EventRows(self, records.EVENTS)
        self.occurrences = OccurrenceRows(self, records.OCCURRENCES)
        self.webhooks = Rows(self, records.WEBHOOKS)

    def forget_replicated(self) -> None:
        """Forget what all nodes of a fleet have in common: one that is told all of it need not know what was once."""
        for table in records.TABLES:
            if table.replicated:
                self.write((table.name,), table.forget())


@asynccontextmanager
async def open_store(
    path: Path,
    *,
    clock: Callable[[], float] = time.time,
    linger_s: float = LINGER_S,
    open_s: float = OPEN_S,
    close_s: float = CLOSE_S,
    busy_timeout_s: float = BUSY_TIMEOUT_S,
    max_keys: int = MAX_KEYS,
    conditions: Conditions | None = None,
) -> AsyncIterator[Store]:
    """Open the store at `path` (its directory must exist) and keep its writer running until the block is left.

    Opening takes at most `open_s`, and goes on in the background if it failed. Writes are gathered for `linger_s`
    before they go to disk; leaving the block tries for `close_s` to save the rest.
    `busy_timeout_s` is how long SQLite waits for a lock that another process holds.
    Raises `ConfigError` if the file was written by a newer version. Any other trouble with the disk makes the store
    "degraded", which `conditions` is told. There is a nursery inside, so exceptions of the block arrive in a group.
    """
    database = Database(path, busy_timeout_s=busy_timeout_s)
    store = Store(database, clock=clock, linger_s=linger_s, max_keys=max_keys, conditions=conditions)
    await store._disk.open(open_s)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store._write_behind)
        nursery.start_soon(store._disk.open_later)
        try:
            yield store
        finally:
            nursery.cancel_scope.cancel()
            with trio.move_on_after(close_s, shield=True):
                await store.flush(close_s)
                await store._disk.close(store._write_here)
            store._stop()
