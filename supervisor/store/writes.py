"""The queue of writes that wait for the disk. No I/O here.

It holds one write per key: a newer one replaces the older, usage is added up. It is therefore bounded by the
number of servers, principals and tools, launches, vectors and ended sessions, and by `max_keys` whatever those are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec.structs import astuple

from supervisor.store.records import ToolUsage

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


class Write(msgspec.Struct, frozen=True):
    """What is to be saved together, in the place of an older write of the same key; `usage` is added to it instead."""

    key: Key
    _statements: tuple[Statement, ...] = ()
    usage: ToolUsage | None = None

    @property
    def statements(self) -> tuple[Statement, ...]:
        return self._statements if self.usage is None else ((_ADD_USAGE, astuple(self.usage)),)


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
