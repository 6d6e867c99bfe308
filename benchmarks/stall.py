"""How long the loop stands still while 10,000 tools are indexed, re-indexed and counted. Used by `search_speed`.

A ticker sleeps a millisecond again and again and notes how much too late it wakes. The registry, the store and the
tokenizer are the real ones. The idle phase before says what the machine itself is good for.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import trio
from msgspec.structs import replace

from actors.catalogue.lists import tool as checked
from actors.catalogue.offer import Offer
from actors.messages import ServerListed
from actors.registry.actor import Registry
from benchmarks.honest import honest
from benchmarks.search import Tool
from supervisor.host.pauses import SWITCH_INTERVAL_S
from supervisor.servers.memory import StoreMemory
from supervisor.store import Store, open_store
from supervisor.tokens.counting import TokenCounter

TICK_S = 0.001
LIMIT_S = 120.0
"""No phase may take longer."""
PER_SERVER = 50
STORM = 40
"""Servers that list something else, all at once."""


class Ticker:
    """Notes by phase by how much the loop was late, in ms."""

    def __init__(self) -> None:
        self.late_ms: dict[str, list[float]] = defaultdict(list)
        self._phase = "idle"

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count what happens inside for `name`."""
        self._phase = name
        try:
            yield
        finally:
            self._phase = "between"

    async def run(self) -> None:
        """Tick for ever."""
        while True:
            begun = time.perf_counter()
            await trio.sleep(TICK_S)
            self.late_ms[self._phase].append((time.perf_counter() - begun - TICK_S) * 1000)


def offers_of(tools: Sequence[Tool], per_server: int = PER_SERVER) -> dict[str, Offer]:
    """Return the tools as offers of servers with so many each."""
    made: dict[str, Offer] = {}
    for number in range(0, len(tools), per_server):
        listed = [_raw(tool) for tool in tools[number : number + per_server]]
        made[f"server{number // per_server:04}"] = Offer(tools=tuple(checked(raw) for raw in listed))
    return made


def _raw(tool: Tool, more: str = "") -> msgspec.Raw:
    declared = {"name": tool.name, "description": f"{tool.description}{more}", "inputSchema": tool.input_schema}
    return msgspec.Raw(msgspec.json.encode(declared))


def changed(offer: Offer, turn: int) -> Offer:
    """Return an offer whose tools all say something else."""
    raws = [msgspec.json.decode(bytes(tool.definition)) for tool in offer.tools]
    texts = [{**raw, "description": f"{raw['description']} Changed for the time number {turn}."} for raw in raws]
    return replace(
        offer, tools=tuple(checked(msgspec.Raw(msgspec.json.encode(text))) for text in texts), token_counts={}
    )


def run(count: int, per_server: int = PER_SERVER) -> dict[str, list[float]]:
    """Return by phase how late the loop was, in ms, with so many tools."""
    offers = offers_of(honest(tools=count), per_server)
    gc.collect()  # what made the tools is no part of a daemon
    with tempfile.TemporaryDirectory(prefix="stall-") as directory:
        return trio.run(_measured, offers, Path(directory))


async def _measured(offers: Mapping[str, Offer], directory: Path) -> dict[str, list[float]]:
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    ticker = Ticker()
    storms = [{name: changed(offers[name], turn) for name in sorted(offers)[:STORM]} for turn in range(3)]
    async with open_store(directory / "state.db") as store, trio.open_nursery() as nursery:
        nursery.start_soon(ticker.run)
        with ticker.phase("idle"):
            await trio.sleep(1.0)
        await _phases(ticker, store, offers, storms, directory)
        nursery.cancel_scope.cancel()
    return {phase: late for phase, late in ticker.late_ms.items() if phase != "between"}


async def _phases(
    ticker: Ticker, store: Store, offers: Mapping[str, Offer], storms: Sequence[Mapping[str, Offer]], directory: Path
) -> None:
    memory = StoreMemory(store, lambda: dict.fromkeys(offers, "digest"), lambda: offers)
    counter = TokenCounter(directory, 30.0)
    ready = trio.Event()  # the vocabulary is loaded in a phase of its own

    async def count(offer: Offer) -> tuple[dict[str, int], bool]:
        await ready.wait()
        return await counter.count(offer)

    registry = Registry({name: ("stdio", offer) for name, offer in offers.items()}, memory, count, time.time)
    async with trio.open_nursery() as nursery:
        with ticker.phase("index at boot"):
            gc.freeze()
            await nursery.start(registry.run)
            await _until(registry, lambda: registry.catalogue.value.indexed)
        gc.freeze()
        with ticker.phase("vocabulary of tiktoken loaded"):
            await counter.count(Offer())
        with ticker.phase("count at boot"):
            ready.set()
            await _until(registry, lambda: _all_counted(registry, offers))
        with ticker.phase("storm of changes"):
            for storm in storms:
                for server, offer in storm.items():
                    await registry.address.tell(ServerListed(server=server, incarnation=1, offer=offer))
                await _until(registry, lambda storm=storm: _all_counted(registry, storm))
        nursery.cancel_scope.cancel()


async def _until(registry: Registry, condition: object) -> None:
    assert callable(condition)
    with trio.fail_after(LIMIT_S):
        while not condition():
            await registry.catalogue.wait_newer(registry.catalogue.version)


def _all_counted(registry: Registry, offers: Mapping[str, Offer]) -> bool:
    """Say whether these very offers are in the catalogue, with their tokens."""
    entries = registry.catalogue.value.entries
    return all(
        name in entries and entries[name].offer.tools is offer.tools and bool(entries[name].offer.token_counts)
        for name, offer in offers.items()
    )
