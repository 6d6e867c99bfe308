"""Records that all nodes have, over an engine in memory."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from supervisor.fleet.engine import EngineAway
from supervisor.servers.fleet import records
from supervisor.servers.fleet.records import MAX_BYTES
from supervisor.store.records import RECORDS
from tests.fakes.rows import MemoryRows
from tests.fleet.memory_engine import MemoryEngine
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


# What a node remembers while it does not run --------------------------------------------------------------------------


async def test_an_old_record_that_is_brought_back_while_no_node_runs_is_refused_and_put_right(
    autojump_clock: MockClock,
) -> None:
    engine = MemoryEngine(600.0)
    a = Sharing(engine)
    async with running(a):
        a.records.put("pins", "gone", b"old")
        a.records.put("pins", "changed", b"old")
        assert await a.records.flush()
        old = dict(await engine.records())
        a.records.put("pins", "gone", None)
        a.records.put("pins", "changed", b"new")
        assert await a.records.flush()
        newest = dict(await engine.records())
    for key, sealed in old.items():
        await engine.put(key, sealed)
    again, late = Sharing(engine, disk=a.disk), Sharing(engine)
    heard: list[tuple[str, bytes | None]] = []
    late.records.follow("pins", lambda name, payload: heard.append((name, payload)))
    again.records.follow("pins", lambda name, payload: heard.append((name, payload)))
    again.records.know("pins", "changed", b"new")
    async with running(again):
        await trio.sleep(1.0)
        assert {payload for _, payload in heard} <= {None}
        assert (await engine.records()).keys() == newest.keys()
        heard.clear()
        async with running(late):
            await trio.sleep(1.0)
            assert dict(heard) == {"changed": b"new", "gone": None}


async def test_what_a_node_had_seen_and_not_taken_when_it_died_it_takes_at_its_next_start(
    autojump_clock: MockClock,
) -> None:
    engine = MemoryEngine(600.0)
    a = Sharing(engine)
    async with running(a):
        for name, payload in (("gone", None), ("changed", b"new"), ("same", b"same"), ("missing", b"x")):
            a.records.put("token", name, payload)
    again = Sharing(engine, disk=a.disk)
    async with running(again):
        again.heard.clear()
        again.records.know("token", "gone", b"old")
        again.records.know("token", "changed", b"old")
        again.records.know("token", "same", b"same")
        await wait_all_tasks_blocked()
        assert sorted(again.heard) == [("changed", b"new"), ("gone", None)]


async def test_what_a_node_has_seen_is_good_under_the_next_key_of_the_fleet_and_in_no_other_fleet(
    autojump_clock: MockClock,
) -> None:
    a = Sharing(MemoryEngine(600.0))
    async with running(a):
        a.records.put("token", "t1", None)
    copied = MemoryRows(RECORDS)
    copied.kept |= a.disk.kept
    changing = Sharing(MemoryEngine(600.0), OTHER, KEY, disk=copied)
    async with running(changing):
        pass
    for disk, known in ((changing.disk, True), (a.disk, False)):
        later = Sharing(MemoryEngine(600.0), OTHER, disk=disk)
        async with running(later):
            await trio.sleep(1.0)
            assert bool(await later.engine.records()) == known


async def test_of_many_that_are_gone_the_oldest_are_forgotten_and_come_back_all_the_same_not(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "MAX_GONE", 20)
    monkeypatch.setattr(records, "_FORGOTTEN_AT_ONCE", 5)
    engine = MemoryEngine(600.0)
    a = Sharing(engine)
    async with running(a):
        old: dict[str, bytes] = {}
        for number in range(60):
            a.records.put("token", f"t{number}", b"x")
            assert await a.records.flush()
            old |= await engine.records()
            a.records.put("token", f"t{number}", None)
            assert await a.records.flush()
            await trio.sleep(0.01)
        a.records.put("token", "live", b"y")
        assert await a.records.flush()
        assert len(a.disk.kept) < 30
    again = Sharing(MemoryEngine(600.0), disk=a.disk)
    for key, sealed in old.items():
        await again.engine.put(key, sealed)
    async with running(again):
        await trio.sleep(1.0)
        assert [name for name, payload in again.heard if payload is not None] == ["live"]
        again.records.put("token", "new", b"z")
        assert await again.records.flush()
        await wait_all_tasks_blocked()
