"""What is kept in the database is each event once, the newest of some kinds, and not more than was wanted."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from supervisor.config.sections import EventSink
from supervisor.delivery.delivery import Delivered, EventBatch
from supervisor.delivery.sinks import StoreSink
from supervisor.events.event import DaemonEvent, encode
from supervisor.events.kinds import EventData, LimitExceeded, ToolsDiscovered
from supervisor.store import Store, open_store

DAY_S = 86_400.0
NOW = 100 * DAY_S


def lack() -> EventData:
    return LimitExceeded(resource="x", reason="y")


def tools(server: str, count: int) -> EventData:
    return ToolsDiscovered(
        server_id=server,
        server_slug=server,
        installation_id=server,
        installation_name=server,
        tool_count=count,
        total_tokens=0,
        tokens_exact=True,
        tools=(),
        discovered_at="",
    )


class Keeping:
    """A sink before a store, and a number for each event."""

    def __init__(self, store: Store, **more: Any) -> None:
        self.sink = StoreSink(EventSink(name="a", type="store", **more), store, lambda: NOW)
        self.store = store
        self.number = 0

    def batch(self, *data: EventData, time: float = NOW) -> EventBatch:
        events = []
        for each in data:
            self.number += 1
            events.append(DaemonEvent(number=self.number, time=time, data=each))
        ids = [f"7-{event.number}" for event in events]
        texts = [encode(event, id_) for event, id_ in zip(events, ids, strict=True)]
        return EventBatch(id=f"evt_{ids[0]}", events=events, ids=ids, texts=texts, dropped=0)

    async def kept(self, limit: int = 1000, before: int | None = None, type_: str = "", server: str = "") -> list[str]:
        rows = await self.store.events.find(limit, before, type_, server)
        assert [number for number, _ in rows] == sorted((number for number, _ in rows), reverse=True)
        return [json.loads(payload)["id"] for _, payload in rows]


@asynccontextmanager
async def keeping(path: Path, **more: Any) -> AsyncIterator[Keeping]:
    async with open_store(path / "store.sqlite3", clock=lambda: NOW) as store:
        yield Keeping(store, **more)


async def test_each_event_is_kept_once(tmp_path: Path) -> None:
    async with keeping(tmp_path) as at:
        batch = at.batch(lack(), lack())
        for _ in range(3):  # its answer was lost
            assert await at.sink.deliver(batch) == Delivered("taken")
        await at.sink.deliver(at.batch(tools("s", 1), lack()))
        assert await at.kept() == ["7-4", "7-3", "7-2", "7-1"]
        assert await at.kept(limit=2) == ["7-4", "7-3"]
        assert await at.kept(type_="mcp.*") == ["7-3"]
        assert await at.kept(server="s") == ["7-3"]
        await at.sink.close()
    async with keeping(tmp_path) as again:
        assert len(await again.kept()) == 4


async def test_of_the_tools_of_a_server_the_newest_are_kept(tmp_path: Path) -> None:
    async with keeping(tmp_path) as at:
        await at.sink.deliver(at.batch(tools("s", 1), tools("t", 1), tools("s", 2)))
        await at.sink.deliver(at.batch(tools("s", 3)))
        assert await at.kept() == ["7-4", "7-2"]


async def test_rows_are_bounded_by_age_and_number(tmp_path: Path) -> None:
    async with keeping(tmp_path, days=2, rows=100) as at:
        await at.sink.deliver(at.batch(lack(), time=NOW - 3 * DAY_S))
        assert await at.kept() == []
        for _ in range(3):
            await at.sink.deliver(at.batch(*[lack() for _ in range(60)]))
        assert await at.kept() == [f"7-{number}" for number in range(181, 81, -1)]


async def test_what_the_disk_does_not_take_is_tried_again(tmp_path: Path) -> None:
    async with keeping(tmp_path) as at:
        batch = at.batch(lack())
    delivered = await at.sink.deliver(batch)
    assert delivered.outcome == "kept"
    assert str(tmp_path) not in delivered.why
