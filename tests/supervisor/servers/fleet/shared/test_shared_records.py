"""Records that all nodes have, over an engine in memory."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from supervisor.fleet.errors import EngineAway
from supervisor.fleet.memory_engine import MemoryEngine
from supervisor.servers.fleet.shared.records import MAX_BYTES
from tests.fleet.sharing import KEY, Sharing, running

OTHER = b"o" * 32


class Forgetful(MemoryEngine):
    """An engine that may be away, and may lose everything."""

    away = False

    async def put(self, key: str, value: bytes) -> None:
        if self.away:
            raise EngineAway
        await super().put(key, value)

    def lose(self) -> None:
        self._records.clear()


async def test_what_one_node_puts_all_others_hear_once(autojump_clock: MockClock) -> None:
    engine = Forgetful(600.0)
    a, b = Sharing(engine), Sharing(engine)
    async with running(a, b):
        a.records.put("token", "t1", b"one")
        a.records.put("token", "t1", b"one")
        assert await a.records.flush()
        await wait_all_tasks_blocked()
        a.records.put("token", "t1", None)
        assert await a.records.flush()
        await wait_all_tasks_blocked()
        assert (a.heard, b.heard) == ([], [("t1", b"one"), ("t1", None)])


async def test_who_comes_later_hears_of_everything_and_what_it_has_kept_the_others_get(
    autojump_clock: MockClock,
) -> None:
    engine = Forgetful(600.0)
    a, late = Sharing(engine), Sharing(engine)
    async with running(a):
        a.records.put("token", "gone", b"x")
        a.records.put("token", "gone", None)
        a.records.put("token", "t1", b"one")
        assert await a.records.flush()
        late.records.know("token", "gone", b"x")  # it was away when that was revoked
        late.records.know("token", "own", b"mine")
        async with running(late):
            assert late.heard == [("gone", None), ("t1", b"one")]
            assert a.heard == [("own", b"mine")]


async def test_without_the_engine_it_is_said_and_made_up_for_later(autojump_clock: MockClock) -> None:
    engine = Forgetful(600.0)
    a, b = Sharing(engine), Sharing(engine)
    async with running(a, b):
        engine.away = True
        a.records.put("token", "t1", b"one")
        assert not await a.records.flush()
        assert b.heard == []
        engine.away = False
        await trio.sleep(60.0)
        assert b.heard == [("t1", b"one")]
        assert await a.records.flush()


async def test_an_engine_that_lost_everything_is_told_again_also_of_what_is_gone(autojump_clock: MockClock) -> None:
    engine = Forgetful(600.0)
    a = Sharing(engine)
    async with running(a):
        a.records.put("token", "t1", b"one")
        a.records.put("token", "t2", None)
        assert await a.records.flush()
        engine.lose()
        a.records.want_everything()
        await trio.sleep(1.0)
        b = Sharing(engine)
        b.records.know("token", "t2", b"two")
        async with running(b):
            assert b.heard == [("t1", b"one"), ("t2", None)]


async def test_what_is_not_under_a_seal_of_the_fleet_means_nothing(autojump_clock: MockClock) -> None:
    engine = Forgetful(600.0)
    a, other, both = Sharing(engine), Sharing(engine, OTHER), Sharing(engine, OTHER, KEY)
    async with running(a, other, both):
        a.records.put("token", "t1", b"one")
        assert await a.records.flush()
        await wait_all_tasks_blocked()
        assert (other.heard, both.heard) == ([], [("t1", b"one")])
        sealed = (await engine.records())["token/t1"]
        await engine.put("token/t1", sealed[:-1] + b"!")
        await engine.put("token/t2", sealed)
        await engine.put("token/t3", b"")
        await engine.put("token/t4", bytes(MAX_BYTES + 1))
        await engine.put("token", sealed)
        await wait_all_tasks_blocked()
        assert (a.heard, both.heard) == ([], [("t1", b"one")])


async def test_an_old_record_that_is_brought_back_is_put_right_by_who_knows_the_newer_one(
    autojump_clock: MockClock,
) -> None:
    engine = Forgetful(600.0)
    a, b = Sharing(engine), Sharing(engine)
    async with running(a, b):
        a.records.put("token", "t1", b"one")
        assert await a.records.flush()
        old = (await engine.records())["token/t1"]
        a.records.put("token", "t1", None)
        assert await a.records.flush()
        await engine.put("token/t1", old)
        await trio.sleep(1.0)
        assert b.heard == [("t1", b"one"), ("t1", None)]
        assert (await engine.records())["token/t1"] != old
        late = Sharing(engine)
        async with running(late):
            assert late.heard[-1] == ("t1", None)


async def test_who_reads_the_engine_learns_names_alone_and_what_is_large_stays_where_it_is(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    engine = Forgetful(600.0)
    a, b = Sharing(engine), Sharing(engine)
    async with running(a, b):
        a.records.put("token", "t1", b"canary-secret")
        a.records.put("token", "large", bytes(MAX_BYTES + 1))
        a.records.put("token", "largest", bytes(MAX_BYTES))
        assert await a.records.flush()
        await wait_all_tasks_blocked()
        assert b.heard == [("t1", b"canary-secret"), ("largest", bytes(MAX_BYTES))]
        records = await engine.records()
        assert [*records] == ["token/t1", "token/largest"]
        assert not any(b"canary" in value for value in records.values())
    assert "a record of the kind token stays at this node" in caplog.text


async def test_the_newest_counts_whoever_puts_it_and_whenever_the_engine_hears_of_it(autojump_clock: MockClock) -> None:
    engine = Forgetful(600.0)
    a, b = Sharing(engine, now=1000.0), Sharing(engine, now=2000.0)
    a.records.put("token", "t1", b"old")
    async with running(b):
        b.records.put("token", "t1", b"new")
        assert await b.records.flush()
        async with running(a):
            await trio.sleep(1.0)
            assert (a.heard, b.heard) == ([("t1", b"new")], [])
            a.records.put("token", "t1", b"newer")  # though its clock is behind
            assert await a.records.flush()
            await wait_all_tasks_blocked()
            assert b.heard == [("t1", b"newer")]


async def test_what_a_node_does_not_understand_is_told_and_harms_nothing(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    engine = Forgetful(600.0)
    a, b = Sharing(engine), Sharing(engine)

    def take(name: str, payload: bytes | None) -> None:
        raise ValueError("no token at all")

    b.records.follow("token", take)
    async with running(a, b):
        a.records.put("token", "t1", b"one")
        a.records.put("later", "x", b"two")
        assert await a.records.flush()
        await wait_all_tasks_blocked()
    assert "a token that another node has put is not understood by this version: no token at all" in caplog.text
