"""Values that are given at one node of a fleet hold at all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from supervisor.identity.tokens import NotKept
from supervisor.store import SavedValue
from supervisor.values import table as module
from supervisor.values.table import SharedValues
from tests.fakes.rows import MemoryRows
from tests.fleet.memory_engine import MemoryEngine
from tests.fleet.sharing import Sharing, running
from tests.supervisor.values.test_table import BENS, Scene

OTHERS = ("user", "cem", "github", "TOKEN")


class Node(Scene):
    """A table at a node of a fleet, which has a key of its own for its disk."""

    def __init__(self, engine: MemoryEngine, name: bytes, disk: MemoryRows[SavedValue] | None = None) -> None:
        super().__init__(disk, key=name * 32)
        self.sharing = Sharing(engine)
        self.shared = SharedValues(self.sharing.records, self.table)

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        await self.opened()
        async with running(self.sharing), trio.open_nursery() as nursery:
            nursery.start_soon(self.shared.run)
            await wait_all_tasks_blocked()
            yield
            nursery.cancel_scope.cancel()


async def test_a_value_holds_at_every_node_until_it_is_taken_back_at_any(autojump_clock: MockClock) -> None:
    engine = MemoryEngine(600.0)
    a, b = Node(engine, b"a"), Node(engine, b"b")
    async with a.run(), b.run():
        await a.give("ben", *BENS)
        await wait_all_tasks_blocked()
        assert b.env("ben")["TOKEN"] == "hunter22"
        assert not any(b"hunter22" in value for value in (await engine.records()).values())
        await b.give("ben", *BENS, value="hunter33")
        await wait_all_tasks_blocked()
        assert a.env("ben")["TOKEN"] == "hunter33"
        again = await Scene(a.disk, key=b"a" * 32).opened()  # it is kept there, too
        assert again.env("ben")["TOKEN"] == "hunter33"
        await b.forget("ben", *BENS)
        await wait_all_tasks_blocked()
        assert a.env("ben")["TOKEN"] == ""
        assert a.disk.kept == {}


async def test_what_a_node_had_kept_the_others_get_and_it_hears_what_it_missed(autojump_clock: MockClock) -> None:
    engine = MemoryEngine(600.0)
    a, b = Node(engine, b"a"), Node(engine, b"b")
    async with a.run(), b.run():
        await a.give("ben", *BENS)
        await wait_all_tasks_blocked()
    c = Node(engine, b"b", b.disk)
    async with a.run():
        await a.forget("ben", *BENS)
        alone = await Scene(key=b"c" * 32).opened()
        await alone.give("cem", *OTHERS)
        d = Node(engine, b"c", alone.disk)
        async with c.run(), d.run():
            await wait_all_tasks_blocked()
            for node in (a, c, d):
                assert node.env("ben")["TOKEN"] == ""
                assert node.env("cem")["TOKEN"] == "hunter22"


async def test_what_is_not_kept_at_one_node_no_other_one_hears_of(autojump_clock: MockClock) -> None:
    engine = MemoryEngine(600.0)
    a, b = Node(engine, b"a"), Node(engine, b"b")
    async with a.run(), b.run():
        a.disk.works = False
        with pytest.raises(NotKept):
            await a.give("ben", *BENS)
        await wait_all_tasks_blocked()
        assert await engine.records() == {}
        assert b.env("ben")["TOKEN"] == ""


async def test_a_node_takes_no_more_than_it_keeps(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    engine = MemoryEngine(600.0)
    a, b = Node(engine, b"a"), Node(engine, b"b")
    async with a.run():
        await a.give("ben", *BENS)
        await a.give("cem", *OTHERS)
        monkeypatch.setattr(module, "_MAX_VALUES", 1)
        async with b.run():
            assert sorted([b.env("ben")["TOKEN"], b.env("cem")["TOKEN"]]) == ["", "hunter22"]
    assert "a value of github from another node is not taken" in caplog.text
