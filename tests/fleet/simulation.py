"""A fleet in virtual time: nodes, an engine in memory, calls of clients, and faults of every kind, all by one seed.

What must hold is told by the world as it happens: no launch runs in two places, no request is executed twice, each has
one answer. In the end, when the faults are over, every launch can be called again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec
import trio

from supervisor.fleet.engine import DRIFT, LeaseTimes
from tests.fleet.node import SimulatedNode
from tests.fleet.world import ENGINE, Odds, World

CALM_S: Final = 60.0
"""After the faults, until everything has to work again: a lease, a start, and time to settle."""


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """How much there is of everything. `calls_per_s` and `faults_per_s` are those of the whole fleet."""

    nodes: int = 12
    launches: int = 200
    seconds: float = 240.0
    calls_per_s: float = 20.0
    faults_per_s: float = 0.3
    odds: Odds = Odds()
    times: LeaseTimes = LeaseTimes()


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it. `unanswered`: requests whose node lived; `unreachable`: launches that do not answer at last."""

    violations: list[str]
    unanswered: int
    unreachable: int
    calls: int
    how: dict[str, int]
    events: dict[str, int]
    faults: dict[str, int]


class Simulation:
    """One run."""

    def __init__(self, scale: Scale, seed: int) -> None:
        self._scale = scale
        self.world = World(seed, scale.times.lease_s, scale.odds)
        self._random = self.world.random
        self._faults: Counter[str] = Counter()
        self._requests: dict[int, SimulatedNode] = {}
        self._hot = max(1, scale.launches // 100)
        self._kinds: dict[str, tuple[float, Callable[[], None]]] = {
            "kill": (2.0, self._kill),
            "freeze": (2.0, self._freeze),
            "cut from the engine": (1.0, self._cut_from_engine),
            "cut from another node": (2.0, self._cut_from_node),
            "drain": (1.0, self._drain),
            "sleep": (6.0, self._put_to_sleep),
            "engine started again": (0.1, lambda: self._restart_engine(loses=False)),
            "engine lost everything": (0.1, lambda: self._restart_engine(loses=True)),
            "engine was flushed": (0.1, lambda: self.world.lose(everything=True)),
            "engine lost a part": (0.2, lambda: self.world.lose(everything=False)),
            "engine replaced by an older copy": (0.1, self._replace_engine),
        }

    async def run(self) -> Report:
        scale = self._scale
        async with trio.open_nursery() as self.world.nursery:
            for number in range(scale.nodes):
                self._start(f"n{number:04}")
            for node in [*self.world.nodes.values()]:
                await node.membership.wait_joined()
            with trio.move_on_after(scale.seconds):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._call_for_ever)
                    nursery.start_soon(self._fail_for_ever)
            await trio.sleep(CALM_S)
            unreachable = await self._try_all()
            self.world.nursery.cancel_scope.cancel()
        lost = [each for each, node in self._requests.items() if node.alive and not self.world.answers[each]]
        return Report(
            violations=self.world.violations,
            unanswered=len(lost),
            unreachable=unreachable,
            calls=len(self._requests),
            how=dict(self.world.how),
            events=dict(self.world.events),
            faults=dict(self._faults),
        )

    def _start(self, name: str) -> None:
        rate = 1.0 + self._random.uniform(-DRIFT, DRIFT) * 0.4
        node = self.world.nodes[name] = SimulatedNode(self.world, name, rate, self._scale.times)
        self.world.nursery.start_soon(node.run)

    def _pick(self) -> SimulatedNode:
        return self._random.choice([*self.world.nodes.values()])

    async def _call_for_ever(self) -> None:
        while True:
            await trio.sleep(self._random.expovariate(self._scale.calls_per_s))
            self._call(self._launch())

    def _launch(self) -> str:
        """Return one of all launches, or, half of the time, one of those that are called most."""
        return f"l{self._random.randrange(self._scale.launches if self._random.random() < 0.5 else self._hot)}"

    def _call(self, launch: str) -> int:
        node, request = self._pick(), len(self._requests)
        if node.alive:
            self._requests[request] = node
            node.begin(request, launch)
        return request

    async def _try_all(self) -> int:
        """Call launches when there are no faults any more, and return how many did not do what they were asked."""
        requests = []
        self.world.odds = Odds(lost=0.0, unanswered=0.0, late=0.0)
        for number in range(min(self._scale.launches, 1000)):
            requests.append(self._call(f"l{number}"))
            await trio.sleep(0.01)
        await trio.sleep(40.0)
        return sum(not self.world.executed[each] for each in requests)

    # Faults -----------------------------------------------------------------------------------------------------------

    async def _fail_for_ever(self) -> None:
        weights = [weight for weight, _ in self._kinds.values()]
        while True:
            await trio.sleep(self._random.expovariate(self._scale.faults_per_s))
            (kind,) = self._random.choices([*self._kinds], weights)
            self._faults[kind] += 1
            self._kinds[kind][1]()

    def _after(self, mean_s: float, then: Callable[[], None], least_s: float = 0.0) -> None:
        async def wait() -> None:
            await trio.sleep(least_s + min(self._random.expovariate(1 / mean_s), 40.0))
            then()

        self.world.nursery.start_soon(wait)

    def _kill(self) -> None:
        node = self._pick()
        if node.alive:
            node.kill()
            self._after(10.0, lambda: self._start(node.name), least_s=2.0)

    def _freeze(self) -> None:
        node = self._pick()
        if node.alive and node.thawed.is_set():
            node.freeze()
            self._after(12.0, lambda: node.thawed.set())

    def _cut(self, one: str, other: str) -> None:
        pair = frozenset((one, other))
        if len(pair) == 2 and pair not in self.world.cut:
            self.world.cut.add(pair)
            self._after(12.0, lambda: self.world.cut.discard(pair))

    def _cut_from_engine(self) -> None:
        self._cut(self._pick().name, ENGINE)

    def _cut_from_node(self) -> None:
        self._cut(self._pick().name, self._pick().name)

    def _drain(self) -> None:
        node = self._pick()
        node.weight = 0
        self._after(20.0, lambda: setattr(node, "weight", 100))

    def _put_to_sleep(self) -> None:
        node = self._pick()
        if node.alive and node.processes:
            launch = self._random.choice(sorted(node.processes))
            release = self._random.random() < 0.5
            self.world.nursery.start_soon(lambda: node.put_to_sleep(launch, release=release))

    def _restart_engine(self, *, loses: bool) -> None:
        if self.world.engine_up.is_set():
            away_s = self._random.expovariate(1 / 4.0)
            self.world.nursery.start_soon(lambda: self.world.restart_engine(away_s, loses=loses))

    def _replace_engine(self) -> None:
        behind_s = self._random.uniform(0.0, 10.0)
        self.world.nursery.start_soon(lambda: self.world.replace_engine(behind_s))


def events_of(report: Report) -> int:
    """Return how many things happened in a run."""
    return sum(report.events.values()) + sum(report.how.values()) + sum(report.faults.values())
