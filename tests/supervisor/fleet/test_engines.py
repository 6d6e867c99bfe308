"""What every engine of a fleet does alike: one in memory, and a real Valkey or Redis server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, cast

import coredis
import pytest
import trio
from trio.testing import MockClock

from actors.kit.fairness.share import LinePace
from supervisor.fleet.engine import (
    KEPT_S,
    Engine,
    EngineAway,
    EngineSettling,
    Entry,
    FeedLost,
    LaunchGrant,
    LeaseEnded,
    NameTaken,
    Node,
    NodeGone,
    NodeSeen,
    OfferPublished,
    RecordPut,
)
from supervisor.fleet.valkey_engine import ANSWER_S, ValkeyEngine, open_valkey
from tests.fleet.forgetful import KEYS, ForgetfulEngine
from tests.fleet.valkey import ValkeyServer, valkey

LEASE_S = 600.0
A = Node(name="a", incarnation="a/1", place="disk of a", address="https://10.0.0.1:3001")
B = Node(name="b", incarnation="b/1", place="disk of b")


class Rig(Protocol):
    """An engine, and what makes time pass for it."""

    @property
    def engine(self) -> Engine: ...

    async def end_lease(self, incarnation: str) -> None: ...

    async def settle(self) -> None: ...

    async def restart(self) -> None: ...

    async def cut_feed(self) -> None: ...

    async def lose(self, *keys: str) -> None: ...

    async def age_claims(self) -> None: ...


class MemoryRig:
    def __init__(self) -> None:
        self.engine = ForgetfulEngine(LEASE_S)

    async def end_lease(self, incarnation: str) -> None:
        self.engine._ends = {incarnation: -1.0} | {
            each: ends for each, ends in self.engine._ends.items() if each != incarnation
        }

    async def settle(self) -> None:
        self.engine._grants_from = -1.0

    async def restart(self) -> None:
        self.engine = ForgetfulEngine(LEASE_S, settles=True)

    async def cut_feed(self) -> None:
        del self.engine._feed[:-1]

    async def lose(self, *keys: str) -> None:
        self.engine.lose(*keys)

    async def age_claims(self) -> None:
        self.engine._claims = {launch: at - KEPT_S for launch, at in self.engine._claims.items()}


class ValkeyRig:
    def __init__(self, server: ValkeyServer, engine: Engine, client: coredis.Redis[bytes]) -> None:
        self.engine: Engine = engine
        self._server, self._client = server, client

    async def end_lease(self, incarnation: str) -> None:
        await self._client.zadd("test:{fleet}:leases", {incarnation: 1.0})

    async def settle(self) -> None:
        await self._client.hset("test:{fleet}:state", {"opens": "0"})

    async def restart(self) -> None:
        self._server.kill()
        self._server.start()

    async def cut_feed(self) -> None:
        await self._client.xtrim("test:{fleet}:feed", trim_strategy=coredis.PureToken.MAXLEN, threshold=1)

    async def lose(self, *keys: str) -> None:
        await self._client.delete([f"test:{{fleet}}:{key}" for key in keys])

    async def age_claims(self) -> None:
        key = "test:{fleet}:claims"
        for launch in await self._client.zrange(key, 0, -1):
            await self._client.zincrby(key, launch, -1000 * int(KEPT_S))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyServer]:
    """One for all tests of this file: each begins with an empty one."""
    with valkey(tmp_path_factory.mktemp("engine")) as server:
        yield server


@asynccontextmanager
async def rigged(server: ValkeyServer | None) -> AsyncIterator[Rig]:
    if server is None:
        yield MemoryRig()
        return
    async with coredis.Redis.from_url(server.url) as client:
        await client.flushall()
        async with open_valkey(server.url, "test:", LEASE_S) as engine:
            yield ValkeyRig(server, engine, client)


@pytest.fixture(params=["memory", pytest.param("valkey", marks=pytest.mark.process)])
def its_server(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue("server") if request.param == "valkey" else None


@pytest.fixture
async def rig(its_server: ValkeyServer | None) -> AsyncIterator[Rig]:
    async with rigged(its_server) as rig:
        yield rig


async def joined(rig: Rig, *nodes: Node) -> None:
    """Have nodes be members of a fleet whose engine grants."""
    for node in nodes:
        await rig.engine.join(node, None)
    await rig.settle()


async def read(rig: Rig, position: int) -> list[Entry]:
    return [entry for _, entry in (await rig.engine.read(position, 0.01)).entries]


async def test_who_joins_knows_all_members(rig: Rig) -> None:
    first = await rig.engine.join(A, None)
    second = await rig.engine.join(B, None)
    assert first.nodes == (A,)
    assert sorted(second.nodes, key=lambda node: node.name) == [A, B]
    assert await read(rig, first.position) == [NodeSeen(B)]


async def test_a_name_is_one_daemon_s_as_long_as_its_lease_runs(rig: Rig) -> None:
    await rig.engine.join(A, None)
    other = Node(name="a", incarnation="a/2", place="another disk")
    with pytest.raises(NameTaken, match="give this one another name"):
        await rig.engine.join(other, None)
    await rig.end_lease("a/1")
    assert (await rig.engine.join(other, None)).nodes == (other,)


async def test_a_daemon_that_was_started_again_takes_the_place_of_its_earlier_life(rig: Rig) -> None:
    await joined(rig, A)
    await rig.engine.claim("l", "a/1")
    later = Node(name="a", incarnation="a/2", place="disk of a")
    assert (await rig.engine.join(later, None)).nodes == (later,)
    assert await rig.engine.find("l") is None
    with pytest.raises(LeaseEnded):
        await rig.engine.renew("a/1")


async def test_a_launch_has_one_owner(rig: Rig) -> None:
    await joined(rig, A, B)
    assert await rig.engine.find("l") is None
    place = await rig.engine.claim("l", "a/1")
    assert place.node == A
    assert await rig.engine.claim("l", "b/1") == place
    assert await rig.engine.find("l") == place
    assert (await rig.engine.claim("m", "b/1")).node == B


async def test_who_is_no_member_claims_nothing(rig: Rig) -> None:
    await joined(rig, A)
    with pytest.raises(LeaseEnded):
        await rig.engine.claim("l", "b/1")
    await rig.end_lease("a/1")
    with pytest.raises(LeaseEnded):
        await rig.engine.claim("l", "a/1")
    with pytest.raises(LeaseEnded):
        await rig.engine.renew("a/1")


async def test_fences_only_grow(rig: Rig) -> None:
    await joined(rig, A, B)
    fences = [(await rig.engine.claim("l", "a/1")).fence, (await rig.engine.claim("m", "b/1")).fence]
    await rig.end_lease("a/1")
    fences.append((await rig.engine.claim("l", "b/1")).fence)
    fences.append((await rig.engine.claim("l", "b/1")).fence)
    assert fences == sorted(set(fences))


async def test_a_release_of_an_earlier_grant_ends_nothing(rig: Rig) -> None:
    await joined(rig, A)
    before = await rig.engine.claim("l", "a/1")
    now = await rig.engine.claim("l", "a/1")
    await rig.engine.release([LaunchGrant(launch="l", incarnation="a/1", fence=before.fence)])
    assert await rig.engine.find("l") == now
    await rig.engine.release([LaunchGrant(launch="l", incarnation="a/1", fence=now.fence)])
    assert await rig.engine.find("l") is None


async def test_a_lease_that_ends_frees_what_it_held_and_is_told(rig: Rig) -> None:
    await joined(rig, A, B)
    await rig.engine.claim("l", "a/1")
    position = await rig.engine.renew("b/1")
    await rig.end_lease("a/1")
    assert await rig.engine.find("l") is None
    assert (await rig.engine.claim("l", "b/1")).node == B
    assert await read(rig, position) == [NodeGone("a/1")]


async def test_who_leaves_is_gone_at_once(rig: Rig) -> None:
    await joined(rig, A, B)
    await rig.engine.claim("l", "a/1")
    position = await rig.engine.renew("b/1")
    await rig.engine.leave("a/1")
    await rig.engine.leave("a/1")
    assert (await rig.engine.claim("l", "b/1")).node == B
    assert await read(rig, position) == [NodeGone("a/1")]


async def test_a_member_says_something_else_of_itself(rig: Rig) -> None:
    await joined(rig, A)
    draining = Node(name="a", incarnation="a/1", place="disk of a", weight=0)
    position = await rig.engine.renew("a/1")
    assert await rig.engine.renew("a/1", draining) == position + 1
    assert await read(rig, position) == [NodeSeen(draining)]
    assert (await rig.engine.claim("l", "a/1")).node == draining


async def test_an_engine_that_forgot_everything_grants_nothing_new_for_the_length_of_a_lease(rig: Rig) -> None:
    await joined(rig, A)
    held = await rig.engine.claim("l", "a/1")
    await rig.restart()
    with pytest.raises(LeaseEnded):
        await rig.engine.renew("a/1")
    await rig.engine.join(B, None)
    with pytest.raises(EngineSettling) as settling:
        await rig.engine.claim("l", "b/1")
    assert 0 < (settling.value.retry_after_s or 0) <= LEASE_S
    assert "has begun anew" in settling.value.message
    assert (await rig.engine.join(A, {"l": held.fence, "m": 5})).kept == {"l", "m"}
    assert await rig.engine.claim("l", "b/1") == held
    assert (await rig.engine.claim("l", "a/1")).fence > held.fence
    await rig.settle()
    assert (await rig.engine.claim("n", "b/1")).node == B


async def held_by_now(rig: Rig, node: Node) -> Node | None:
    """Have a node want the launch `l`, as a member, and return who has it; None for nobody yet."""
    try:
        try:
            return (await rig.engine.claim("l", node.incarnation)).node
        except LeaseEnded:
            await rig.engine.join(node, {})
            return (await rig.engine.claim("l", node.incarnation)).node
    except EngineSettling:
        return None


LOSSES = [(key,) for key in KEYS] + [("leases", "nodes"), ("leases", "nodes", "names"), ("owners", "state"), KEYS]


@pytest.mark.parametrize("keys", LOSSES, ids="+".join)
async def test_an_engine_that_loses_a_part_of_what_it_knew_or_all_gives_nobody_what_another_one_runs(
    rig: Rig, keys: tuple[str, ...]
) -> None:
    await joined(rig, A, B)
    held = await rig.engine.claim("l", "a/1")
    position = await rig.engine.renew("a/1")
    await rig.lose(*keys)
    await rig.engine.put("k", b"v")  # what is written since does not hide what is gone
    assert await held_by_now(rig, B) in (None, A)
    with suppress(LeaseEnded):
        await rig.engine.renew("a/1")
        assert await held_by_now(rig, B) == A
    joined_again = await rig.engine.join(A, {"l": held.fence})
    assert joined_again.kept == {"l"}
    assert joined_again.position > position
    assert await held_by_now(rig, B) == A
    await rig.settle()
    assert (await rig.engine.claim("l", "a/1")).fence > held.fence
    assert sorted(node.name for node in joined_again.nodes) in (["a"], ["a", "b"])


@pytest.mark.parametrize("keys", [("feed",), ("records",), ("over",), KEYS], ids="+".join)
async def test_whoever_reads_the_feed_hears_that_something_was_lost(rig: Rig, keys: tuple[str, ...]) -> None:
    await joined(rig, A)
    await rig.engine.put("k", b"1")
    await rig.engine.end_sessions({"d": 600.0})
    position = (await rig.engine.join(A, None)).position
    await rig.lose(*keys)
    with pytest.raises(LeaseEnded):
        await rig.engine.renew("a/1")
    with pytest.raises(FeedLost):
        await rig.engine.read(position, 1.0)


async def test_what_another_one_owns_by_now_is_not_kept(rig: Rig) -> None:
    await joined(rig, A, B)
    await rig.engine.claim("l", "b/1")
    assert (await rig.engine.join(A, {"l": 1})).kept == frozenset()


async def test_what_a_launch_offers_is_kept_once_and_told(rig: Rig) -> None:
    await joined(rig, A, B)
    grant = LaunchGrant(launch="l", incarnation="a/1", fence=(await rig.engine.claim("l", "a/1")).fence)
    same = LaunchGrant(launch="m", incarnation="a/1", fence=(await rig.engine.claim("m", "a/1")).fence)
    position = await rig.engine.renew("a/1")
    assert await rig.engine.publish(grant, "d1", b"\x00what it offers")
    assert await rig.engine.publish(same, "d1", b"\x00what it offers")
    assert await rig.engine.publish(grant, "d1", b"\x00what it offers")
    assert await read(rig, position) == [OfferPublished("l", "d1", grant.fence), OfferPublished("m", "d1", same.fence)]
    assert await rig.engine.publish(grant, "d2", b"other")
    offers = await rig.engine.offers()
    assert (offers.position, dict(offers.digests)) == (position + 3, {"l": "d2", "m": "d1"})
    texts = {"d1": b"\x00what it offers", "d2": b"other"}
    assert await rig.engine.read_offers(["d1", "d2", "d3"]) == texts
    assert await rig.engine.publish(same, "d2", b"other")
    assert await rig.engine.read_offers(["d1", "d2"]) == {"d2": b"other"}


async def test_an_owner_of_before_publishes_nothing(rig: Rig) -> None:
    await joined(rig, A, B)
    before = LaunchGrant(launch="l", incarnation="a/1", fence=(await rig.engine.claim("l", "a/1")).fence)
    await rig.end_lease("a/1")
    now = LaunchGrant(launch="l", incarnation="b/1", fence=(await rig.engine.claim("l", "b/1")).fence)
    assert await rig.engine.publish(now, "d2", b"new")
    assert not await rig.engine.publish(before, "d1", b"old")
    assert dict((await rig.engine.offers()).digests) == {"l": "d2"}


async def test_launches_that_nobody_had_for_long_are_forgotten_with_what_they_offer(rig: Rig) -> None:
    await joined(rig, A, B)
    grants = {}
    for launch, incarnation in (("left", "a/1"), ("freed", "b/1"), ("owned", "b/1"), ("given", "b/1")):
        fence = (await rig.engine.claim(launch, incarnation)).fence
        grants[launch] = LaunchGrant(launch=launch, incarnation=incarnation, fence=fence)
        text = "shared" if launch in ("left", "owned") else launch
        assert await rig.engine.publish(grants[launch], text, text.encode())
    await rig.engine.release([grants["freed"]])
    await rig.end_lease("a/1")
    await rig.age_claims()
    await rig.engine.claim("given", "b/1")
    assert dict((await rig.engine.offers()).digests) == {"owned": "shared", "given": "given"}
    assert await rig.engine.read_offers(["shared", "freed", "given"]) == {"shared": b"shared", "given": b"given"}
    assert [await rig.engine.find(launch) is None for launch in grants] == [True, True, False, False]
    assert (await rig.engine.claim("left", "b/1")).node == B
    assert await rig.engine.publish(grants["owned"], "other", b"other")
    assert await rig.engine.read_offers(["shared"]) == {}


async def test_sessions_that_are_over_are_known_as_such_as_long_as_their_ids_would_be_good(rig: Rig) -> None:
    assert not await rig.engine.has_ended("d1")
    await rig.engine.end_sessions({"d1": 600.0, "d2": 0.0})
    assert await rig.engine.has_ended("d1")
    await trio.sleep(0.01)
    await rig.engine.end_sessions({"d3": 600.0})
    assert [await rig.engine.has_ended(each) for each in ("d1", "d2", "d3", "d4")] == [True, False, True, False]


async def test_the_newest_record_of_a_key_is_kept_and_each_is_in_the_feed(rig: Rig) -> None:
    position = (await rig.engine.join(A, None)).position
    records = {f"k{number}": bytes(range(256)) + str(number).encode() for number in range(30)}
    for key, value in [("k0", b"before"), *records.items()]:
        await rig.engine.put(key, value)
    assert dict(await rig.engine.records()) == records
    read = [entry for _, entry in (await rig.engine.read(position, 0.01)).entries]
    assert read == [RecordPut("k0", b"before"), *(RecordPut(*each) for each in records.items())]


async def test_the_feed_has_one_order_and_no_gaps(rig: Rig) -> None:
    position = (await rig.engine.join(A, None)).position
    entries = [RecordPut("k", b"1"), RecordPut("l", b"2"), RecordPut("k", b"3")]
    for entry in entries:
        await rig.engine.put(entry.key, entry.value)
    page = await rig.engine.read(position, 0.01)
    assert page.entries == tuple(enumerate(entries, position + 1))
    assert page.position == position + 3
    assert (await rig.engine.read(page.position, 0.01)).entries == ()


async def test_who_reads_the_feed_waits_for_the_next_entry(rig: Rig) -> None:
    position = (await rig.engine.join(A, None)).position
    read: list[Entry] = []

    async def wait() -> None:
        read.extend(entry for _, entry in (await rig.engine.read(position, 60.0)).entries)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        await rig.engine.put("k", b"v")
    assert read == [RecordPut("k", b"v")]


async def test_a_reading_that_nobody_waits_for_costs_no_other_one_anything(rig: Rig) -> None:
    position = (await rig.engine.join(A, None)).position
    async with trio.open_nursery() as nursery:
        nursery.start_soon(rig.engine.read, position, 60.0)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    await rig.engine.put("k", b"v")
    assert await read(rig, position) == [RecordPut("k", b"v")]


async def test_who_is_too_far_behind_is_told_so(rig: Rig) -> None:
    position = (await rig.engine.join(A, None)).position
    await rig.engine.put("k", b"1")
    await rig.engine.put("k", b"2")
    await rig.engine.put("k", b"3")
    await rig.cut_feed()
    with pytest.raises(FeedLost):
        await rig.engine.read(position, 0.01)
    assert await read(rig, position + 2) == [RecordPut("k", b"3")]


@pytest.mark.process
async def test_a_server_that_is_away_is_said_to_be_away(tmp_path: Path) -> None:
    with valkey(tmp_path) as server:
        async with open_valkey(server.url, "test:", LEASE_S) as engine:
            await engine.join(A, None)
            server.kill()
            with pytest.raises(EngineAway, match="does not answer"):
                await engine.renew("a/1")
            server.start()
            with pytest.raises(LeaseEnded):
                await engine.renew("a/1")


@pytest.mark.process
async def test_a_server_that_kept_everything_grants_nothing_new_at_first_either(tmp_path: Path) -> None:
    with valkey(tmp_path, keeps=True) as server:
        async with open_valkey(server.url, "test:", LEASE_S) as engine:
            async with coredis.Redis.from_url(server.url) as client:
                rig = ValkeyRig(server, engine, client)
                await joined(rig, A, B)
            held = await engine.claim("l", "a/1")
            await rig.restart()
            assert await held_by_now(rig, B) is None, "what was granted last may not be on the disk"
            assert (await engine.join(A, {"l": held.fence})).kept == {"l"}
            assert await held_by_now(rig, B) == A


@pytest.mark.process
async def test_a_server_that_is_full_is_said_to_be_full_and_not_to_be_silent(tmp_path: Path) -> None:
    with valkey(tmp_path) as server:
        async with open_valkey(server.url, "test:", LEASE_S) as engine, coredis.Redis.from_url(server.url) as client:
            await joined(ValkeyRig(server, engine, client), A)
            await client.config_set({"maxmemory": "1"})
            with pytest.raises(EngineAway, match=r"its memory is full \(OOM\)") as full:
                await engine.claim("l", "a/1")
            assert "does not answer" not in full.value.message
            await client.config_set({"maxmemory": "0"})
            assert (await engine.claim("l", "a/1")).node == A


@pytest.mark.process
async def test_after_flushall_nobody_is_given_what_another_one_runs_however_long_the_server_was_up(
    tmp_path: Path,
) -> None:
    lease_s = 2.0
    with valkey(tmp_path) as server:
        async with open_valkey(server.url, "test:", lease_s) as engine, coredis.Redis.from_url(server.url) as client:
            rig = ValkeyRig(server, engine, client)
            await trio.sleep(lease_s + 1.0)  # its uptime is in whole seconds, and longer than a lease
            await joined(rig, A, B)
            held = await engine.claim("l", "a/1")
            await client.flushall()
            assert await held_by_now(rig, B) is None
            assert (await engine.join(A, {"l": held.fence})).kept == {"l"}
            assert await held_by_now(rig, B) == A


@pytest.mark.process
async def test_what_another_version_or_a_stranger_has_written_is_no_bug_of_ours(tmp_path: Path) -> None:
    with valkey(tmp_path) as server:
        async with open_valkey(server.url, "test:", LEASE_S) as engine, coredis.Redis.from_url(server.url) as client:
            position = (await engine.join(A, None)).position
            strange: list[dict[str, str | bytes]] = [{"entry": '{"type":"news"}'}, {"entry": b"\xff"}, {"other": "x"}]
            for number, fields in enumerate(strange, position + 1):
                await client.xadd("test:{fleet}:feed", fields, identifier=f"{number}-0")
            await client.hset("test:{fleet}:state", {"opens": "0", "position": str(position + 3)})
            await engine.put("k", b"v")
            page = await engine.read(position, 0.01)
            assert (page.position, page.entries) == (position + 4, ((position + 4, RecordPut("k", b"v")),))
            await client.hset("test:{fleet}:records", {b"\xff": b"x"})
            await client.hset("test:{fleet}:offers", {b"\xff": b"\xff"})
            assert len(await engine.records()) == 2
            assert len((await engine.offers()).digests) == 1
            await client.hset("test:{fleet}:nodes", {"a/1": '{"name":"a"}'})
            with pytest.raises(EngineAway, match="does not understand"):
                await engine.claim("l", "a/1")


class EagerClient:
    """A client whose engine answers at once."""

    def register_script(self, text: str) -> Callable[[Sequence[str], Sequence[Any]], Awaitable[list[Any]]]:
        async def answer(keys: Sequence[str], arguments: Sequence[Any]) -> list[Any]:
            await trio.lowlevel.checkpoint()
            return [b"renewed", 1]

        return answer


async def test_an_engine_is_asked_so_often_and_renewals_do_not_wait_for_that(autojump_clock: MockClock) -> None:
    engine = ValkeyEngine(cast("coredis.Redis[bytes]", EagerClient()), "test:", LEASE_S, LinePace(10, 10))
    put, refused, begin = list[float](), list[float](), trio.current_time()

    async def put_one() -> None:
        try:
            await engine.put("k", b"v")
            put.append(trio.current_time() - begin)
        except EngineAway:
            refused.append(trio.current_time() - begin)

    async with trio.open_nursery() as nursery:
        for _ in range(100):
            nursery.start_soon(put_one)
        await trio.sleep(2.05)
        assert len(put) == 31, "ten of one second, one that was due, and twenty of two seconds"
        assert await engine.renew("a/1") == 1
        assert trio.current_time() - begin == pytest.approx(2.05)
    assert put[-1] <= ANSWER_S
    assert len(put) + len(refused) == 100
    assert set(refused) == {ANSWER_S}
    assert 55 <= len(put) <= 61
