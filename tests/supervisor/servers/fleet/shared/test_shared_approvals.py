"""What is approved at one node of a fleet is approved at all, and a first sight counts only where there was none."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from actors.catalogue.marks import digest
from actors.catalogue.offer import Offer
from actors.registry.actor import Registry
from supervisor.servers import approvals
from supervisor.servers.approvals import Approvals
from supervisor.servers.fleet.shared import SharedApprovals
from supervisor.store import open_store
from tests.actors.registry.test_pinning import NEW, OLD
from tests.fakes.published import Nothing, uncounted
from tests.fleet.memory_engine import MemoryEngine
from tests.fleet.sharing import Sharing, running

TEST_S = 30.0


class Node:
    """One node, whose server `s` lists an offer as the registry has it."""

    def __init__(self, approvals: Approvals, registry: Registry) -> None:
        self.approvals = approvals
        self.registry = registry

    async def until_seen(self, *tools: str) -> None:
        catalogue = self.registry.catalogue
        with trio.fail_after(TEST_S):
            while not catalogue.value.indexed or {*catalogue.value.entries["s"].tools} != {*tools}:
                await catalogue.wait_newer(catalogue.version)

    async def until_held(self, why: str) -> None:
        catalogue = self.registry.catalogue
        with trio.fail_after(TEST_S):
            while catalogue.value.entries["s"].held != {"a": why}:
                await catalogue.wait_newer(catalogue.version)


@asynccontextmanager
async def node(engine: MemoryEngine, path: Path, offer: Offer, *, joins: bool = True) -> AsyncIterator[Node]:
    sharing = Sharing(engine)
    async with open_store(path) as store, trio.open_nursery() as nursery:
        approvals = Approvals(store, lambda server: "strict", is_shared=True)
        await approvals.read(["s"])
        assert not approvals.pinning.is_read
        registry = Registry({"s": ("stdio", offer)}, Nothing(), uncounted, lambda: 0.0, pinning=approvals.pinning)
        await nursery.start(registry.run)
        nursery.start_soon(approvals.read_later, registry.address)
        nursery.start_soon(SharedApprovals(sharing.records, approvals).run)
        if joins:
            async with running(sharing):
                yield Node(approvals, registry)
        else:
            yield Node(approvals, registry)
        nursery.cancel_scope.cancel()


async def test_a_yes_at_one_node_is_one_at_all_and_is_kept_there(tmp_path: Path) -> None:
    engine = MemoryEngine(600.0)
    async with node(engine, tmp_path / "a", Offer(tools=(OLD,))) as a:
        await a.until_seen("a")
    async with (
        node(engine, tmp_path / "a", Offer(tools=(NEW,))) as a,
        node(engine, tmp_path / "b", Offer(tools=(NEW,))) as b,
    ):
        for each in (a, b):
            await each.until_held("changed")
        await b.approvals.approve("s", {"a": digest(NEW)})
        for each in (a, b):
            await each.until_seen("a")
    async with open_store(tmp_path / "a") as store:
        approvals = Approvals(store, lambda server: "strict")
        await approvals.read(["s"])
        assert approvals.pinning.has("s", "a", digest(NEW))


async def test_a_first_sight_by_a_new_node_approves_nothing_that_waits_elsewhere(tmp_path: Path) -> None:
    engine = MemoryEngine(600.0)
    async with node(engine, tmp_path / "a", Offer(tools=(OLD,))) as a:
        await a.until_seen("a")
        async with node(engine, tmp_path / "b", Offer(tools=(NEW,))) as b:
            await b.until_held("changed")
            await a.until_seen("a")


async def test_what_a_node_had_kept_goes_over_the_first_sight_of_one_that_is_new_to_an_empty_engine(
    tmp_path: Path,
) -> None:
    async with node(MemoryEngine(600.0), tmp_path / "a", Offer(tools=(OLD,))) as a:
        await a.until_seen("a")
    engine = MemoryEngine(600.0)
    async with node(engine, tmp_path / "a", Offer(tools=(OLD,))) as a:
        await a.until_seen("a")
        async with node(engine, tmp_path / "b", Offer(tools=(NEW,))) as b:
            await b.until_held("changed")
            await a.until_seen("a")


async def test_without_the_others_a_node_goes_by_what_it_knows_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approvals, "SHARED_S", 0.1)
    async with node(MemoryEngine(600.0), tmp_path / "a", Offer(tools=(OLD,)), joins=False) as a:
        await a.until_held("unread")
        await a.until_seen("a")
