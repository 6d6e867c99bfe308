"""Writes that wait for the disk: what each does to the database, and the queue of them. No I/O here.

The queue holds one write per key: a newer one replaces the older, usage is added up. It is therefore bounded by the
number of servers, principals and tools, launches, vectors and ended sessions, and by `max_keys` whatever those are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import astuple

from actors.principal import Principal
from supervisor.store.records import ALL_UNTIL, MAX_VECTORS, EraName, SavedGrant, ToolUsage

Key = tuple[str, ...]
MAX_KEYS = 50_000

Payload = bytes | Callable[[], bytes]
"""What is kept, or what makes it: that is called on the thread that writes, as often as the write is tried."""
Statement = tuple[str, tuple[Any, ...]]
"""SQL and its values, any of which may be a `Payload`."""

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
_EXPIRE_SESSIONS = "DELETE FROM ended_sessions WHERE expires_at <= ?"
_END_SESSION = "INSERT OR REPLACE INTO ended_sessions VALUES (?, ?)"


class Write(msgspec.Struct, frozen=True):
    """What is to be saved together, in the place of an older write of the same key; `usage` is added to it instead."""

    key: Key
    _statements: tuple[Statement, ...] = ()
    usage: ToolUsage | None = None

    @property
    def statements(self) -> tuple[Statement, ...]:
        return self._statements if self.usage is None else ((_ADD_USAGE, astuple(self.usage)),)


def save_server(name: str, digest: str, payload: Payload, now: float) -> Write:
    return Write(
        ("server", name), (("INSERT OR REPLACE INTO servers VALUES (?, ?, ?, ?)", (name, digest, payload, now)),)
    )


def forget_server(name: str) -> Write:
    return Write(("server", name), (("DELETE FROM servers WHERE name = ?", (name,)),))


def switch_server(name: str, now: float, *, disabled: bool) -> Write:
    on, off = "DELETE FROM disabled_servers WHERE name = ?", "INSERT OR REPLACE INTO disabled_servers VALUES (?, ?)"
    return Write(("switch", name), ((off, (name, now)) if disabled else (on, (name,)),))


def save_grant(grant: SavedGrant, now: float) -> Write:
    statement = "INSERT OR REPLACE INTO grants VALUES (?, ?, ?, ?, ?, ?)"
    return Write(("grant", grant.principal, grant.server), ((statement, (*astuple(grant), now)),))


def forget_grant(principal: Principal, server: str) -> Write:
    statement = "DELETE FROM grants WHERE principal = ? AND server = ?"
    return Write(("grant", principal, server), ((statement, (principal, server)),))


def save_era(digest: str, era: EraName, now: float) -> Write:
    return Write(("era", digest), (("INSERT OR REPLACE INTO eras VALUES (?, ?, ?)", (digest, era, now)),))


def save_vectors(vectors: Mapping[bytes, bytes], now: float) -> Write:
    """A batch of texts is embedded once; its first digest stands for it."""
    insert = "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)"
    saved = [(insert, (digest, levels, now)) for digest, levels in vectors.items()]
    return Write(("vectors", next(iter(vectors), b"").hex()), (*saved, (_FORGET_VECTORS, (MAX_VECTORS,))))


def end_session(digest: str, expires_at: float, now: float) -> Write:
    """Those that have expired `now` go with the same write."""
    return Write(("session", digest), ((_EXPIRE_SESSIONS, (now,)), (_END_SESSION, (digest, expires_at))))


def end_sessions_until(moment: float) -> Write:
    """One row in the place of each session that expires by then."""
    return Write(("sessions",), ((_EXPIRE_SESSIONS, (moment,)), (_END_SESSION, (ALL_UNTIL, moment))))


def add_usage(usage: ToolUsage) -> Write:
    return Write(("usage", usage.principal, usage.server, usage.tool), usage=usage)


class WriteQueue:
    """The newest write of each key, oldest key first."""

    def __init__(self, *, max_keys: int = MAX_KEYS) -> None:
        self._max_keys = max_keys
        self._waiting: dict[Key, Write] = {}
        self._failed: set[Key] = set()  # waiting writes that were tried before
        self._failed_taken: set[Key] = set()  # the same of the batch that was taken

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, write: Write) -> bool:
        """Queue a write. False: the queue is full of other keys and the write is dropped."""
        older = self._waiting.get(write.key)
        if older is None and len(self._waiting) >= self._max_keys:
            return False
        self._waiting[write.key] = _merge(older, write)
        self._failed.discard(write.key)
        return True

    def take(self) -> list[Write]:
        batch = list(self._waiting.values())
        self._waiting = {}
        self._failed, self._failed_taken = set(), self._failed
        return batch

    def put_back(self, batch: Iterable[Write]) -> int:
        """Return the batch taken last, which failed; the number of its writes that had not failed before.

        What was queued meanwhile is newer and wins. The queue may pass `max_keys` here, by one batch at most.
        """
        returned = {write.key: write for write in batch}
        newer = self._waiting
        self._failed |= returned.keys() - newer.keys()
        self._waiting = returned | {key: _merge(returned.get(key), write) for key, write in newer.items()}
        return len(returned.keys() - self._failed_taken)


def _merge(older: Write | None, newer: Write) -> Write:
    if older is None or older.usage is None or newer.usage is None:
        return newer
    return add_usage(older.usage.plus(newer.usage))
