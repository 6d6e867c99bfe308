"""Replaced definitions: what changed is kept, over restarts and other launches, within bounds, while its server is."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from actors.catalogue.lists import tool
from actors.catalogue.offer import Offer
from supervisor.store import Store, open_store, records
from supervisor.store.memory import StoreMemory
from supervisor.store.records import MAX_DEFINITION_BYTES, MAX_REPLACED, MAX_REPLACED_BYTES


@asynccontextmanager
async def memory(path: Path, launch: str = "one", **more: Any) -> AsyncIterator[tuple[Store, StoreMemory]]:
    async with open_store(path, linger_s=0.0, **more) as store:
        remembered = StoreMemory(store, lambda: {"files": launch}, lambda: ("files",))
        await remembered.load(0.0)
        yield store, remembered


def offer(**descriptions: str) -> Offer:
    definitions = ({"name": name, "description": text, "inputSchema": {}} for name, text in descriptions.items())
    return Offer(tools=tuple(tool(msgspec.Raw(json.dumps(each).encode())) for each in definitions))


async def kept(store: Store, name: str = "read") -> list[tuple[int, str]]:
    """Number and description of what is kept of a tool."""
    rows: list[tuple[int, str]] = []
    for row in await store.definitions.load_of("files", name):
        known: Mapping[str, str] = json.loads(row.definition or b'{"description": "too long"}')
        rows.append((row.number, known["description"]))
    return rows


async def test_what_changed_is_kept_and_what_did_not_costs_nothing(path: Path) -> None:
    async with memory(path) as (store, remembered):
        remembered.save_offer("files", offer(read="a", write="w"))
        remembered.save_offer("files", offer(read="b", write="w"))
        remembered.save_offer("files", offer(read="c", write="w"))
        assert await kept(store) == [(1, "a"), (2, "b")]
        assert await kept(store, "write") == []


async def test_a_change_over_a_restart_is_noticed_also_where_the_server_starts_in_another_way(path: Path) -> None:
    for launch, text in (("one", "a"), ("one", "b"), ("two", "c")):
        async with memory(path, launch) as (_, remembered):
            remembered.save_offer("files", offer(read=text))
    async with memory(path, "two") as (store, _):
        assert await kept(store) == [(1, "a"), (2, "b")]


async def test_another_spelling_is_no_change_and_a_tool_that_is_gone_is_one(path: Path) -> None:
    spaced = Offer(tools=(tool(msgspec.Raw(b'{ "description":"a", "inputSchema":{}, "name":"read" }')),))
    async with memory(path) as (store, remembered):
        remembered.save_offer("files", offer(read="a", write="w"))
        remembered.save_offer("files", spaced)
        assert await kept(store) == []
        assert await kept(store, "write") == [(1, "w")]
        remembered.save_offer("files", replace(offer(other="x"), partial=True))
        assert await kept(store) == [], "of a list that was not read to its end nothing is gone"


async def test_the_oldest_go_where_there_are_too_many_and_what_is_too_long_is_only_counted(path: Path) -> None:
    async with memory(path) as (store, remembered):
        for number in range(MAX_REPLACED + 4):
            remembered.save_offer("files", offer(read=f"{number}"))
            await store.flush()
        assert await kept(store) == [(number + 1, f"{number}") for number in range(3, MAX_REPLACED + 3)]
        remembered.save_offer("files", offer(read="x" * MAX_DEFINITION_BYTES))
        remembered.save_offer("files", offer(read="end"))
        assert (await kept(store))[-1] == (MAX_REPLACED + 5, "too long")


async def test_one_server_has_so_many_bytes_at_the_most(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_REPLACED_BYTES == 4 * 1024 * 1024
    most = 8 * MAX_DEFINITION_BYTES
    monkeypatch.setattr(records, "MAX_REPLACED_BYTES", most)
    now = 0.0
    size = MAX_DEFINITION_BYTES - 200
    names = [f"tool{number}" for number in range(most // size + 5)]
    async with memory(path, clock=lambda: now) as (store, remembered):
        for now in (1.0, 2.0, 3.0):
            remembered.save_offer("files", offer(**dict.fromkeys(names, f"{now}" + "x" * size)))
            await store.flush()
        rows = [row for name in names for row in await store.definitions.load_of("files", name)]
    assert sum(len(row.definition) for row in rows) <= most
    assert len(rows) >= most // MAX_DEFINITION_BYTES - 1
    assert {row.replaced_at for row in rows} == {3.0}


async def test_it_goes_with_its_server(path: Path) -> None:
    async with memory(path) as (store, remembered):
        for text in "abc":
            remembered.save_offer("files", offer(read=text))
        await store.flush()
        remembered.forget("files")
        assert await kept(store) == []
        remembered.save_offer("files", offer(read="d"))
        assert await kept(store) == [], "what was before is forgotten, too"
        remembered.save_offer("files", offer(read="e"))
        await store.flush()
    async with open_store(path) as store:
        without = StoreMemory(store, dict, tuple)
        await without.load(0.0)
        assert await store.definitions.load_of("files", "read") == []
