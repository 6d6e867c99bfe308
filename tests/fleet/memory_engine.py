"""An engine in memory, for simulations: the real one is held against it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import islice

import trio

from supervisor.fleet.engine import (
    KEPT_S,
    EngineSettling,
    Entry,
    FeedLost,
    FeedPage,
    Joined,
    LaunchGrant,
    LeaseEnded,
    NameTaken,
    Node,
    NodeGone,
    NodeSeen,
    OfferPublished,
    Offers,
    Place,
    RecordPut,
)

MAX_FEED = 10_000
"""Entries that are kept; whoever is further behind reads everything anew."""
MAX_PAGE = 1000
FORGOTTEN_AT_ONCE = 10
ANEW = 1_000_000
"""By so much the position grows where something was forgotten: whoever has read up to one of before sees that."""


class MemoryEngine:
    """Implements `Engine`. `clock` gives seconds. `settles`: leases may run of which nothing is known here. It is seen
    when it is first asked for something.
    """

    def __init__(
        self, lease_s: float, clock: Callable[[], float] = trio.current_time, *, settles: bool = False
    ) -> None:
        self._lease_s = lease_s
        self._clock = clock
        self._nodes: dict[str, Node] = {}
        self._ends: dict[str, float] = {}  # in the order in which they end
        self._owners: dict[str, LaunchGrant] = {}
        self._claims: dict[str, float] = {}  # when each was claimed last, the oldest first
        self._fence = 0
        self._offers: dict[str, tuple[int, str]] = {}
        self._texts: dict[str, bytes] = {}
        self._uses: Counter[str] = Counter()
        self._over: dict[str, float] = {}
        self._records: dict[str, bytes] = {}
        self._feed: list[Entry] = []
        self._last = 0
        self._news = trio.Event()
        self._grants_from = clock()
        self._is_whole = not settles

    async def join(self, node: Node, held: Mapping[str, int] | None) -> Joined:
        await self._begin()
        self._sweep()
        for other in [each for each in self._nodes.values() if each.name == node.name]:
            if other.incarnation != node.incarnation:
                if other.place != node.place:
                    raise NameTaken(f"another daemon is the node {node.name!r}; give this one another name")
                self._end(other.incarnation)
        self._nodes[node.incarnation] = node
        self._extend(node.incarnation)
        self._put(NodeSeen(node))
        for launch, fence in (held or {}).items():
            if (owner := self._owner(launch)) is None or owner.node.incarnation == node.incarnation:
                self._own(LaunchGrant(launch=launch, incarnation=node.incarnation, fence=fence))
                self._fence = max(self._fence, fence)
        kept = frozenset(each for each, fence in (held or {}).items() if self._has(each, node.incarnation, fence))
        return Joined(self._last, tuple(self._nodes.values()), kept)

    async def renew(self, incarnation: str, node: Node | None = None) -> int:
        await self._begin()
        self._sweep()
        if incarnation not in self._ends:
            raise LeaseEnded("this node is no member of the fleet")
        self._extend(incarnation)
        if node is not None:
            self._nodes[incarnation] = node
            self._put(NodeSeen(node))
        return self._last

    async def leave(self, incarnation: str) -> None:
        await self._begin()
        self._end(incarnation)

    async def claim(self, launch: str, incarnation: str) -> Place:
        await self._begin()
        self._sweep()
        if incarnation not in self._ends:
            raise LeaseEnded("this node is no member of the fleet")
        owner = self._owner(launch)
        if owner is not None and owner.node.incarnation != incarnation:
            return owner
        if owner is None and (left_s := self._grants_from - self._clock()) > 0:
            raise EngineSettling(retry_after_s=left_s)
        self._fence += 1
        self._own(LaunchGrant(launch=launch, incarnation=incarnation, fence=self._fence))
        self._forget_old()
        return Place(launch, self._nodes[incarnation], self._fence)

    async def find(self, launch: str) -> Place | None:
        await self._begin()
        self._sweep()
        return self._owner(launch)

    async def release(self, grants: Sequence[LaunchGrant]) -> None:
        await self._begin()
        for grant in grants:
            if self._has(grant.launch, grant.incarnation, grant.fence):
                del self._owners[grant.launch]

    async def publish(self, grant: LaunchGrant, digest: str, offer: bytes) -> bool:
        await self._begin()
        fence, before = self._offers.get(grant.launch, (0, ""))
        if grant.fence < fence:
            return False
        self._offers[grant.launch] = grant.fence, digest
        if before != digest:
            self._texts[digest] = offer
            self._uses[digest] += 1
            self._drop(before)
            self._put(OfferPublished(grant.launch, digest, grant.fence))
        return True

    async def offers(self) -> Offers:
        await self._begin()
        return Offers(self._last, {launch: digest for launch, (_, digest) in self._offers.items()})

    async def read_offers(self, digests: Sequence[str]) -> Mapping[str, bytes]:
        await self._begin()
        return {digest: self._texts[digest] for digest in digests if digest in self._texts}

    async def end_sessions(self, left: Mapping[str, float]) -> None:
        await self._begin()
        now = self._clock()
        self._over = {each: until for each, until in self._over.items() if until > now}
        self._over |= {session: now + left_s for session, left_s in left.items()}

    async def has_ended(self, session: str) -> bool:
        await self._begin()
        return self._over.get(session, 0.0) > self._clock()

    async def put(self, key: str, value: bytes) -> None:
        await self._begin()
        self._records[key] = value
        self._put(RecordPut(key, value))

    async def records(self) -> Mapping[str, bytes]:
        await self._begin()
        return dict(self._records)

    async def read(self, position: int, wait_s: float) -> FeedPage:
        await self._begin()
        with trio.move_on_after(wait_s):
            while self._last <= position:
                await self._news.wait()
        first = self._last - len(self._feed) + 1
        if position < first - 1:
            raise FeedLost(f"the feed does not go back to {position}")
        page = self._feed[position + 1 - first :][:MAX_PAGE]
        return FeedPage(position + len(page), tuple(enumerate(page, position + 1)))

    async def _begin(self) -> None:
        await trio.lowlevel.checkpoint()
        self._see()

    def _see(self) -> None:
        """See whether something was forgotten: then nobody is a member, and for a lease nothing new is granted."""
        if self._is_whole:
            return
        self._is_whole = True
        self._nodes.clear()
        self._ends.clear()
        self._grants_from = self._clock() + self._lease_s
        self._feed.clear()
        self._last = max(self._last + ANEW, int(1000 * self._clock()))
        self._tell()

    # What all of that is made of --------------------------------------------------------------------------------------

    def _extend(self, incarnation: str) -> None:
        self._ends.pop(incarnation, None)
        self._ends[incarnation] = self._clock() + self._lease_s

    def _sweep(self) -> None:
        """End the leases that are over."""
        now = self._clock()
        while self._ends and next(iter(self._ends.values())) <= now:
            self._end(next(iter(self._ends)))

    def _end(self, incarnation: str) -> None:
        self._ends.pop(incarnation, None)
        if self._nodes.pop(incarnation, None) is not None:
            self._put(NodeGone(incarnation))

    def _owner(self, launch: str) -> Place | None:
        grant = self._owners.get(launch)
        if grant is None or grant.incarnation not in self._ends:
            return None
        return Place(launch, self._nodes[grant.incarnation], grant.fence)

    def _own(self, grant: LaunchGrant) -> None:
        self._owners[grant.launch] = grant
        self._claims.pop(grant.launch, None)
        self._claims[grant.launch] = self._clock()

    def _forget_old(self) -> None:
        now = self._clock()
        for launch in [*islice(self._claims, FORGOTTEN_AT_ONCE)]:
            if self._claims[launch] > now - KEPT_S:
                return
            del self._claims[launch]
            if self._owner(launch) is not None:
                self._claims[launch] = now
                continue
            self._owners.pop(launch, None)
            _, digest = self._offers.pop(launch, (0, ""))
            self._drop(digest)

    def _has(self, launch: str, incarnation: str, fence: int) -> bool:
        return self._owners.get(launch) == LaunchGrant(launch=launch, incarnation=incarnation, fence=fence)

    def _drop(self, digest: str) -> None:
        self._uses[digest] -= 1
        if self._uses[digest] <= 0:
            del self._uses[digest]
            self._texts.pop(digest, None)

    def _put(self, entry: Entry) -> None:
        self._last += 1
        self._feed.append(entry)
        if len(self._feed) > 2 * MAX_FEED:
            del self._feed[:MAX_FEED]
        self._tell()

    def _tell(self) -> None:
        news, self._news = self._news, trio.Event()
        news.set()
