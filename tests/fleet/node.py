"""A simulated daemon: the real membership and ownership of one, on a clock of its own, with servers that are only said
to run."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import Any, Final, cast

import trio

from actors.errors import SupervisorError
from supervisor.fleet.engine import Elsewhere, Engine, Entry, Lease, LeaseEnded, LeaseTimes, Node, NodeAway, Place
from supervisor.fleet.membership import Membership, NodeClock, Ownership, reach
from tests.fleet.world import GIVE_UP_S, World

COLD_START_S = 1.0
WORK_S = 0.05
CALL_S = 30.0


class SkewedClock(NodeClock):
    """One that runs at a rate of its own."""

    def __init__(self, rate: float) -> None:
        self._rate = rate

    def now(self) -> float:
        return trio.current_time() * self._rate

    def trio_time(self, moment: float) -> float:
        return moment / self._rate + 1e-6  # so that it is not before that by how it is rounded


class DistantEngine:
    """Does what an `Engine` does by that of the world, over a network. `thawed`: the node is not stopped."""

    def __init__(self, world: World, node: SimulatedNode) -> None:
        self._world = world
        self._node = node

    def __getattr__(self, name: str) -> Any:
        async def ask(*arguments: Any) -> Any:
            return await self._world.ask_engine(self._node, lambda engine: getattr(engine, name)(*arguments))

        return ask


WEIGHT_S: Final = 60.0
"""How long a node has the same weight, as a real one does that is called now and then."""


class SimulatedNode:
    """One daemon of the simulation, from its start to its death. `rate` is that of its clock."""

    def __init__(self, world: World, name: str, rate: float, times: LeaseTimes) -> None:
        self.world = world
        self.name = name
        self.weight = 100
        self.thawed = trio.Event()
        self.thawed.set()
        self.alive = True
        self.processes: dict[str, trio.Event] = {}
        self.calls: Counter[str] = Counter()
        self.clock = SkewedClock(rate)
        engine = cast("Engine", DistantEngine(world, self))
        self.membership = Membership(
            engine, times, self.clock, self._describe, self._make_incarnation, self._take, on_renewed=self._note_lease
        )
        self.ownership = Ownership(engine, self.membership, self._end)
        self._scope = trio.CancelScope()
        self._lease_ends = 0.0
        self._nursery: trio.Nursery

    def _describe(self) -> Node:
        changes = int(self.clock.now() / WEIGHT_S) % 2 if self.weight else 0
        return Node(name=self.name, incarnation="", place=self.name, weight=self.weight + changes)

    def _note_lease(self, lease: Lease) -> None:
        self._lease_ends = lease.ends

    def _make_incarnation(self) -> str:
        return f"{self.name}/{self.world.random.getrandbits(48):012x}"

    def _take(self, position: int, entry: Entry) -> None:
        self.world.events["entries read"] += 1

    # Its life ---------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        with self._scope:
            async with trio.open_nursery() as self._nursery:
                await self.membership.run(self.ownership)
        for launch in [*self.processes]:
            self._stopped(launch)

    def kill(self) -> None:
        """Die at once. What holds the processes sees that, and ends them."""
        self.alive = False
        self.thawed.set()
        self._scope.cancel()

    def freeze(self) -> None:
        self.thawed = trio.Event()
        self.world.nursery.start_soon(self._end_with_lease, self.clock.trio_time(self._lease_ends), self.thawed)

    async def _end_with_lease(self, moment: float, thawed: trio.Event) -> None:
        """What holds the processes ends them with the lease, if it hears of no other one."""
        with trio.move_on_at(moment):
            await thawed.wait()
            return
        if self.alive:
            for launch in [*self.processes]:
                self._stopped(launch)

    async def put_to_sleep(self, launch: str, *, release: bool) -> None:
        """Stop a process that nobody uses, and own the launch no longer if so wished."""
        await self.thawed.wait()
        started = self.processes.get(launch)
        if started is not None and started.is_set() and not self.calls[launch]:
            self._stopped(launch)
            if release:
                with suppress(SupervisorError):  # then the engine says that it is ours until it is asked for
                    await self.ownership.release(launch, lambda: launch in self.processes)

    # Calls ------------------------------------------------------------------------------------------------------------

    def begin(self, request: int, launch: str) -> None:
        """Take the call of a client of this node."""
        self._nursery.start_soon(self._call, request, launch)

    async def _call(self, request: int, launch: str) -> None:
        how = "no answer in time"
        try:
            with trio.move_on_after(CALL_S):

                async def here(fence: int) -> int:
                    return await self._serve(request, launch)

                async def there(place: Place) -> int:
                    return await self._ask(request, place)

                await reach(self.ownership, launch, here, there)
                how = "answered"
        except SupervisorError as error:
            how = type(error).__name__
        self.world.answer(request, how)

    async def _ask(self, request: int, place: Place) -> int:
        """Ask another node; whether that got it is not known if it does not answer."""
        self.world.events["messages"] += 1
        peer = self.world.nodes.get(place.node.name)
        if (
            peer is None
            or peer.membership.node.incarnation != place.node.incarnation
            or self.world.is_cut(self.name, peer.name)
        ):
            await trio.sleep(self.world.random.uniform(0.0, GIVE_UP_S))
            raise NodeAway("cannot be reached")
        await trio.sleep(self.world.latency_s())
        await peer.thawed.wait()
        if not peer.alive:
            raise NodeAway("died", outcome="unknown")
        fences: list[int] = []
        failed: list[Exception] = []
        over = trio.Event()

        async def serve() -> None:
            try:
                fences.append(await peer._serve(request, place.launch))
            except SupervisorError as error:
                failed.append(error)
            finally:
                over.set()

        peer._nursery.start_soon(serve)
        await over.wait()
        await trio.sleep(self.world.latency_s())
        if self.world.is_cut(self.name, peer.name):
            raise NodeAway("lost", outcome="unknown")
        if failed:
            raise failed[0]
        if not fences or fences[0] < place.fence:
            raise NodeAway("died, or answered for an owner of before", outcome="unknown")
        return fences[0]

    async def _serve(self, request: int, launch: str) -> int:
        """Have a launch do what is asked, if it is ours; return the fence by which it did."""
        place = await self.ownership.claim(launch)
        if not self.ownership.is_here(place):
            raise Elsewhere(place)
        self.calls[launch] += 1
        try:
            await self._wake(launch, place.fence)
            self.world.execute(request, launch, self.name)
            await trio.sleep(self.world.random.expovariate(1 / WORK_S))
            await self.thawed.wait()
            if self.ownership.fence(launch) != place.fence:
                raise NodeAway("the lease ended meanwhile", outcome="unknown")
            return place.fence
        finally:
            self.calls[launch] -= 1

    async def _wake(self, launch: str, fence: int) -> None:
        """Start the process of a launch unless it runs; return when it may be sent something. Raises `LeaseEnded`."""
        while True:
            await self.thawed.wait()
            self._check(launch, fence)
            started = self.processes.get(launch)
            if started is None:
                self.world.start(launch, self.name)
                self.processes[launch] = started = trio.Event()
                try:
                    await trio.sleep(self.world.random.uniform(0.1, COLD_START_S))
                except trio.Cancelled:  # whoever wanted it has given up, or died
                    if self.processes.get(launch) is started:
                        self._stopped(launch)
                    raise
                started.set()
            elif not started.is_set():
                await started.wait()
            else:
                return

    def _check(self, launch: str, fence: int) -> None:
        if self.ownership.fence(launch) != fence:
            raise LeaseEnded("this node does not own the launch any more")

    async def _end(self, launch: str) -> None:
        """End a process whose lease is about to end."""
        await trio.sleep(self.world.random.uniform(0.0, 2.0))
        await self.thawed.wait()
        if launch in self.processes:
            self._stopped(launch)

    def _stopped(self, launch: str) -> None:
        self.processes.pop(launch).set()
        self.world.stop(launch, self.name)
