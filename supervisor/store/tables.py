"""What is kept in which table, saved and loaded; see `supervisor/store/file.py` for the tables themselves."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import trio
from msgspec import Struct
from msgspec.structs import astuple

from actors.kit import Conditions
from actors.launch import SEPARATOR
from actors.principal import Principal
from actors.protocol.agreement.versions import Era
from actors.protocol.wire.jsonrpc import encode
from actors.transport.redaction import Confidential
from supervisor.identity.audit import AuditQuery, AuditRecord
from supervisor.identity.people import Tier
from supervisor.identity.tokens import SavedToken
from supervisor.store.database import (
    BUSY_TIMEOUT_S,
    CLOSE_S,
    LINGER_S,
    MAX_KEYS,
    OPEN_S,
    RECORD,
    Database,
    Later,
    Payload,
    Statement,
    WriteBehind,
)
from supervisor.store.records import (
    ALL_UNTIL,
    ERA_TTL_S,
    LAUNCH_KEPT_S,
    MAX_PHRASES,
    MAX_REPLACED,
    MAX_REPLACED_BYTES,
    MAX_VECTORS,
    ReplacedDefinition,
    SavedGrant,
    SavedValue,
    ToolUsage,
)

MAX_BATCHES: Final = 4096
"""Batches of calls that wait for the disk, at most; the oldest give way."""
_FORGET_VECTORS = (
    "DELETE FROM vectors WHERE digest IN (SELECT digest FROM vectors ORDER BY used_at DESC LIMIT -1 OFFSET ?)"
)
_FORGET_PHRASES = (
    "DELETE FROM phrases WHERE digest IN (SELECT digest FROM phrases ORDER BY used_at DESC LIMIT -1 OFFSET ?)"
)
_REPLACE = (
    "INSERT INTO definitions SELECT ?, ?,"
    " coalesce((SELECT max(number) FROM definitions WHERE server = ? AND tool = ?), 0) + 1, ?, ?"
)
_FORGET_REPLACED = (
    "DELETE FROM definitions WHERE server = ? AND tool = ? AND number <="
    " (SELECT max(number) FROM definitions WHERE server = ? AND tool = ?) - ?"
)
_TRIM_DEFINITIONS = (
    "DELETE FROM definitions WHERE server = ? AND (tool, number) IN (SELECT tool, number FROM (SELECT tool, number,"
    " sum(length(definition) + 100) OVER (ORDER BY replaced_at DESC, tool, number DESC) AS bytes"
    " FROM definitions WHERE server = ?) WHERE bytes > ?)"
)
_LOAD_LAUNCHES = "SELECT name, payload FROM servers WHERE name IN (SELECT value FROM json_each(?))"
_KEEP_LAUNCHES = (
    "DELETE FROM servers WHERE instr(name, ?1) > 0 AND (substr(name, 1, instr(name, ?1) - 1) NOT IN"
    " (SELECT value FROM json_each(?2)) OR updated_at < ?3)"
)
_EXPIRE_SESSIONS = "DELETE FROM ended_sessions WHERE expires_at <= ?"
_END_SESSION = "INSERT OR REPLACE INTO ended_sessions VALUES (?, ?)"
# A date in the future was written by a wrong clock, and would otherwise never expire.
_EXPIRED_ERA = "abs(? - updated_at) >= CASE era WHEN 'legacy' THEN ? ELSE ? END"
_LOAD_ERA = f"SELECT era FROM eras WHERE digest = ? AND NOT {_EXPIRED_ERA}"


# The audit: rows are added at its end, and removed by age and by a bound for each action, oldest first. So nobody
# drives out what others did by repeating what they may do. What a bound has removed is counted. Ids only go up
# (`AUTOINCREMENT`), so a place in the table stays one.

MAX_AUDIT_ROWS: Final = 10_000
"""Of one action; a row has at most 2 kB."""
MAX_AUDITED_CALLS: Final = 100_000
"""Of calls of tools, which are recorded by a setting alone."""
_TOOL_CALL: Final = "tool.call"

_AUDIT_COLUMNS: Final = ", ".join(AuditRecord.__struct_fields__)
_APPEND_AUDIT: Final = f"INSERT INTO audit VALUES ({', '.join('?' * len(AuditRecord.__struct_fields__))})"
_BOUND_AUDIT: Final = (
    "DELETE FROM audit WHERE action = ? AND id <= (SELECT id FROM audit WHERE action = ? ORDER BY id DESC LIMIT 1"
    " OFFSET ?)"
)
_COUNT_DROPPED: Final = (
    "INSERT INTO audit_dropped SELECT ?, changes() WHERE changes() > 0"
    " ON CONFLICT (action) DO UPDATE SET rows = rows + excluded.rows"
)
_EXPIRE_AUDIT: Final = "DELETE FROM audit WHERE time < ?"
_DROPPED: Final = "SELECT action, rows FROM audit_dropped"


def _audit_statements(record: AuditRecord) -> tuple[Statement, ...]:
    """Return what adds a record, and removes what is too much of its action."""
    action = record.action
    most = MAX_AUDITED_CALLS if action == _TOOL_CALL else MAX_AUDIT_ROWS
    return (_APPEND_AUDIT, astuple(record)), (_BOUND_AUDIT, (action, action, most)), (_COUNT_DROPPED, (action,))


def _audit_query(query: AuditQuery, limit: int) -> tuple[str, tuple[Any, ...]]:
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
    return f"SELECT {_AUDIT_COLUMNS} FROM audit WHERE {conditions} ORDER BY id DESC LIMIT ?", (*values, limit)


# Events that a sink of the type `store` keeps: rows are added, and removed by age and number.

_APPEND_EVENT: Final = "INSERT OR REPLACE INTO events (id, time, type, server, payload) VALUES (?, ?, ?, ?, ?)"
_REPLACE_EVENT: Final = "DELETE FROM events WHERE type = ? AND server = ?"
_EXPIRE_EVENTS: Final = "DELETE FROM events WHERE time < ?"
_BOUND_EVENTS: Final = "DELETE FROM events WHERE number <= (SELECT max(number) FROM events) - ?"
_LOAD_EVENTS: Final = (
    "SELECT number, payload FROM events WHERE number < ? AND (? = '' OR type GLOB ?) AND (? = '' OR server = ?)"
    " ORDER BY number DESC LIMIT ?"
)
_NO_NUMBER: Final = 2**62


class SavedEvent(Struct, frozen=True, kw_only=True):
    """An event as it is kept; `only`: it takes the place of earlier ones of its type and server."""

    id: str
    time: float
    type: str
    server: str
    payload: bytes
    only: bool = False


def _event_statements(events: Sequence[SavedEvent]) -> Iterator[Statement]:
    for event in events:
        if event.only:
            yield _REPLACE_EVENT, (event.type, event.server)
        yield _APPEND_EVENT, astuple(event)[:-1]


# Events of servers: the journal of occurrences, by topic, and how far each topic was followed. Numbers only go up, over
# all topics. What is kept of a topic and how far it was followed is written together, so after a crash it is followed
# on from what is there. A place that was lost is a row without an id: a gap.

MAX_OCCURRENCES: Final = 100_000
MAX_OCCURRENCE_BYTES: Final = 256 * 1024 * 1024
OCCURRENCE_KEPT_S: Final = 7 * 86_400.0
"""So much is kept of all topics together, and for so long; the oldest goes first."""
TOPIC_KEPT_S: Final = 30 * 86_400.0
MAX_TOPICS: Final = 10_000
"""How far topics were followed is kept longer, as it is little."""
_INSERT_OCCURRENCE: Final = "INSERT OR REPLACE INTO occurrences VALUES (?, ?, ?, ?, ?, ?)"
_FOLLOWED: Final = (
    "INSERT INTO event_topics VALUES (?, ?, ?, ?) ON CONFLICT (topic) DO UPDATE SET since = max(since, excluded.since),"
    " cursor = excluded.cursor, saved_at = excluded.saved_at"
)
_TRIM_TOPIC: Final = "DELETE FROM occurrences WHERE topic = ? AND number <= ?"
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
_TRIM_OCCURRENCES: Final = f"DELETE FROM occurrences WHERE number <= ({_LAST_FORGOTTEN})"
_TRIM_TOPICS: Final = (
    "DELETE FROM event_topics WHERE saved_at < ? OR topic IN"
    " (SELECT topic FROM event_topics ORDER BY saved_at DESC LIMIT -1 OFFSET ?)"
)


class SavedOccurrence(Struct, frozen=True, array_like=True):
    """One that is kept, or a gap, which has neither id nor body. `time` is when it happened, in unix seconds."""

    number: int
    event_id: str
    time: float
    body: bytes


class SavedTopic(Struct, frozen=True, array_like=True):
    """How far a topic was followed: by the `cursor` of its source; nothing up to `since` is kept."""

    since: int
    cursor: str | None


# Subscriptions whose events are posted to an address.

_SAVE_WEBHOOK: Final = "INSERT OR REPLACE INTO webhooks (id, expires_at, cursor, sealed) VALUES (?, ?, ?, ?)"


class SavedWebhook(Confidential, Struct, frozen=True, kw_only=True, array_like=True):
    """One subscription, until `expires_at` (unix s). `cursor`: behind which it goes on. The rest of it is `sealed`,
    with its id."""

    id: str
    expires_at: float
    cursor: str
    sealed: bytes


class Store(WriteBehind):
    """The daemon's memory across restarts, opened with `open_store`; moments are unix seconds.

    None of its methods raises because of the disk. Loading is a checkpoint, and finds nothing if that cannot be read.
    """

    _records = 0
    """Of the audit, that were added."""

    def save_server(self, name: str, digest: str, payload: Payload) -> None:
        """Keep the encoded snapshot of a server, valid for the launch `digest`; encoded by the writer if it can be."""
        values = (name, digest, payload, self._clock())
        self._put(("server", name), ("INSERT OR REPLACE INTO servers VALUES (?, ?, ?, ?)", values))

    def forget_server(self, name: str) -> None:
        self._put(("server", name), ("DELETE FROM servers WHERE name = ?", (name,)))

    async def load_servers(self) -> dict[str, tuple[str, bytes]]:
        """Return the launch digest and the encoded snapshot of each server, of the launch that all share."""
        query = "SELECT name, digest, payload FROM servers WHERE instr(name, ?) = 0"
        rows = await self._load(tuple[str, str, bytes], query, (SEPARATOR,))
        return {name: (digest, payload) for name, digest, payload in rows}

    async def load_launches(self, launches: Collection[str]) -> dict[str, bytes]:
        """Return the encoded snapshots of launches by name: each has a name of its own for each digest."""
        rows = await self._load(tuple[str, bytes], _LOAD_LAUNCHES, (encode([*launches]).decode(),))
        return dict(rows)

    async def load_era(self, digest: str) -> Era | None:
        """Return what the launch of that digest speaks; None if that is not known, or was too long ago."""
        ttl_s = ERA_TTL_S["legacy"], ERA_TTL_S["modern"]
        eras = await self._load(tuple[Era], _LOAD_ERA, (digest, self._clock(), *ttl_s))
        return eras[0][0] if eras else None

    def keep_launches_of(self, servers: Collection[str]) -> None:
        """Forget the launches of all other servers, and those that nobody had for `LAUNCH_KEPT_S`."""
        values = (SEPARATOR, encode([*servers]).decode(), self._clock() - LAUNCH_KEPT_S)
        self._put(("launches",), (_KEEP_LAUNCHES, values))

    def replace_definitions(
        self, server: str, replaced: Callable[[], Iterable[tuple[str, bytes]]], size: int, turn: int
    ) -> None:
        """Keep what tools were defined as until now: names and definitions, which the writer asks for one by one.

        `size`: the bytes that nobody else holds until then. Of those that wait to be saved, the one of the same `turn`
        gives way.
        """
        now = self._clock()

        def make() -> Iterator[Statement]:
            for tool, before in replaced():
                yield _REPLACE, (server, tool, server, tool, now, before)
                yield _FORGET_REPLACED, (server, tool, server, tool, MAX_REPLACED)

        trim = (_TRIM_DEFINITIONS, (server, server, MAX_REPLACED_BYTES))
        self._put(("replaced", server, str(turn % MAX_REPLACED)), trim, later=Later(make, size))

    async def load_definitions(self, server: str, tool: str) -> list[ReplacedDefinition]:
        """Return what a tool was defined as before, the oldest first."""
        query = "SELECT number, replaced_at, definition FROM definitions WHERE server = ? AND tool = ? ORDER BY number"
        return await self._load(ReplacedDefinition, query, (server, tool))

    def forget_definitions(self, server: str) -> None:
        self._put(("definitions", server), ("DELETE FROM definitions WHERE server = ?", (server,)))

    def keep_definitions_of(self, servers: Collection[str]) -> None:
        """Forget what was kept of all others."""
        others = "DELETE FROM definitions WHERE server NOT IN (SELECT value FROM json_each(?))"
        self._put(("definitions",), (others, (encode([*servers]).decode(),)))

    def save_pins(self, server: str, payload: Payload) -> None:
        """Keep which definitions of a server's tools are approved; encoded by the writer if it can be."""
        values = (server, payload, self._clock())
        self._put(("pins", server), ("INSERT OR REPLACE INTO pins VALUES (?, ?, ?)", values))

    def forget_pins(self, server: str) -> None:
        self._put(("pins", server), ("DELETE FROM pins WHERE server = ?", (server,)))

    def keep_pins_of(self, servers: Collection[str]) -> None:
        """Forget what is approved of all others."""
        others = "DELETE FROM pins WHERE server NOT IN (SELECT value FROM json_each(?))"
        self._put(("pins",), (others, (encode([*servers]).decode(),)))

    async def load_pins(self) -> list[tuple[str, Any]] | None:
        """Return what is approved of each server, as it was encoded; None if the disk does not say. A checkpoint."""
        return await self._read(self._database.load, tuple[str, Any], "SELECT server, payload FROM pins")

    def switch_server(self, name: str, *, disabled: bool) -> None:
        if disabled:
            values = (name, self._clock())
            self._put(("switch", name), ("INSERT OR REPLACE INTO disabled_servers VALUES (?, ?)", values))
        else:
            self._put(("switch", name), ("DELETE FROM disabled_servers WHERE name = ?", (name,)))

    async def load_disabled(self) -> frozenset[str]:
        return frozenset(name for (name,) in await self._load(tuple[str], "SELECT name FROM disabled_servers"))

    def save_grant(self, grant: SavedGrant) -> None:
        values = (*astuple(grant), self._clock())
        statement = ("INSERT OR REPLACE INTO grants VALUES (?, ?, ?, ?, ?, ?)", values)
        self._put(("grant", grant.principal, grant.server), statement)

    def forget_grant(self, principal: Principal, server: str) -> None:
        statement = ("DELETE FROM grants WHERE principal = ? AND server = ?", (principal, server))
        self._put(("grant", principal, server), statement)

    async def load_grants(self) -> list[SavedGrant]:
        return await self._load(SavedGrant, f"SELECT {', '.join(SavedGrant.__struct_fields__)} FROM grants")

    def save_token(self, token: SavedToken) -> None:
        statement = ("INSERT OR REPLACE INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", astuple(token))
        self._put(("token", token.digest.hex()), statement)

    def forget_token(self, digest: bytes) -> None:
        self._put(("token", digest.hex()), ("DELETE FROM tokens WHERE digest = ?", (digest,)))

    async def load_tokens(self) -> list[SavedToken]:
        return await self._load(SavedToken, f"SELECT {', '.join(SavedToken.__struct_fields__)} FROM tokens")

    def save_value(self, value: SavedValue) -> None:
        statement = ("INSERT OR REPLACE INTO given_values VALUES (?, ?, ?, ?, ?, ?)", (*astuple(value), self._clock()))
        self._put(("value", value.tier, value.owner, value.server, value.name), statement)

    def forget_value(self, tier: Tier, owner: str, server: str, name: str) -> None:
        forget = "DELETE FROM given_values WHERE tier = ? AND owner = ? AND server = ? AND name = ?"
        self._put(("value", tier, owner, server, name), (forget, (tier, owner, server, name)))

    async def load_values(self) -> list[SavedValue]:
        return await self._load(SavedValue, f"SELECT {', '.join(SavedValue.__struct_fields__)} FROM given_values")

    def forget_shared(self) -> None:
        """Forget what all nodes of a fleet have in common: one that is told all of it need not know what was once."""
        for table in ("tokens", "grants", "given_values", "pins", "disabled_servers", "fleet_records"):
            self._put(("shared", table), (f"DELETE FROM {table}", ()))

    def save_record(self, key: str, sealed: bytes) -> None:
        """Keep what this node has seen of a record of its fleet."""
        self._put(("record", key), ("INSERT OR REPLACE INTO fleet_records VALUES (?, ?)", (key, sealed)))

    def forget_record(self, key: str) -> None:
        self._put(("record", key), ("DELETE FROM fleet_records WHERE key = ?", (key,)))

    async def load_records(self) -> dict[str, bytes]:
        return dict(await self._load(tuple[str, bytes], "SELECT key, sealed FROM fleet_records"))

    async def leave_fleet(self) -> None:
        """Forget what was seen of records: what is done without a fleet from now on is newer."""
        if await self._load(tuple[int], "SELECT 1 FROM fleet_records LIMIT 1"):
            self._put(("records",), ("DELETE FROM fleet_records", ()))

    def append_audit(self, record: AuditRecord) -> bool:
        """Add a record to the audit; False if it is lost, as too many wait for the disk."""
        self._records += 1
        return self._put((RECORD, str(self._records)), *_audit_statements(record))

    def expire_audit(self, before: float) -> None:
        """Remove the records from before a moment."""
        self._put(("audit",), (_EXPIRE_AUDIT, (before,)))

    async def load_audit(self, query: AuditQuery, limit: int) -> list[AuditRecord] | None:
        """Return so many of the records that are wanted, the newest first; None if they cannot be read."""
        return await self._read(self._database.load, AuditRecord, *_audit_query(query, limit))

    async def load_dropped(self) -> dict[str, int]:
        """Return how many records of each action were removed as they were too many."""
        return dict(await self._load(tuple[str, int], _DROPPED))

    def save_era(self, digest: str, era: Era) -> None:
        """Keep the era verdict of the launch `digest`; `era` decides when it expires (`ERA_TTL_S`)."""
        values = (digest, era, self._clock())
        self._put(("era", digest), ("INSERT OR REPLACE INTO eras VALUES (?, ?, ?)", values))

    async def load_eras(self, now: float) -> dict[str, Era]:
        """Return the era verdicts that have not expired at `now`, by launch digest; expired ones are removed."""
        values = (now, ERA_TTL_S["legacy"], ERA_TTL_S["modern"])
        query = f"SELECT digest, era FROM eras WHERE NOT {_EXPIRED_ERA}"
        return dict(await self._load(tuple[str, Era], query, values, tidy=f"DELETE FROM eras WHERE {_EXPIRED_ERA}"))

    def end_session(self, session_id: str, expires_at: float) -> None:
        """Remember an ended session by the digest of its token until `expires_at` (unix s)."""
        expire = (_EXPIRE_SESSIONS, (self._clock(),))
        self._put(("session", session_id), expire, (_END_SESSION, (session_id, expires_at)))

    def end_sessions_until(self, moment: float) -> None:
        """Remember that every session that expires at `moment` (unix s) or before is ended: one row in their place."""
        self._put(("sessions",), (_EXPIRE_SESSIONS, (moment,)), (_END_SESSION, (ALL_UNTIL, moment)))

    async def load_ended_sessions(self, now: float) -> dict[str, float]:
        """Return when ended sessions expire (unix s), by digest or `ALL_UNTIL`; what has expired is removed."""
        query = "SELECT id, expires_at FROM ended_sessions WHERE expires_at > ?"
        return dict(await self._load(tuple[str, float], query, (now,), tidy=_EXPIRE_SESSIONS))

    def add_usage(self, used: Iterable[ToolUsage]) -> None:
        for usage in used:
            self._put(("usage", usage.principal, usage.server, usage.tool), usage=usage)

    async def load_usage(self) -> list[ToolUsage]:
        columns = ", ".join(ToolUsage.__struct_fields__)
        return await self._load(ToolUsage, f"SELECT {columns} FROM tool_usage ORDER BY principal, server, tool")

    def save_period(self, level: str, start: int, payload: Payload) -> None:
        """Keep the sums of the period that begins then (unix s), in the place of those before."""
        values = (level, start, payload)
        self._put(("period", level, str(start)), ("INSERT OR REPLACE INTO call_periods VALUES (?, ?, ?)", values))

    async def load_periods(self, level: str, since: float) -> list[tuple[int, bytes]] | None:
        """Return the start and the sums of each period that begins then or later; None if the disk does not say."""
        query = "SELECT start, payload FROM call_periods WHERE level = ? AND start >= ? ORDER BY start"
        return await self._read(self._database.load, tuple[int, bytes], query, (level, since))

    def expire_periods(self, level: str, before: float) -> None:
        """Forget the periods that began before a moment."""
        expire = "DELETE FROM call_periods WHERE level = ? AND start < ?"
        self._put(("expired periods", level), (expire, (level, before)))

    def append_calls(self, number: int, payload: Payload, keep: int) -> None:
        """Add calls, of which the first is the `number`-th of all, and forget those that are `keep` older."""
        trim = ("DELETE FROM calls WHERE number < ?", (number - keep,))
        insert = ("INSERT OR REPLACE INTO calls VALUES (?, ?)", (number, payload))
        self._put(("calls", str(number % MAX_BATCHES)), insert, trim)

    async def load_calls(self) -> list[tuple[int, bytes]] | None:
        """Return the batches that are kept, the oldest first, each with the number of its first call."""
        return await self._read(
            self._database.load, tuple[int, bytes], "SELECT number, payload FROM calls ORDER BY number"
        )

    def save_consent(self, consent: Any) -> None:
        """Keep one; it has `principal`, `server`, `tool`, `pinned` and `given_at`."""
        values = (consent.principal, consent.server, consent.tool, consent.pinned, consent.given_at)
        insert = ("INSERT OR REPLACE INTO consents VALUES (?, ?, ?, ?, ?)", values)
        self._put(("consent", consent.principal, consent.server, consent.tool, consent.pinned.hex()), insert)

    def forget_consent(self, consent: Any) -> None:
        forget = "DELETE FROM consents WHERE principal = ? AND server = ? AND tool = ? AND pinned = ?"
        values = (consent.principal, consent.server, consent.tool, consent.pinned)
        self._put(("consent", consent.principal, consent.server, consent.tool, consent.pinned.hex()), (forget, values))

    async def load_consents(self) -> list[tuple[str, str, str, bytes, str, float]]:
        """Return what is kept, the oldest first, as the fields of consents. A checkpoint."""
        query = "SELECT principal, server, tool, pinned, '', given_at FROM consents ORDER BY given_at"
        return await self._load(tuple[str, str, str, bytes, str, float], query)

    def save_vectors(self, vectors: Mapping[bytes, bytes]) -> None:
        """A batch of texts is embedded once; its first digest stands for it."""
        insert, now = "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", self._clock()
        saved = [(insert, (digest, levels, now)) for digest, levels in vectors.items()]
        self._put(("vectors", next(iter(vectors), b"").hex()), *saved, (_FORGET_VECTORS, (MAX_VECTORS,)))

    async def load_vectors(self, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return what is kept under these digests, and note its use; nothing until the file could be opened."""
        if not self.ready.is_set():
            return {}
        return await self._read(self._database.load_vectors, digests, self._clock()) or {}

    def save_phrases(self, phrases: Mapping[bytes, bytes]) -> None:
        """Keep what a model said of definitions, by their digests; the first stands for a batch."""
        insert, now = "INSERT OR REPLACE INTO phrases VALUES (?, ?, ?)", self._clock()
        saved = [(insert, (digest, payload, now)) for digest, payload in phrases.items()]
        self._put(("phrases", next(iter(phrases), b"").hex()), *saved, (_FORGET_PHRASES, (MAX_PHRASES,)))

    def use_phrases(self, digests: Sequence[bytes]) -> None:
        """Note that what is kept of these definitions is used; the first stands for all."""
        now = self._clock()
        used = [("UPDATE phrases SET used_at = ? WHERE digest = ?", (now, digest)) for digest in digests]
        self._put(("phrases used", next(iter(digests), b"").hex()), *used)

    async def load_phrases(self) -> dict[bytes, bytes] | None:
        """Return what is kept; None if that cannot be read now. A checkpoint."""
        if not self.ready.is_set():
            return None
        query = "SELECT digest, payload FROM phrases"
        rows = await self._read(self._database.load, tuple[bytes, bytes], query)
        return None if rows is None else dict(rows)

    def append_events(self, key: str, events: Sequence[SavedEvent], before: float, rows: int) -> bool:
        """Add events, and remove those from before a moment and those over a number; False if that is lost.

        Of what waits to be saved, the one with the same key gives way. An event that is there already stays once.
        """
        removing: tuple[Statement, ...] = ((_EXPIRE_EVENTS, (before,)), (_BOUND_EVENTS, (rows,)))
        return self._put(("events", key), *_event_statements(events), *removing)

    async def load_events(self, limit: int, before: int | None, type_: str, server: str) -> list[tuple[int, bytes]]:
        """Return so many events with their numbers, the newest first, those before a number if one is given.

        `type_` may have a `*`; it and `server` are empty for all.
        """
        values = (_NO_NUMBER if before is None else before, type_, type_, server, server, limit)
        return await self._load(tuple[int, bytes], _LOAD_EVENTS, values)

    def append_occurrences(self, topic: str, rows: Sequence[SavedOccurrence], followed: SavedTopic) -> bool:
        """Add what happened, and say how far the topic was followed with that; False if that is lost.

        So it is where much waits for the disk: servers tell as much as they like, and nothing else is lost for that.
        """
        if self._queue.is_busy:
            return False
        now = self._clock()
        inserts = [(_INSERT_OCCURRENCE, (row.number, topic, row.event_id, row.time, row.body, now)) for row in rows]
        saved = (_FOLLOWED, (topic, *astuple(followed), now))
        key = ("occurrences", str(rows[0].number)) if rows else ("followed", topic)
        return self._put(key, *inserts, saved, (_TRIM_TOPIC, (topic, followed.since)))

    def trim_occurrences(self) -> None:
        """Forget what is too old or too much."""
        now = self._clock()
        bounds = (now - OCCURRENCE_KEPT_S, MAX_OCCURRENCES, MAX_OCCURRENCE_BYTES)
        topics = (_TRIM_TOPICS, (now - TOPIC_KEPT_S, MAX_TOPICS))
        self._put(("occurrences trimmed",), (_RAISE_SINCE, bounds), (_TRIM_OCCURRENCES, bounds), topics)

    async def load_topic(self, topic: str) -> tuple[SavedTopic, list[SavedOccurrence]] | None:
        """Return how far a topic was followed, and what is kept of it, the oldest first; None if nothing is known."""
        topics = await self._load(SavedTopic, "SELECT since, cursor FROM event_topics WHERE topic = ?", (topic,))
        query = "SELECT number, event_id, time, body FROM occurrences WHERE topic = ? AND number > ? ORDER BY number"
        rows = await self._load(SavedOccurrence, query, (topic, topics[0].since)) if topics else []
        return (topics[0], rows) if topics else None

    async def load_journal(self) -> tuple[str, int]:
        """Return the name of this journal, and a number under which all are that were given so far; empty and 0 for a
        new one, or if the disk does not say."""
        query = (
            "SELECT coalesce(max(life), ''), max(coalesce(max(reserved), 0),"
            " coalesce((SELECT max(number) FROM occurrences), 0)) FROM event_journal"
        )
        found = await self._load(tuple[str, int], query)
        return found[0] if found else ("", 0)

    def save_journal(self, life: str, reserved: int) -> None:
        """Keep the name of the journal, and a number that no other one reaches."""
        others = ("DELETE FROM event_journal WHERE life <> ?", (life,))
        self._put(("event journal",), others, ("INSERT OR REPLACE INTO event_journal VALUES (?, ?)", (life, reserved)))

    def save_webhook(self, saved: SavedWebhook) -> None:
        self._put(("webhook", saved.id), (_SAVE_WEBHOOK, astuple(saved)))

    def forget_webhook(self, id_: str) -> None:
        self._put(("webhook", id_), ("DELETE FROM webhooks WHERE id = ?", (id_,)))

    async def load_webhooks(self, now: float) -> list[SavedWebhook] | None:
        """Return those that have not expired, None if the disk does not say; the others are removed. A checkpoint."""
        query, tidy = "SELECT * FROM webhooks WHERE expires_at > ?", "DELETE FROM webhooks WHERE expires_at <= ?"
        return await self._read(self._database.load, SavedWebhook, query, (now,), tidy)


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
