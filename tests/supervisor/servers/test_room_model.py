"""Servers that take turns under a limit, as a model: any sizes, any limit, calls in any order.

The model has the claims and the choice that a daemon has, and nothing of its tasks: who calls waits until a look finds
room, one look puts at most one server to sleep, and a server that is sleeping takes a while to end.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from actors.transport.stdio.resources.allotment import MemoryBounds, MemoryLook
from actors.transport.stdio.resources.room import Claim, Claims
from supervisor.servers.pressure import Amounts, IdleServer, choose

MACHINE = 1000
UNKNOWN = 80
numbers = st.integers(0, 5)


class ModelServer(msgspec.Struct):
    size: int
    state: Literal["asleep", "waiting", "busy", "idle", "ending"] = "asleep"
    expected: int = UNKNOWN
    used_at: float = 0.0
    wanted: bool = False
    claim: Claim | None = None


class TurnsUnderALimit(RuleBasedStateMachine):
    @initialize(
        sizes=st.lists(st.integers(1, 300), min_size=1, max_size=6),
        limit=st.none() | st.integers(1, 500),
        reserve=st.integers(0, 600),
    )
    def begin(self, sizes: list[int], limit: int | None, reserve: int) -> None:
        self.servers = [ModelServer(size) for size in sizes]
        self.bounds = MemoryBounds(limit_bytes=limit, reserve_bytes=reserve)
        self.claims = Claims()
        self.now = 0.0

    def memory(self) -> MemoryLook:
        taken = sum(each.size for each in self.servers if each.claim is not None)
        return MemoryLook(total=MACHINE, available=MACHINE - taken)

    def lack(self, server: ModelServer) -> int:
        return self.claims.lack(server.expected, self.now, self.bounds, self.memory())[0]

    def gives(self, server: ModelServer) -> Amounts:
        return Amounts(memory=self.claims.of(str(self.servers.index(server)), self.now))

    @rule(number=numbers)
    def call(self, number: int) -> None:
        server = self.servers[number % len(self.servers)]
        if server.state == "ending":
            server.wanted = True
        elif server.state in ("asleep", "idle"):
            server.state = "waiting" if server.state == "asleep" else "busy"
            server.used_at = self.now
            if server.state == "waiting":
                self.start()

    @rule(number=numbers)
    def answer(self, number: int) -> None:
        server = self.servers[number % len(self.servers)]
        if server.state == "busy":
            server.state, server.used_at = "idle", self.now

    @rule(seconds=st.floats(0.05, 20))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def measure(self) -> None:
        for pid, server in enumerate(self.servers):
            if server.claim is not None:
                self.claims.see(pid, server.size)
                server.expected = server.size

    @rule()
    def look(self) -> None:
        self.start()
        lacks = [self.lack(each) for each in self.servers if each.state == "waiting"]
        idle = [
            IdleServer(launch=str(number), used_at=each.used_at, gives=self.gives(each))
            for number, each in enumerate(self.servers)
            if each.state == "idle"
        ]
        ending = [self.gives(each) for each in self.servers if each.state == "ending"]
        missing = max(lacks, default=0)
        chosen = choose(idle, Amounts(memory=missing), ending)
        assert chosen is None or missing > sum(each.memory for each in ending), "what is on its way is enough"
        if chosen is not None:
            self.servers[int(chosen)].state = "ending"

    @rule(number=numbers)
    def end(self, number: int) -> None:
        number %= len(self.servers)
        server = self.servers[number]
        if server.state != "ending" or server.claim is None:
            return
        others = ModelServer(1, expected=MACHINE)
        before, gives = self.lack(others), self.gives(server).memory
        self.claims.end(number, server.claim)
        server.claim = None
        if self.bounds.limit_bytes is not None and any(each.claim is not None for each in self.servers):
            assert before - self.lack(others) == gives, "what sleeps frees what it counted with, at once"
        server.state, server.wanted = "waiting" if server.wanted else "asleep", False

    def start(self) -> None:
        for pid, server in enumerate(self.servers):
            if server.state == "waiting" and self.lack(server) <= 0:
                launch = str(pid)
                self.claims.start(launch, server.expected, self.now)
                server.claim, server.state = self.claims.run(pid, launch, server.expected, self.now), "busy"

    @rule()
    def everybody_has_a_turn_once_the_others_are_idle(self) -> None:
        for _ in range(8 * len(self.servers)):
            self.look()
            for number in range(len(self.servers)):
                self.answer(number)
                self.end(number)
        for server in self.servers:
            if server.state == "waiting":
                assert all(each.state in ("asleep", "waiting") for each in self.servers), "somebody could have slept"
                assert server.expected + self.bounds.reserve_of(MACHINE) > MACHINE, "it waits for room that is there"

    @invariant()
    def nobody_waits_for_room_that_is_there(self) -> None:
        for server in getattr(self, "servers", ()):
            if server.state == "waiting" and not any(each.claim is not None for each in self.servers):
                assert self.lack(server) <= max(0, server.expected + self.bounds.reserve_of(MACHINE) - MACHINE)


TestTurnsUnderALimit = TurnsUnderALimit.TestCase
TestTurnsUnderALimit.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
