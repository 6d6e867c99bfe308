"""Which launches this node owns, and where the others are.

A launch is found like this: it is ours; or it is known who owns it, and that is a member; or the engine says who owns
it; or nobody does, and it is placed. The node it is placed on claims it itself, so the engine decides where two differ.

What is known of others may be old. So whoever is asked for a launch that it does not own claims it, and says where it
is if it is elsewhere, before anything is sent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Final, TypeVar

import trio

from supervisor.fleet.engine import Engine
from supervisor.fleet.errors import Elsewhere, LeaseEnded, NodeAway
from supervisor.fleet.membership import Membership
from supervisor.fleet.records import LaunchGrant, Place

R = TypeVar("R")

_MAX_STEPS: Final = 4
"""Nodes that are asked for one launch. Each one that does not own it says who does, by the engine."""
_MAX_KNOWN: Final = 100_000
"""Owners that are remembered; the oldest is forgotten, and asked for again."""


class Ownership:
    """What one node owns. Implements `supervisor.fleet.membership.LeaseHolder`.

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
