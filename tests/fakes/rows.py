"""Rows of a table that lie in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio

from supervisor.store import Rows
from supervisor.store.records import Row, Table


class MemoryRows(Rows[Row]):
    """`kept` are the rows by their key, or keys; `used` those that were touched.

    The disk takes them while it `works`, and does not answer so often as `outages` says.
    """

    def __init__(self, table: Table[Row], clock: Callable[[], float] = lambda: 0.0) -> None:
        self._table = table
        self._clock = clock
        self.ready = trio.Event()
        self.ready.set()
        self.kept: dict[Any, Row] = {}
        self.used: list[Any] = []
        self.works = True
        self.writes = self.outages = 0
        self.secure = self.keep = self.flush

    def put(self, *rows: Row) -> bool:
        for row in rows:
            self.writes += 1
            key = self._table.key_of(row)
            self.kept[key if len(key) > 1 else key[0]] = row
        return self.works

    def forget(self, *key: Any) -> None:
        for each in [each for each, row in self.kept.items() if self._table.key_of(row)[: len(key)] == key]:
            del self.kept[each]

    def touch(self, *keys: Any) -> None:
        self.used += keys

    async def read(self) -> list[Row] | None:
        await trio.lowlevel.checkpoint()
        if self.outages:
            self.outages -= 1
            return None
        expires = self._table.expires
        return [row for row in self.kept.values() if not expires or getattr(row, expires) > self._clock()]

    async def flush(self) -> bool:
        await trio.lowlevel.checkpoint()
        return self.works
