"""What is kept of servers over restarts: what they offer and speak, and definitions that were replaced."""

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
from actors.catalogue.offer import Offer, encode_offer
from supervisor.servers.memory import StoreMemory
from supervisor.store import Store, open_store, records
from supervisor.store.records import (
    LAUNCH_KEPT_S,
    MAX_DEFINITION_BYTES,
    MAX_REPLACED,
    MAX_REPLACED_BYTES,
    SavedEra,
    SavedServer,
)

NOW = 1_000_000.0


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


async def test_launches_of_some_people_are_recalled_together_and_kept_as_long_as_they_are_used(path: Path) -> None:
    now = NOW
    async with open_store(path, clock=lambda: now) as store:
        for name in ("forge", "forge~old", "gone~x"):
            store.servers.put(SavedServer(name, "d1", encode_offer(Offer())))
        now += LAUNCH_KEPT_S / 2
        store.servers.put(SavedServer("forge~new", "d2", b"not readable"))
        store.servers.put(SavedServer("forge~newest", "d3", encode_offer(Offer(instructions="hello"))))
        store.eras.put(SavedEra("d3", "modern"))
    async with open_store(path, clock=lambda: now) as store:
        remembered = StoreMemory(store, lambda: {"forge": "d1"}, lambda: ("forge",))
        assert (await remembered.load(now))[0].keys() == {"forge"}
        offers = await remembered.recall_offers(["forge~newest", "forge~new", "forge~old", "forge~none"])
        assert {name: offer.instructions for name, offer in offers.items()} == {
            "forge~newest": "hello",
            "forge~old": "",
        }
        assert (await remembered.recall_era("d3"), await remembered.recall_era("d4")) == ("modern", None)
    now += LAUNCH_KEPT_S * 0.6
    async with open_store(path, clock=lambda: now) as store:
        await StoreMemory(store, lambda: {"forge": "d1"}, lambda: ("forge",)).load(now)
        await store.keep()
        assert (await store.servers.load_launches(["forge~old", "gone~x", "forge~newest"])).keys() == {"forge~newest"}


async def test_it_is_told_which_servers_are_read_again_as_they_start_another_way(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with open_store(path) as store:
        for name in ("changed", "same"):
            store.servers.put(SavedServer(name, "before", encode_offer(Offer())))
    async with open_store(path) as store:
        remembered = StoreMemory(store, lambda: {"changed": "now", "same": "before"}, lambda: ("changed", "same"))
        offers, _ = await remembered.load(NOW)
    assert offers.keys() == {"same"}
    assert [record.getMessage() for record in caplog.records if "read again" in record.getMessage()] == [
        "started another way than when they were read, so they are read again: changed"
    ]
