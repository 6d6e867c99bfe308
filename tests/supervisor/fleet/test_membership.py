"""Where launches are placed, and who owns them, as one node sees it: with an engine whose answers can be late."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.errors import SupervisorError
from supervisor.fleet.engine import (
    Elsewhere,
    EngineAway,
    Joined,
    LaunchGrant,
    Lease,
    LeaseEnded,
    LeaseTimes,
    Node,
    NodeAway,
    NodeGone,
    NodeSeen,
    Place,
)
from supervisor.fleet.membership import Members, Membership, Ownership, rank, reach, weight_of
from tests.fleet.memory_engine import MemoryEngine
from tests.fleet.sharing import TrioClock

NAMES = st.lists(st.text("abcdefgh-0123456789", min_size=1, max_size=12), min_size=1, max_size=20, unique=True)
GIB = 2**30


def nodes(names: list[str], weight: int = 100) -> list[Node]:
    return [Node(name=name, incarnation=f"{name}/1", weight=weight) for name in names]


@given(NAMES, st.text(max_size=20), st.randoms())
def test_every_node_comes_to_the_same_answer(names: list[str], launch: str, chance: object) -> None:
    ours = nodes(names)
    other = sorted(ours, key=lambda node: hash((node.name, id(chance))))
    assert rank(launch, ours) == rank(launch, other)
    assert len(rank(launch, ours)) == min(3, len(names))


@given(NAMES, st.text(max_size=20))
def test_a_node_that_goes_moves_only_what_it_had(names: list[str], launch: str) -> None:
    ranked = rank(launch, nodes(names), len(names))
    for gone in ranked:
        assert rank(launch, [node for node in ranked if node is not gone]) == [n for n in ranked if n is not gone][:3]


@given(NAMES, st.text(max_size=20))
def test_a_node_without_weight_takes_nothing_new(names: list[str], launch: str) -> None:
    assert rank(launch, nodes(names, weight=0)) == []


def test_shares_are_as_the_weights_are() -> None:
    some = [Node(name=name, incarnation=name, weight=weight) for name, weight in (("a", 100), ("b", 200), ("c", 500))]
    shares = Counter(rank(f"launch {n}", some)[0].name for n in range(8000))
    assert abs(shares["a"] - 1000) < 150
    assert abs(shares["b"] - 2000) < 200
    assert abs(shares["c"] - 5000) < 250


def test_more_free_memory_weighs_more_and_more_calls_weigh_less() -> None:
    assert weight_of(8 * GIB, 0) > weight_of(GIB, 0) > weight_of(GIB, 40) > 0
    assert weight_of(0, 10_000) >= 1
    assert weight_of(8 * GIB, 3) == weight_of(8 * GIB + GIB // 10, 3)


def test_members_are_what_was_there_and_what_the_feed_has_said() -> None:
    members = Members()
    a, b, c = nodes(["a", "b", "c"])
    members.reset([a, b])
    members.take(NodeSeen(c))
    members.take(NodeGone("a/1"))
    members.take(NodeGone("a/1"))
    assert members.all() == [b, c]
    assert members.find("c/1") == c
    assert members.find("a/1") is None


def test_a_launch_is_placed_among_those_that_have_read_the_same_configuration() -> None:
    members = Members()
    members.reset(
        [
            Node(name="a", incarnation="a/1", configuration="old"),
            Node(name="b", incarnation="b/1", configuration="new"),
        ]
    )
    assert {members.place(f"l{n}", "new", 1)[0].name for n in range(50)} == {"b"}
    assert members.place("l", "newest") == []


# What a node owns -----------------------------------------------------------------------------------------------------


TIMES = LeaseTimes(lease_s=15.0, stop_s=3.0)


class SlowEngine(MemoryEngine):
    """One that can be `away`, that holds back its answers to claims, and that does releases late."""

    def __init__(self) -> None:
        super().__init__(TIMES.lease_s)
        self.away = False
        self.answers = trio.Event()
        self.answers.set()
        self.released: list[Sequence[LaunchGrant]] = []
        self.holds_releases = False
        self.asked: list[str] = []

    async def renew(self, incarnation: str, node: Node | None = None) -> int:
        if self.away:
            raise EngineAway
        return await super().renew(incarnation, node)

    async def join(self, node: Node, held: Mapping[str, int] | None) -> Joined:
        if self.away:
            raise EngineAway
        return await super().join(node, held)

    async def claim(self, launch: str, incarnation: str) -> Place:
        self.asked.append(launch)
        place = await super().claim(launch, incarnation)
        await self.answers.wait()
        return place

    async def release(self, grants: Sequence[LaunchGrant]) -> None:
        if not self.holds_releases:
            return await super().release(grants)
        self.released.append(grants)
        raise EngineAway

    def forget_everything(self) -> None:
        self._nodes.clear()
        self._ends.clear()
        self._owners.clear()


class NodeRig:
    """A node: its membership, and what it owns. `ended` are the launches that it ended, each when."""

    def __init__(self, engine: SlowEngine, name: str) -> None:
        self.ended: dict[str, float] = {}
        self._lives = 0
        self.membership = Membership(engine, TIMES, TrioClock(), lambda: Node(name=name, incarnation=""), self._life)
        self.own = Ownership(engine, self.membership, self._end)
        self.name = name

    def _life(self) -> str:
        self._lives += 1
        return f"{self.name}/{self._lives}"

    async def _end(self, launch: str) -> None:
        self.ended[launch] = trio.current_time()
        await trio.lowlevel.checkpoint()


@asynccontextmanager
async def fleet_of(*names: str) -> AsyncIterator[tuple[SlowEngine, dict[str, NodeRig]]]:
    engine = SlowEngine()
    rigs = {name: NodeRig(engine, name) for name in names}
    async with trio.open_nursery() as nursery:
        for rig in rigs.values():
            nursery.start_soon(rig.membership.run, rig.own)
        await wait_all_tasks_blocked()
        yield engine, rigs
        nursery.cancel_scope.cancel()


def placed_at(rigs: Mapping[str, NodeRig], name: str) -> str:
    """Return a launch that is placed on a node."""
    members = next(iter(rigs.values())).membership.members
    return next(f"l{n}" for n in range(1000) if members.place(f"l{n}", "")[0].name == name)


async def test_a_launch_is_owned_where_it_is_placed_and_found_from_everywhere(autojump_clock: MockClock) -> None:
    async with fleet_of("a", "b") as (engine, rigs):
        launch = placed_at(rigs, "b")
        assert await rigs["a"].own.find(launch) == Place(launch, rigs["b"].membership.node, 0)
        ours = await rigs["b"].own.find(launch)
        assert rigs["b"].own.is_here(ours)
        assert rigs["b"].own.fence(launch) == ours.fence > 0
        assert await rigs["a"].own.find(launch) == ours
        engine.away = True  # what is known needs no engine
        assert await rigs["a"].own.find(launch) == ours
        assert await rigs["b"].own.find(launch) == ours
        assert engine.asked == [launch]


async def test_many_who_ask_at_once_are_one_claim(autojump_clock: MockClock) -> None:
    async with fleet_of("a") as (engine, rigs), trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(rigs["a"].own.find, "l")
        await wait_all_tasks_blocked()
        assert engine.asked == ["l"]


async def test_what_is_owned_ends_before_the_lease_does(autojump_clock: MockClock) -> None:
    async with fleet_of("a", "b") as (engine, rigs):
        launch = placed_at(rigs, "a")
        await rigs["a"].own.find(launch)
        engine.away, cut_at = True, trio.current_time()
        await trio.sleep(TIMES.lease_s - TIMES.stop_s)
        assert rigs["a"].own.fence(launch) == 0
        assert rigs["a"].ended[launch] <= cut_at + TIMES.lease_s - TIMES.stop_s
        with pytest.raises(LeaseEnded):
            await rigs["a"].own.find(launch)


async def test_a_node_that_was_stopped_acts_for_nothing_when_it_goes_on(autojump_clock: MockClock) -> None:
    async with fleet_of("a") as (_, rigs):
        await rigs["a"].own.find("l")
        autojump_clock.jump(TIMES.lease_s)  # nothing of it runs meanwhile
        assert rigs["a"].own.fence("l") == 0


async def test_it_is_renewed_often_enough_to_miss_one(autojump_clock: MockClock) -> None:
    async with fleet_of("a") as (engine, rigs):
        await rigs["a"].own.find("l")
        for _ in range(4):
            engine.away = True
            await trio.sleep(TIMES.renew_s + 0.1)
            engine.away = False
            await trio.sleep(TIMES.renew_s + 0.1)
        assert not rigs["a"].ended
        assert rigs["a"].own.fence("l")


async def test_who_comes_back_owns_nothing_and_is_somebody_else(autojump_clock: MockClock) -> None:
    async with fleet_of("a", "b") as (engine, rigs):
        launch = placed_at(rigs, "a")
        before = await rigs["a"].own.find(launch)
        engine.away = True
        await trio.sleep(30)
        engine.away = False
        await trio.sleep(5)
        after = await rigs["b"].own.claim(launch)
        assert after.fence > before.fence
        assert rigs["a"].own.fences() == {}
        assert await rigs["a"].own.find(launch) == after
        assert rigs["a"].membership.node.incarnation == "a/2"


async def test_an_engine_that_forgot_everything_is_told_what_is_owned(autojump_clock: MockClock) -> None:
    async with fleet_of("a", "b") as (engine, rigs):
        launch = placed_at(rigs, "a")
        place = await rigs["a"].own.find(launch)
        engine.forget_everything()
        await trio.sleep(TIMES.renew_s + 0.1)
        assert await engine.find(launch) == place
        assert not rigs["a"].ended
        assert rigs["a"].membership.node.incarnation == "a/1"


async def test_who_was_stopped_for_longer_than_its_lease_keeps_nothing(autojump_clock: MockClock) -> None:
    """It finds out by the answer of the engine before it finds out by its own clock."""
    async with fleet_of("a", "b") as (engine, rigs):
        launch = placed_at(rigs, "a")
        await rigs["a"].own.find(launch)
        engine._end("a/1")
        rigs["a"].membership.lease = Lease(trio.current_time() - TIMES.lease_s, TIMES)
        with pytest.raises(LeaseEnded):
            await rigs["a"].membership._renew(rigs["a"].own)
        assert await engine.find(launch) is None
        await trio.sleep(5)
        assert launch in rigs["a"].ended
        assert rigs["a"].membership.node.incarnation == "a/2"


async def test_what_another_one_owns_by_then_is_ended(autojump_clock: MockClock) -> None:
    async with fleet_of("a", "b") as (engine, rigs):
        launch = placed_at(rigs, "a")
        await rigs["a"].own.find(launch)
        engine.forget_everything()
        engine._nodes["b/1"], engine._ends["b/1"] = rigs["b"].membership.node, 1e9
        await engine.claim(launch, "b/1")
        await trio.sleep(TIMES.renew_s + 0.1)
        assert launch in rigs["a"].ended
        assert rigs["a"].own.fence(launch) == 0


async def test_a_claim_that_was_answered_before_the_engine_forgot_it_counts_for_nothing(
    autojump_clock: MockClock,
) -> None:
    async with fleet_of("a") as (engine, rigs), trio.open_nursery() as nursery:
        engine.answers = trio.Event()
        refused: list[SupervisorError] = []

        async def claim() -> None:
            try:
                await rigs["a"].own.claim("l")
            except SupervisorError as error:
                refused.append(error)

        nursery.start_soon(claim)
        await wait_all_tasks_blocked()
        engine.forget_everything()
        await trio.sleep(TIMES.renew_s + 0.1)
        engine.answers.set()
        await wait_all_tasks_blocked()
        assert isinstance(refused[0], LeaseEnded)
        assert rigs["a"].own.fence("l") == 0


async def test_a_release_that_is_done_late_takes_nothing_away(autojump_clock: MockClock) -> None:
    async with fleet_of("a", "b") as (engine, rigs):
        launch = placed_at(rigs, "a")
        await rigs["a"].own.find(launch)
        engine.holds_releases = True
        with suppress(EngineAway):
            await rigs["a"].own.release(launch, lambda: False)
        place = await rigs["a"].own.find(launch)
        await MemoryEngine.release(engine, engine.released[0])
        assert await rigs["b"].own.claim(launch) == place


async def test_what_was_begun_again_is_not_released(autojump_clock: MockClock) -> None:
    async with fleet_of("a", "b") as (_engine, rigs):
        launch = placed_at(rigs, "a")
        place = await rigs["a"].own.find(launch)
        assert not await rigs["a"].own.release(launch, lambda: True)
        assert rigs["a"].own.fence(launch) == place.fence
        assert await rigs["b"].own.claim(launch) == place


async def test_what_is_being_released_is_not_claimed_again(autojump_clock: MockClock) -> None:
    async with fleet_of("a", "b") as (engine, rigs), trio.open_nursery() as nursery:
        launch = placed_at(rigs, "a")
        await rigs["a"].own.find(launch)
        rigs["a"].own.draining = True
        held_back = trio.Event()

        async def release_late(grants: Sequence[LaunchGrant]) -> None:
            await held_back.wait()
            await MemoryEngine.release(engine, grants)

        engine.release = release_late  # type: ignore[method-assign]
        nursery.start_soon(rigs["a"].own.release, launch, lambda: False)
        await wait_all_tasks_blocked()
        places: list[Place] = []

        async def find() -> None:
            places.append(await rigs["a"].own.find(launch))

        nursery.start_soon(find)
        await wait_all_tasks_blocked()
        held_back.set()
        await wait_all_tasks_blocked()
        assert [place.node.name for place in places] == ["b"]
        assert rigs["a"].own.fences() == {}


async def test_who_has_left_joins_no_more(autojump_clock: MockClock) -> None:
    async with fleet_of("a", "b") as (engine, rigs):
        launch = placed_at(rigs, "a")
        await rigs["a"].own.find(launch)
        await rigs["a"].membership.leave(rigs["a"].own)
        await trio.sleep(60)
        assert [node.name for node in rigs["b"].membership.members.all()] == ["b"]
        assert (await engine.join(Node(name="c", incarnation="c/1"), None)).nodes[0].name == "b"
        assert launch in rigs["a"].ended


async def test_a_draining_node_takes_nothing_new_and_keeps_what_it_has(autojump_clock: MockClock) -> None:
    async with fleet_of("a", "b") as (_engine, rigs):
        launch = placed_at(rigs, "a")
        place = await rigs["a"].own.find(launch)
        node = replace(rigs["a"].membership.node, weight=0)
        rigs["a"].membership._describe = lambda: replace(node, incarnation="")
        await trio.sleep(TIMES.renew_s + 0.1)
        assert rigs["b"].membership.members.find("a/1") == node
        assert await rigs["b"].own.find(launch) == replace(place, node=node)
        assert (await rigs["b"].own.find(next(f"m{n}" for n in range(50)))).node.name == "b"


async def test_a_node_that_drains_takes_nothing_before_the_others_know_of_it_either(autojump_clock: MockClock) -> None:
    async with fleet_of("a", "b") as (_engine, rigs):
        launch = placed_at(rigs, "a")
        rigs["a"].own.draining = True
        assert (await rigs["a"].own.find(launch)).node.name == "b"
        assert (await rigs["a"].own.take(launch)).node.name == "b"
        assert rigs["a"].own.fences() == {}
        assert (await rigs["b"].own.claim(launch)).node.name == "b"
        rigs["a"].own.draining = False
        other = next(f"m{n}" for n in range(100) if rigs["a"].membership.members.place(f"m{n}", "")[0].name == "a")
        assert rigs["a"].own.is_here(await rigs["a"].own.take(other))


async def test_a_node_alone_keeps_what_it_would_give_away(autojump_clock: MockClock) -> None:
    async with fleet_of("a") as (_engine, rigs):
        rigs["a"].own.draining = True
        assert rigs["a"].own.is_here(await rigs["a"].own.find("l"))


# Sending something ------------------------------------------------------------------------------------------------


class Asked:
    """What was sent where, and what the others say to it."""

    def __init__(self, *errors: Exception) -> None:
        self.here: list[int] = []
        self.there: list[Place] = []
        self._errors = [*errors]

    async def do_here(self, fence: int) -> str:
        self.here.append(fence)
        await trio.lowlevel.checkpoint()
        return "here"

    async def do_there(self, place: Place) -> str:
        self.there.append(place)
        await trio.lowlevel.checkpoint()
        if self._errors:
            raise self._errors.pop(0)
        return "there"


async def test_who_does_not_own_it_says_who_does(autojump_clock: MockClock) -> None:
    async with fleet_of("a", "b", "c") as (_engine, rigs):
        launch = placed_at(rigs, "b")
        owner = await rigs["c"].own.claim(launch)
        asked = Asked(Elsewhere(owner))
        rigs["a"].own._known[launch] = LaunchGrant(launch=launch, incarnation="b/1", fence=0)
        assert await reach(rigs["a"].own, launch, asked.do_here, asked.do_there) == "there"
        assert [place.node.name for place in asked.there] == ["b", "c"]
        assert await rigs["a"].own.find(launch) == owner


async def test_a_node_that_is_said_to_own_it_claims_it(autojump_clock: MockClock) -> None:
    async with fleet_of("a", "b") as (engine, rigs):
        launch = placed_at(rigs, "b")
        asked = Asked(Elsewhere(await engine.claim(launch, "a/1")))
        assert await reach(rigs["a"].own, launch, asked.do_here, asked.do_there) == "here"
        assert asked.here == [rigs["a"].own.fence(launch)]


async def test_what_nobody_owns_goes_to_the_next_node_if_the_first_cannot_be_reached(autojump_clock: MockClock) -> None:
    async with fleet_of("a", "b", "c") as (_engine, rigs):
        members = rigs["a"].membership.members
        launch = next(
            f"l{n}" for n in range(1000) if [node.name for node in members.place(f"l{n}", "")] == ["b", "c", "a"]
        )
        asked = Asked(NodeAway("no way there"))
        assert await reach(rigs["a"].own, launch, asked.do_here, asked.do_there) == "there"
        assert [place.node.name for place in asked.there] == ["b", "c"]


async def test_what_another_node_owns_by_now_goes_there_if_its_owner_of_before_is_gone(
    autojump_clock: MockClock,
) -> None:
    async with fleet_of("a", "b", "c") as (_engine, rigs):
        launch = placed_at(rigs, "b")
        await rigs["b"].own.claim(launch)
        assert (await rigs["a"].own.find(launch)).node.name == "b"
        await rigs["b"].own.release(launch, lambda: False)
        await rigs["c"].own.claim(launch)
        asked = Asked(NodeAway("no way there"))
        assert await reach(rigs["a"].own, launch, asked.do_here, asked.do_there) == "there"
        assert [place.node.name for place in asked.there] == ["b", "c"]


@pytest.mark.parametrize("owned", [True, False])
async def test_what_may_have_been_sent_is_not_sent_again(autojump_clock: MockClock, owned: bool) -> None:
    async with fleet_of("a", "b") as (_engine, rigs):
        launch = placed_at(rigs, "b")
        if owned:
            await rigs["b"].own.claim(launch)
        asked = Asked(NodeAway("lost on the way", outcome="not_sent" if owned else "unknown"))
        with pytest.raises(NodeAway):
            await reach(rigs["a"].own, launch, asked.do_here, asked.do_there)
        assert len(asked.there) == 1


async def test_a_launch_that_moves_from_node_to_node_is_given_up(autojump_clock: MockClock) -> None:
    async with fleet_of("a", "b", "c") as (_engine, rigs):
        launch = placed_at(rigs, "b")
        b, c = (Place(launch, rigs[name].membership.node, 1) for name in "bc")
        asked = Asked(*(Elsewhere(place) for place in (c, b, c, b, c, b)))
        with pytest.raises(NodeAway, match="moves from node to node"):
            await reach(rigs["a"].own, launch, asked.do_here, asked.do_there)


def test_a_lease_ends_for_the_node_before_it_ends_for_the_engine() -> None:
    lease = Lease(100.0, TIMES)
    assert lease.serves_until < lease.ends < 100.0 + TIMES.lease_s
    assert TIMES.renew_s == 5.0
    assert LeaseTimes(lease_s=3.0).renew_s == 1.0
