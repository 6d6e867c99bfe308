"""A node as a member of a fleet: joining, renewing the lease, reading the feed, leaving; who else is there; which
launches it owns, and where the others are.

Rules:
- Nothing is trusted but the lease: `holds` is asked before anything is sent to a launch, and after it answered.
- When the lease cannot be renewed in time, the holder stops all launches before it ends; then the node joins anew, as
  another incarnation that owns nothing.
- Where the engine has forgotten us though our lease runs, as it lost what it knew, we join again with what we own.
- A node knows all members at first, then what the feed says.

A launch is found like this: it is ours; or it is known who owns it, and that is a member; or the engine says who owns
it; or nobody does, and it is placed. The node it is placed on claims it itself, so the engine decides where two differ.
What is known of others may be old. So whoever is asked for a launch that it does not own claims it, and says where it
is if it is elsewhere, before anything is sent.

Which node a launch is placed on is weighted rendezvous hashing. Each node has a score for each launch, made of both
names and its weight; the highest wins. So every node comes to the same answer without being told; a node that comes or
goes moves only what it wins or had; and shares are as the weights are (Thaler and Ravishankar, "Using name-based
mappings to increase hit rates", 1998; Schindelhauer and Schomaker, "Weighted distributed hash tables", 2005).
"""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from hashlib import blake2b
from heapq import nlargest
from typing import Final, Protocol, TypeVar

import trio
from msgspec.structs import replace

from actors.errors import SupervisorError
from actors.kit import Conditions, Pauses
from supervisor.fleet.engine import (
    Elsewhere,
    Engine,
    EngineAway,
    Entry,
    FeedLost,
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
    detail_of,
)

_SCALE: Final = 1.0 / (1 << 64)
_MASK: Final = (1 << 64) - 1


def rank(launch: str, nodes: Iterable[Node], most: int = 3) -> list[Node]:
    """Return the nodes that a launch is placed on, best first: at most so many, and none that takes nothing new."""
    seed = _hash(launch)
    scored = [(_score(seed ^ _hash(node.name), node.weight), node.name, node) for node in nodes if node.weight > 0]
    return [node for _, _, node in nlargest(most, scored, key=lambda each: each[:2])]


def _heir_of(session: str, nodes: Iterable[Node]) -> Node | None:
    """Return which node has a session whose own is gone: by names alone, so that it stays the same for long."""
    seed = _hash(session)
    return max(nodes, key=lambda node: (_score(seed ^ _hash(node.name), 1), node.incarnation), default=None)


def weight_of(free_bytes: int, calls: int) -> int:
    """Return the weight of a node with so much free memory and so many calls under way.

    In steps of a quarter, so that it changes seldom: a change of a weight is told to every node.
    """
    gib = max(free_bytes / 2**30, 1 / 64)
    return max(1, round(100 * 2 ** (round(4 * math.log2(gib / (1 + calls / 16))) / 4)))


def _score(mixed: int, weight: int) -> float:
    """Return the score of one node: exponentially distributed over launches, with the weight as its mean."""
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 & _MASK  # the finalizer of SplitMix64, so that bits are spread
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & _MASK
    return -weight / math.log((mixed ^ (mixed >> 31)) * _SCALE or _SCALE)


@lru_cache(4096)
def _hash(name: str) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big")


class Members:
    """All nodes that are members, by incarnation."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._lives: dict[str, Node] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def reset(self, nodes: Iterable[Node]) -> None:
        self._nodes = {node.incarnation: node for node in nodes}
        self._lives = {node.life: node for node in self._nodes.values()}

    def take(self, entry: NodeSeen | NodeGone) -> None:
        match entry:
            case NodeSeen(node=node):
                self._nodes[node.incarnation] = self._lives[node.life] = node
            case NodeGone(incarnation=incarnation):
                gone = self._nodes.pop(incarnation, None)
                if gone is not None and self._lives.get(gone.life) is gone:
                    del self._lives[gone.life]

    def find(self, incarnation: str) -> Node | None:
        return self._nodes.get(incarnation)

    def find_life(self, life: str) -> Node | None:
        return self._lives.get(life)

    def heir(self, session: str) -> Node | None:
        return _heir_of(session, self._nodes.values())

    def all(self) -> list[Node]:
        return [*self._nodes.values()]

    def place(self, launch: str, configuration: str, most: int = 3) -> list[Node]:
        """Return where a launch is placed, best first, among those that have read the same configuration."""
        return rank(launch, (node for node in self._nodes.values() if node.configuration == configuration), most)


_WHAT = "fleet"
_READ_S = 20.0
"""How long the engine may keep a reading of the feed that has nothing to say."""
_READS_PER_S = 2000
"""Readings of all members together that have something new: in a large fleet, what comes together is read at once."""
_GATHER_S = 0.5
"""The longest that a member waits for more."""
_LOOK_S = 1.0
"""The loop's own timers stand still while the process is stopped, so the lease is looked at so often."""


_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # the first one is Linux'


class NodeClock:
    """The clock of leases: it goes on while the process, or the machine, is stopped."""

    def now(self) -> float:
        """Return a moment in seconds."""
        return time.clock_gettime(_CLOCK)

    def trio_time(self, moment: float) -> float:
        """Return what the clock of trio says at a moment of this one, if the process is not stopped until then."""
        return trio.current_time() + moment - self.now()


class _LeaseHolder(Protocol):
    """Who lives by the lease of a node."""

    def fences(self) -> Mapping[str, int]:
        """Return what is owned: launches with the fence of each."""

    async def keep(self, launches: frozenset[str]) -> None:
        """End all launches that are owned but these."""

    async def stop(self) -> None:
        """End all launches that are owned, before the lease ends; then own nothing."""


class Membership:
    """The membership of one node. `describe` says what it is to be known as, but for its incarnation.

    `joins` counts how often it joined: what the engine said before may not hold after. `lease` is None between two.
    `on_renewed` is called with each new lease: whoever holds processes ends them with it, if we are stopped by then;
    `on_joined` when it joined, as what it knows may be old.
    """

    def __init__(
        self,
        engine: Engine,
        times: LeaseTimes,
        clock: NodeClock,
        describe: Callable[[], Node],
        make_incarnation: Callable[[], str],
        take: Callable[[int, Entry], None] = lambda position, entry: None,
        conditions: Conditions | None = None,
        *,
        on_renewed: Callable[[Lease], None] = lambda lease: None,
        on_joined: Callable[[], None] = lambda: None,
    ) -> None:
        """`take` is called with each entry of the feed and its position; `conditions` is told while the lease is lost,
        or about to be.
        """
        self._conditions = conditions or Conditions()
        self._on_renewed = on_renewed
        self._on_joined = on_joined
        self.members = Members()
        self.joins = 0
        self.node = Node(name="", incarnation="")
        self._engine = engine
        self._times = times
        self._clock = clock
        self._describe = describe
        self._make_incarnation = make_incarnation
        self._take = take
        self.lease: Lease | None = None
        self.position = 0
        self._running = trio.CancelScope()
        self._joined = trio.Event()
        self._hurried = trio.Event()

    @property
    def holds(self) -> bool:
        """Whether this node may act for what it owns, now."""
        return self.lease is not None and self._clock.now() < self.lease.serves_until

    def hurry(self) -> None:
        """Have the others know soon what this node says of itself now."""
        self._hurried.set()

    async def wait_joined(self) -> None:
        """Return while this node is a member."""
        await self._joined.wait()

    async def run(self, holder: _LeaseHolder) -> None:
        """Be a member whenever that is possible, until it leaves."""
        with self._running:
            while True:
                self.node = replace(self._describe(), incarnation=self._make_incarnation())
                await self._join_at_last()
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._renew_for_ever, holder)
                    nursery.start_soon(self._follow, holder)
                    await self._wait_lapsed()
                    nursery.cancel_scope.cancel()
                await self._lapse(holder)

    async def leave(self, holder: _LeaseHolder) -> None:
        """Stop what is owned, end the lease at once, and join no more."""
        self._running.cancel()
        await self._lapse(holder)
        await self._engine.leave(self.node.incarnation)

    async def _join_at_last(self) -> None:
        pauses = Pauses()
        while True:
            try:
                await self._join(None)
            except SupervisorError as error:
                self._conditions.begin(_WHAT, f"this node is no member: {detail_of(error)}")
                await trio.sleep(pauses.next())
            else:
                return

    async def _join(self, held: Mapping[str, int] | None) -> Joined:
        sent = self._clock.now()
        joined = await self._engine.join(self.node, held)
        self._begin(sent)
        self.joins += 1
        self.members.reset(joined.nodes)
        self.position = joined.position
        self._joined.set()
        self._on_joined()
        return joined

    def _begin(self, sent: float) -> None:
        self.lease = Lease(sent, self._times)
        self._conditions.end(_WHAT)
        self._on_renewed(self.lease)

    async def _rejoin(self, holder: _LeaseHolder) -> None:
        """Join as who we are: the engine has lost what it knew, or we what it said.

        Not when our lease is over: what we owned may have had another owner meanwhile.
        """
        if not self.holds:
            raise LeaseEnded("this node is no member of the fleet now")
        await holder.keep((await self._join(holder.fences())).kept)

    async def _lapse(self, holder: _LeaseHolder) -> None:
        self.lease = None
        self._joined = trio.Event()
        self.members.reset(())
        with trio.CancelScope(shield=True):
            await holder.stop()

    async def _wait_lapsed(self) -> None:
        """Return when no lease holds any more, if possible at that moment."""
        while True:
            lease, now = self.lease, self._clock.now()
            if lease is None or now >= lease.serves_until:
                return
            await trio.sleep_until(self._clock.trio_time(min(lease.serves_until, now + _LOOK_S)))

    async def _renew_for_ever(self, holder: _LeaseHolder) -> None:
        while True:
            sent = self._clock.now()
            try:
                with trio.move_on_at(self._clock.trio_time(sent + self._times.renew_s)) as waiting:
                    await self._renew(holder)
                if waiting.cancelled_caught:
                    raise EngineAway("the engine of the fleet does not answer in time")
            except SupervisorError as error:
                self._conditions.begin(_WHAT, f"the lease is not renewed: {detail_of(error)}")
            with trio.move_on_at(self._clock.trio_time(sent + self._times.renew_s)):
                await self._hurried.wait()
            self._hurried = trio.Event()

    async def _renew(self, holder: _LeaseHolder) -> None:
        sent, news = self._clock.now(), replace(self._describe(), incarnation=self.node.incarnation)
        try:
            newest = await self._engine.renew(self.node.incarnation, None if news == self.node else news)
        except LeaseEnded:
            await self._rejoin(holder)
            return
        self.node = news
        self._begin(sent)
        if newest < self.position:  # it forgot what we have read
            await self._rejoin(holder)

    async def _follow(self, holder: _LeaseHolder) -> None:
        pauses = Pauses()
        while True:
            try:
                await self._read(holder)
            except SupervisorError:  # whoever renews the lease tells of it
                await trio.sleep(pauses.next())
            else:
                pauses.reset()
                await trio.sleep(min(_GATHER_S, len(self.members) / _READS_PER_S))

    async def _read(self, holder: _LeaseHolder) -> None:
        before = self.position
        try:
            page = await self._engine.read(before, _READ_S)
        except FeedLost:
            await self._rejoin(holder)
            return
        if before != self.position:  # everything was read anew meanwhile
            return
        for position, entry in page.entries:
            if isinstance(entry, NodeSeen | NodeGone):
                self.members.take(entry)
            self._take(position, entry)
        self.position = page.position


# What a node owns -----------------------------------------------------------------------------------------------------


R = TypeVar("R")

_MAX_STEPS: Final = 4
"""Nodes that are asked for one launch. Each one that does not own it says who does, by the engine."""
_MAX_KNOWN: Final = 100_000
"""Owners that are remembered; the oldest is forgotten, and asked for again."""


class Ownership:
    """What one node owns. Implements `_LeaseHolder`.

    `end` ends what runs of a launch, at once.
    """

    def __init__(self, engine: Engine, membership: Membership, end: Callable[[str], Awaitable[None]]) -> None:
        self.draining = False
        """This node takes no launch that another one can take."""
        self._engine = engine
        self.membership = membership
        self._end = end
        self._held: dict[str, LaunchGrant] = {}
        self._known: dict[str, LaunchGrant] = {}
        self._changing: dict[str, trio.Event] = {}

    def fence(self, launch: str) -> int:
        """Return the fence by which this node may act for a launch, now; 0 if it may not."""
        grant = self.grant(launch)
        return 0 if grant is None else grant.fence

    def grant(self, launch: str) -> LaunchGrant | None:
        """Return by which grant this node may act for a launch, now."""
        return self._held.get(launch) if self.membership.holds else None

    def is_here(self, place: Place) -> bool:
        return place.node.incarnation == self.membership.node.incarnation

    async def find(self, launch: str, avoid: Collection[str] = ()) -> Place:
        """Return where a launch is; where nobody owns it, it is placed, but on none of the incarnations to `avoid`.

        Raises `EngineAway` and `LeaseEnded`, where that cannot be known.
        """
        me = self.membership.node
        if self.draining:
            avoid = {*avoid, me.incarnation}
        await self._wait_changed(launch)  # what is being given up is not ours
        if fence := self.fence(launch):
            return Place(launch, me, fence)
        if (known := self._known.get(launch)) is not None:
            if (node := self.membership.members.find(known.incarnation)) is not None:
                return Place(launch, node, known.fence)
            del self._known[launch]
        if not self.membership.holds:
            raise LeaseEnded("this node is no member of the fleet now")
        place = await self._engine.find(launch)
        if place is not None and self.is_here(place) and launch in self._changing:
            return await self.find(launch, avoid)  # it is given up by now
        if place is None:
            for node in self.membership.members.place(launch, me.configuration, 1 + len(avoid)):
                if node.incarnation not in avoid:
                    place = Place(launch, node, 0)
                    break
        else:
            self.learn(place)
        return await self.claim(launch) if place is None or self.is_here(place) else place

    async def take(self, launch: str) -> Place:
        """Own a launch that another node has placed here, unless it is elsewhere or this one takes none; else where it
        is. Raises as `find` does.
        """
        return await (self.find(launch) if self.draining else self.claim(launch))

    async def claim(self, launch: str) -> Place:
        """Own a launch, unless another node does; return where it is. Raises as `find` does."""
        async with self._change(launch):
            me, joins = self.membership.node, self.membership.joins
            if fence := self.fence(launch):
                return Place(launch, me, fence)
            place = await self._engine.claim(launch, me.incarnation)
            if not self.is_here(place):
                self.learn(place)
            elif self.membership.holds and self.membership.joins == joins:
                self._held[launch] = LaunchGrant(launch=launch, incarnation=me.incarnation, fence=place.fence)
            else:
                raise LeaseEnded("this node is no member of the fleet any more")
            return place

    def learn(self, place: Place) -> None:
        """Take what the engine said of an owner; that it is a member is known from the feed soon."""
        if place.fence and not self.is_here(place):
            self._known.pop(place.launch, None)
            self._known[place.launch] = LaunchGrant(
                launch=place.launch, incarnation=place.node.incarnation, fence=place.fence
            )
            if len(self._known) > _MAX_KNOWN:
                del self._known[next(iter(self._known))]

    def forget(self, launch: str, fence: int) -> None:
        """Who was thought to own a launch by this fence does not."""
        if (known := self._known.get(launch)) is not None and known.fence <= fence:
            del self._known[launch]

    async def release(self, launch: str, runs: Callable[[], bool]) -> bool:
        """Own a launch no longer; return False if it runs, as it was begun again meanwhile: then it is ours still."""
        async with self._change(launch):
            if runs():
                return False
            if (grant := self._held.pop(launch, None)) is not None:
                await self._engine.release([grant])
            return True

    def fences(self) -> Mapping[str, int]:
        return {launch: grant.fence for launch, grant in self._held.items()}

    async def keep(self, launches: frozenset[str]) -> None:
        await self._end_all(sorted(self._held.keys() - launches))

    async def stop(self) -> None:
        self._known.clear()
        await self._end_all([*self._held])

    async def _end_all(self, launches: Collection[str]) -> None:
        for launch in launches:
            del self._held[launch]
        async with trio.open_nursery() as nursery:
            for launch in launches:
                nursery.start_soon(self._end, launch)

    async def _wait_changed(self, launch: str) -> None:
        """Return when nobody changes who owns a launch. A checkpoint if somebody does."""
        while (changing := self._changing.get(launch)) is not None:
            await changing.wait()

    @asynccontextmanager
    async def _change(self, launch: str) -> AsyncIterator[None]:
        """Let one after the other change who owns a launch."""
        await self._wait_changed(launch)
        self._changing[launch] = trio.Event()
        try:
            yield
        finally:
            self._changing.pop(launch).set()


async def reach(
    ownership: Ownership,
    launch: str,
    here: Callable[[int], Awaitable[R]],
    there: Callable[[Place], Awaitable[R]],
) -> R:
    """Send something to a launch: `here`, with our fence, or to another node.

    Both raise `Elsewhere` where nothing was done as the launch is not there, or is moved from there now; `there` raises
    `NodeAway` where nothing was sent. Raises `NodeAway`, `EngineAway`, `LeaseEnded`.
    """
    avoid: set[str] = set()
    place = await ownership.find(launch)
    for _ in range(_MAX_STEPS):
        if ownership.is_here(place) and not ownership.fence(launch):  # another node has it from the engine
            place = await ownership.claim(launch)
        try:
            return await (here(place.fence) if ownership.is_here(place) else there(place))
        except Elsewhere as error:
            if error.place is None:
                ownership.forget(launch, place.fence)
                avoid.add(place.node.incarnation)
            place = error.place or await ownership.find(launch, avoid)
            ownership.learn(place)
            continue
        except NodeAway as error:
            if error.outcome != "not_sent":
                raise
            away = error
        ownership.forget(launch, place.fence)
        avoid.add(place.node.incarnation)
        tried, place = place, await ownership.find(launch, avoid)
        if place.node.incarnation == tried.node.incarnation:  # it owns it until its lease ends
            raise away
    raise NodeAway(f"{launch} moves from node to node; retry shortly", retry_after_s=1.0)
