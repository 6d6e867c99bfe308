"""What nodes of a fleet have alike, over an engine in memory and without the rest of a daemon."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
from trio.testing import wait_all_tasks_blocked

from supervisor.fleet.engine import RecordPut
from supervisor.fleet.membership import NodeClock
from supervisor.servers.fleet.records import SharedRecords
from supervisor.store.records import RECORDS, FleetRecord
from tests.fakes.rows import MemoryRows
from tests.fleet.memory_engine import MemoryEngine

KEY = b"k" * 32


class TrioClock(NodeClock):
    """One that goes as that of trio does."""

    def now(self) -> float:
        return trio.current_time()

    def trio_time(self, moment: float) -> float:
        return moment


class Sharing:
    """One node: `heard` is what it was told of tokens, newest last. `disk` is what it keeps over its own restarts."""

    def __init__(
        self, engine: MemoryEngine, *keys: bytes, now: float = 1000.0, disk: MemoryRows[FleetRecord] | None = None
    ) -> None:
        self.engine = engine
        self.disk = disk or MemoryRows(RECORDS)
        self.records = SharedRecords(engine, keys or (KEY,), lambda: now, self.disk)
        self.heard: list[tuple[str, bytes | None]] = []
        self.records.follow("token", lambda name, payload: self.heard.append((name, payload)))

    async def run(self) -> None:
        await self.records.restore([*self.disk.kept.values()])
        self.records.want_everything()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.records.run)
            await self._follow()

    async def _follow(self) -> None:
        position = 0
        while True:
            page = await self.engine.read(position, 1000.0)
            position = page.position
            for _, entry in page.entries:
                if isinstance(entry, RecordPut):
                    self.records.take(entry)


@asynccontextmanager
async def running(*nodes: Sharing) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        for node in nodes:
            nursery.start_soon(node.run)
        await wait_all_tasks_blocked()
        yield
        nursery.cancel_scope.cancel()
