"""Being a member of a fleet: joining, renewing the lease, reading the feed, leaving; and what happens when it ends.

Rules:
- Nothing is trusted but the lease: `holds` is asked before anything is sent to a launch, and after it answered.
- When the lease cannot be renewed in time, the holder stops all launches before it ends; then the node joins anew, as
  another incarnation that owns nothing.
- Where the engine has forgotten us though our lease runs, as it lost what it knew, we join again with what we own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import trio
from msgspec.structs import replace

from actors.errors import SupervisorError
from actors.kit import Conditions, Pauses
from supervisor.fleet.engine import Engine
from supervisor.fleet.errors import EngineAway, FeedLost, LeaseEnded, detail_of
from supervisor.fleet.lease import Lease, LeaseTimes
from supervisor.fleet.members import Members
from supervisor.fleet.records import Entry, Joined, Node, NodeGone, NodeSeen

WHAT = "fleet"
READ_S = 20.0
"""How long the engine may keep a reading of the feed that has nothing to say."""
READS_PER_S = 2000
"""Readings of all members together that have something new: in a large fleet, what comes together is read at once."""
GATHER_S = 0.5
"""The longest that a member waits for more."""
LOOK_S = 1.0
"""The loop's own timers stand still while the process is stopped, so the lease is looked at so often."""


class NodeClock(Protocol):
    """The clock of a node."""

    def now(self) -> float:
        """Return a moment in seconds, which goes on while the process is stopped."""

    def trio_time(self, moment: float) -> float:
        """Return what the clock of trio says at a moment of this one, if the process is not stopped until then."""


class LeaseHolder(Protocol):
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
    ) -> None:
        """`take` is called with each entry of the feed and its position; `conditions` is told while the lease is lost,
        or about to be.
        """
        self._conditions = conditions or Conditions()
        self.on_renewed: Callable[[Lease], None] = lambda lease: None
        self.on_joined: Callable[[], None] = lambda: None
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

    async def run(self, holder: LeaseHolder) -> None:
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

    async def leave(self, holder: LeaseHolder) -> None:
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
                self._conditions.begin(WHAT, f"this node is no member: {detail_of(error)}")
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
        self.on_joined()
        return joined

    def _begin(self, sent: float) -> None:
        self.lease = Lease(sent, self._times)
        self._conditions.end(WHAT)
        self.on_renewed(self.lease)

    async def _rejoin(self, holder: LeaseHolder) -> None:
        """Join as who we are: the engine has lost what it knew, or we what it said.

        Not when our lease is over: what we owned may have had another owner meanwhile.
        """
        if not self.holds:
            raise LeaseEnded("this node is no member of the fleet now")
        await holder.keep((await self._join(holder.fences())).kept)

    async def _lapse(self, holder: LeaseHolder) -> None:
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
            await trio.sleep_until(self._clock.trio_time(min(lease.serves_until, now + LOOK_S)))

    async def _renew_for_ever(self, holder: LeaseHolder) -> None:
        while True:
            sent = self._clock.now()
            try:
                with trio.move_on_at(self._clock.trio_time(sent + self._times.renew_s)) as waiting:
                    await self._renew(holder)
                if waiting.cancelled_caught:
                    raise EngineAway("the engine of the fleet does not answer in time")
            except SupervisorError as error:
                self._conditions.begin(WHAT, f"the lease is not renewed: {detail_of(error)}")
            with trio.move_on_at(self._clock.trio_time(sent + self._times.renew_s)):
                await self._hurried.wait()
            self._hurried = trio.Event()

    async def _renew(self, holder: LeaseHolder) -> None:
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

    async def _follow(self, holder: LeaseHolder) -> None:
        pauses = Pauses()
        while True:
            try:
                await self._read(holder)
            except SupervisorError:  # whoever renews the lease tells of it
                await trio.sleep(pauses.next())
            else:
                pauses.reset()
                await trio.sleep(min(GATHER_S, len(self.members) / READS_PER_S))

    async def _read(self, holder: LeaseHolder) -> None:
        before = self.position
        try:
            page = await self._engine.read(before, READ_S)
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
