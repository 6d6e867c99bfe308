"""The queue of writes that wait for the disk. Pure.

It holds one write per key: a newer one replaces the older, usage is added up. It is therefore bounded by the
number of servers, principals and tools, launches, vectors and ended sessions, and by `max_keys` whatever those are. New
keys are refused, too, where what waits has `max_bytes`: minutes of what was called add up while a disk fails for long.
Records of the audit have a key each, and a bound of their own: no record is lost for another one, and none of the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import chain
from typing import Any

import msgspec
from msgspec.structs import astuple, replace

from supervisor.store.records import ToolUsage

Key = tuple[str, ...]
MAX_KEYS = 50_000
MAX_BYTES = 64 * 1024 * 1024
"""Of the texts and bytes of all that waits. What is made only when it is written is held by somebody else anyhow."""
RECORD = "audit record"
"""The first part of the keys under which records of the audit wait."""
MAX_RECORDS = 10_000
"""So many of them wait while the disk fails; those that follow are lost, and counted."""

Payload = bytes | Callable[[], bytes]
"""What is kept, or what makes it: that is called on the thread that writes, as often as the write is tried."""
Statement = tuple[str, tuple[Any, ...]]
"""SQL and its values, any of which may be a `Payload`."""


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


class WriteQueue:
    """The newest write of each key, oldest key first."""

    def __init__(self, *, max_keys: int = MAX_KEYS, max_bytes: int = MAX_BYTES) -> None:
        self._max_keys = max_keys
        self._max_bytes = max_bytes
        self._waiting: dict[Key, Write] = {}
        self._records = 0
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_busy(self) -> bool:
        """Whether so much waits that what others may send without end is to give way to the rest."""
        return len(self._waiting) >= self._max_keys // 8 or self._bytes >= self._max_bytes // 4

    def put(self, write: Write) -> bool:
        """Queue a write. False: the queue is full of other keys, or of bytes, and the write is dropped."""
        older = self._waiting.get(write.key)
        size = write.size - (0 if older is None else older.size)
        if older is None:
            if size and self._waiting and self._bytes + size > self._max_bytes:
                return False
            if write.is_record and self._records >= MAX_RECORDS:
                return False
            if not write.is_record and len(self._waiting) - self._records >= self._max_keys:
                return False
            self._records += write.is_record
        self._waiting[write.key] = _merge(older, write)
        self._bytes += size
        return True

    def take(self) -> list[Write]:
        batch, self._waiting, self._records, self._bytes = list(self._waiting.values()), {}, 0, 0
        return batch

    def put_back(self, batch: Collection[Write]) -> int:
        """Return the batch taken last, which failed; the number of its writes that had not failed before.

        What was queued meanwhile is newer and wins. The queue may pass `max_keys` here, by one batch at most.
        """
        returned = {write.key: replace(write, tried=True) for write in batch}
        newer = {key: _merge(returned.get(key), write) for key, write in self._waiting.items()}
        self._waiting = returned | newer
        self._records = sum(write.is_record for write in self._waiting.values())
        self._bytes = sum(write.size for write in self._waiting.values())
        return sum(not write.tried for write in batch)


def _merge(older: Write | None, newer: Write) -> Write:
    if older is None or older.usage is None or newer.usage is None:
        return newer
    return Write(newer.key, usage=older.usage.plus(newer.usage))
