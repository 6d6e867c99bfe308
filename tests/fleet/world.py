"""The world of a simulated fleet: what really runs and was really done, and the network, which loses and delays.

Everything is told here at the moment that it happens, so what must never happen is seen when it does.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import msgspec
import trio

from actors.errors import SupervisorError
from supervisor.fleet.engine import EngineAway
from tests.fleet.forgetful import KEYS, ForgetfulEngine
from tests.fleet.memory_engine import MemoryEngine

if TYPE_CHECKING:
    from tests.fleet.node import SimulatedNode

T = TypeVar("T")

ENGINE: Final = "engine"
GIVE_UP_S: Final = 2.0
"""How long a node waits for a connection that does not come about."""


class Odds(msgspec.Struct, frozen=True, kw_only=True):
    """How likely a message to the engine is lost on its way there, or its answer, and how likely either is late."""

    lost: float = 0.001
    unanswered: float = 0.001
    late: float = 0.002


class World:
    """What is true, whatever nodes believe. `violations` say what happened that must not."""

    def __init__(self, seed: int, lease_s: float, odds: Odds) -> None:
        self.random = random.Random(seed)
        self.odds = odds
        self.lease_s = lease_s
        self.engine = ForgetfulEngine(lease_s)
        self.engine_up = trio.Event()
        self.engine_up.set()
        self.cut: set[frozenset[str]] = set()
        self.running: dict[str, str] = {}
        self.executed: Counter[int] = Counter()
        self.events: Counter[str] = Counter()
        self.violations: list[str] = []
        self.nodes: dict[str, SimulatedNode] = {}
        self.answers: Counter[int] = Counter()
        self.how: Counter[str] = Counter()
        self.nursery: trio.Nursery

    # What servers do --------------------------------------------------------------------------------------------------

    def start(self, launch: str, node: str) -> None:
        """A process of a launch starts."""
        self.events["starts"] += 1
        if (other := self.running.get(launch)) is not None:
            self.violate(f"{launch} starts at {node} while it runs at {other}")
        self.running[launch] = node

    def stop(self, launch: str, node: str) -> None:
        """The process of a launch has ended."""
        self.events["stops"] += 1
        if self.running.pop(launch, None) != node:
            self.violate(f"{launch} ended at {node}, where it did not run")

    def execute(self, request: int, launch: str, node: str) -> None:
        """A server does what it was asked for."""
        self.events["executions"] += 1
        self.executed[request] += 1
        if self.executed[request] > 1:
            self.violate(f"request {request} was executed twice")
        if self.running.get(launch) != node:
            self.violate(f"request {request} was executed by {launch} at {node}, where it does not run")

    def answer(self, request: int, how: str) -> None:
        """The client of a request has its answer."""
        self.answers[request] += 1
        self.how[how] += 1
        if self.answers[request] > 1:
            self.violate(f"request {request} was answered twice")

    def violate(self, what: str) -> None:
        self.violations.append(f"{trio.current_time():.3f}: {what}")

    # The network ------------------------------------------------------------------------------------------------------

    def is_cut(self, one: str, other: str) -> bool:
        return frozenset((one, other)) in self.cut

    def latency_s(self) -> float:
        """Return how long a message is on its way: a millisecond or so, and now and then a second or so."""
        late = self.random.random() < self.odds.late
        return self.random.expovariate(1.0 if late else 1000.0)

    async def ask_engine(self, node: SimulatedNode, operation: Callable[[MemoryEngine], Awaitable[T]]) -> T:
        """Have the engine do something. What is on its way to it is done even if nobody waits for it any more."""
        self.events["engine"] += 1
        await node.thawed.wait()
        if self.is_cut(node.name, ENGINE) or not self.engine_up.is_set() or self.random.random() < self.odds.lost:
            await trio.sleep(GIVE_UP_S)
            raise EngineAway
        answer = _Answer[T]()
        self.nursery.start_soon(self._deliver, operation, answer)
        await answer.done.wait()
        await node.thawed.wait()
        if self.is_cut(node.name, ENGINE) or self.random.random() < self.odds.unanswered:
            raise EngineAway
        if answer.failure is not None:
            raise answer.failure
        return answer.values[0]

    async def _deliver(self, operation: Callable[[MemoryEngine], Awaitable[T]], answer: _Answer[T]) -> None:
        await trio.sleep(self.latency_s())
        life = self.engine
        try:
            answer.values.append(await operation(life))
        except SupervisorError as error:
            answer.failure = error
        await trio.sleep(self.latency_s())
        if life is not self.engine or not self.engine_up.is_set():
            answer.failure = EngineAway()
        answer.done.set()

    async def restart_engine(self, away_s: float, *, loses: bool) -> None:
        """Have the engine be away for a while, and have it forget everything, or nothing but who waits."""
        self.engine_up = trio.Event()
        await trio.sleep(away_s)
        if loses:
            self.engine = ForgetfulEngine(self.lease_s, settles=True)
        else:
            self.engine.restart()
        self.engine_up.set()

    def lose(self, *, everything: bool) -> None:
        """Have the engine, which runs on, forget everything or some of it."""
        self.engine.lose(*(KEYS if everything else self.random.sample(KEYS, self.random.randint(1, 3))))

    async def replace_engine(self, behind_s: float) -> None:
        """Have another server take the place of the engine, which knows what this one did some seconds ago."""
        known, before = self.engine.tables(), self.engine
        await trio.sleep(behind_s)
        if self.engine is before and self.engine_up.is_set():
            self.engine = ForgetfulEngine(self.lease_s, settles=True)
            self.engine.copy(known)


class _Answer(Generic[T]):
    """What the engine answers, on its way."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self.failure: SupervisorError | None = None
        self.done = trio.Event()
