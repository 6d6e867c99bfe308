"""The queue of writes that wait for the disk. No I/O here.

It holds one write per key: a newer one replaces the older, usage is added up. It is therefore bounded by the
number of servers, principals and tools, launches, vectors and ended sessions, and by `max_keys` whatever those are.
Records of the audit have a key each, and a bound of their own: no record is lost for another one, and none of the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import msgspec
from msgspec.structs import astuple, replace

from supervisor.store.records import ToolUsage

Key = tuple[str, ...]
MAX_KEYS = 50_000
RECORD = "audit record"
"""The first part of the keys under which records of the audit wait."""
MAX_RECORDS = 10_000
"""So many of them wait while the disk fails; those that follow are lost, and counted."""

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


class Write(msgspec.Struct, frozen=True):
    """What is to be saved together, in the place of an older write of the same key; `usage` is added to it instead.

    `tried`: it has failed before.
    """

    key: Key
    _statements: tuple[Statement, ...] = ()
    usage: ToolUsage | None = None
    tried: bool = False

    @property
    def is_record(self) -> bool:
        """Whether it adds a record to the audit."""
        return self.key[0] == RECORD

    @property
    def statements(self) -> tuple[Statement, ...]:
        return self._statements if self.usage is None else ((_ADD_USAGE, astuple(self.usage)),)


class WriteQueue:
    """The newest write of each key, oldest key first."""

    def __init__(self, *, max_keys: int = MAX_KEYS) -> None:
        self._max_keys = max_keys
        self._waiting: dict[Key, Write] = {}
        self._records = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, write: Write) -> bool:
        """Queue a write. False: the queue is full of other keys and the write is dropped."""
        older = self._waiting.get(write.key)
        if older is None:
            if write.is_record and self._records >= MAX_RECORDS:
                return False
            if not write.is_record and len(self._waiting) - self._records >= self._max_keys:
                return False
            self._records += write.is_record
        self._waiting[write.key] = _merge(older, write)
        return True

    def take(self) -> list[Write]:
        batch, self._waiting, self._records = list(self._waiting.values()), {}, 0
        return batch

    def put_back(self, batch: Collection[Write]) -> int:
        """Return the batch taken last, which failed; the number of its writes that had not failed before.

        What was queued meanwhile is newer and wins. The queue may pass `max_keys` here, by one batch at most.
        """
        returned = {write.key: replace(write, tried=True) for write in batch}
        newer = {key: _merge(returned.get(key), write) for key, write in self._waiting.items()}
        self._waiting = returned | newer
        self._records = sum(write.is_record for write in self._waiting.values())
        return sum(not write.tried for write in batch)


def _merge(older: Write | None, newer: Write) -> Write:
    if older is None or older.usage is None or newer.usage is None:
        return newer
    return Write(newer.key, usage=older.usage.plus(newer.usage))
