"""A server actor over the memory transport, with its facts collected. Bounded by the virtual clock."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar
from unittest import mock

import msgspec
import trio
from trio.testing import wait_all_tasks_blocked

from actors.catalogue.offer import Offer
from actors.catalogue.trust import TRUSTING, PinKeeper
from actors.kit import Mailbox, Reply, Starts
from actors.kit.reporter import Reporter
from actors.life.policy import RestartLog, RestartPolicy
from actors.life.states import State
from actors.messages import (
    Caller,
    CallServer,
    Departure,
    EraLearned,
    ReadServer,
    Refreshed,
    RefreshServer,
    RestartServer,
    Result,
    ServerChanged,
    ServerListed,
    ServerStatus,
    SleepServer,
    StopServer,
    WakeServer,
)
from actors.protocol.agreement.era import Identity
from actors.protocol.agreement.versions import Era
from actors.protocol.changes import SUBSCRIBE
from actors.protocol.exchanges import NOTHING, Interest
from actors.server import Profile, ServerActor, ServerSettings, Shared, incarnation
from actors.server.operators.journal import Journal
from actors.subscribers import Subscribers
from actors.transport.base import Transport
from tests.fakes.mcp_server import FakeServer
from tests.fakes.memory import MemoryTransport
from tests.fakes.turns import at_once

F = TypeVar("F")
WEEK_S = 7 * 86400.0


@dataclass
class Rig:
    """One running actor. `facts` is what it reported."""

    actor: ServerActor
    fake: FakeServer
    restarts: RestartLog
    journal: Journal
    facts: list[Any] = field(default_factory=list)
    told: trio.Event = field(default_factory=trio.Event)

    def take(self, fact: Any) -> None:
        """Note what the actor reported."""
        self.facts.append(fact)
        self.told.set()
        self.told = trio.Event()

    async def until_listed(self, times: int) -> None:
        """Wait until the actor has told so often what its server lists."""
        while len(self.listed) < times:
            await self.told.wait()

    async def call(
        self,
        tool: str = "echo",
        deadline_s: float = 60.0,
        exchange: Caller | None = None,
        interest: Interest = NOTHING,
        **arguments: Any,
    ) -> Any:
        """Call a tool and return its structured content."""
        return await content(self.submit(tool, deadline_s, exchange, interest, **arguments))

    def submit(
        self,
        tool: str = "echo",
        deadline_s: float = 60.0,
        exchange: Caller | None = None,
        interest: Interest = NOTHING,
        how: Mapping[str, Any] = MappingProxyType({}),
        **arguments: Any,
    ) -> Reply[Result]:
        """Call a tool, and return where its answer will be. `how`: what else the message has."""
        members = b'"name":' + json.dumps(tool).encode() + b',"arguments":' + json.dumps(arguments).encode()
        message = CallServer(
            server="s",
            method="tools/call",
            members=members,
            name=tool,
            interest=interest,
            exchange=exchange,
            deadline_s=deadline_s,
            **how,
        )
        return self.actor.address.request(message)

    async def watch(self, uri: str, method: str = SUBSCRIBE) -> Any:
        """Subscribe to a resource, or end that, and return the result."""
        members = b'"uri":' + json.dumps(uri).encode()
        result = await self.actor.address.ask(CallServer(server="s", method=method, members=members, name=uri))
        return msgspec.json.decode(result.body)

    async def wake(self, *, operator: bool = False, urgent: bool = True) -> None:
        await self.actor.address.ask(WakeServer(server="s", operator=operator, urgent=urgent))

    async def sleep(self) -> None:
        await self.actor.address.ask(SleepServer(server="s"))

    async def restart(self) -> None:
        await self.actor.address.ask(RestartServer(server="s"))

    async def refresh(self) -> Refreshed:
        return await self.actor.address.ask(RefreshServer(server="s"))

    @property
    def story(self) -> list[str]:
        """What was told of the server, in order."""
        lines = self.journal.render(self.journal.last(1000))
        return [line.text for line in lines if line.source == "supervisor"]

    async def stop(self) -> None:
        await self.actor.address.ask(StopServer())

    def leave(
        self, successor: Rig | None = None, reason: str = "it was replaced", drain_s: float = 30.0
    ) -> Reply[None]:
        """Have the server leave, and return where it says that nothing of it is left."""
        address = successor.actor.address if successor is not None else None
        return self.actor.address.request(StopServer(Departure(reason=reason, drain_s=drain_s, successor=address)))

    async def status(self, *, stderr: bool = False) -> ServerStatus:
        return await self.actor.address.ask(ReadServer(stderr=stderr))

    async def reach(self, state: State) -> None:
        """Let time pass until the state is reached."""
        while self.actor.life.state is not state:
            with trio.move_on_after(1.0):  # not everything is told
                await self.told.wait()
            await wait_all_tasks_blocked()

    def of(self, kind: type[F]) -> list[F]:
        return [fact for fact in self.facts if isinstance(fact, kind)]

    @property
    def states(self) -> list[State]:
        return [fact.status.state for fact in self.of(ServerChanged)]

    @property
    def listed(self) -> list[list[str]]:
        return [[tool.name for tool in fact.offer.tools] for fact in self.of(ServerListed)]

    @property
    def eras(self) -> list[Era]:
        return [fact.era for fact in self.of(EraLearned)]


async def content(call: Reply[Result]) -> Any:
    """Wait for a call, and return its structured content."""
    return msgspec.json.decode((await call.wait()).body)["structuredContent"]


async def _at_once(decode: Callable[[], Any]) -> Any:
    """Decode as if a thread did it: a virtual clock would run on while a real one works."""
    await trio.lowlevel.checkpoint()
    return decode()


@asynccontextmanager
async def running_server(
    fake: FakeServer | None = None,
    *,
    settings: ServerSettings | None = None,
    policy: RestartPolicy | None = None,
    transport: Transport | None = None,
    starts: Starts | None = None,
    known: Offer | None = None,
    era: Era | None = "legacy",
    hide: Callable[[str], str] = str,
    now_s: float = 0.0,
    subscribers: Subscribers | None = None,
    predecessor: trio.Event | None = None,
    keeper: PinKeeper = TRUSTING,
) -> AsyncIterator[Rig]:
    """Run a server actor for the block, at most a week of virtual time; everything is settled at the end.

    `now_s` is the unix time, which stands still. `predecessor`: see `Profile`.
    """
    fake = fake or FakeServer()
    restarts = RestartLog(policy or RestartPolicy(), lambda: 1.0)
    box: Mailbox[Any] = Mailbox(4096)
    journal = Journal(lambda: 0.0)
    actor = ServerActor(
        Profile(
            name="s",
            transport=transport or MemoryTransport(fake.serve),
            settings=settings or ServerSettings(),
            restarts=restarts,
            journal=journal,
            known=known,
            era=era,
            hide=hide,
            predecessor=predecessor,
        ),
        Shared(
            starts=starts or Starts(),
            clock=lambda: now_s,
            identity=Identity(),
            subscribers=subscribers or Subscribers(at_once),
            keeper=keeper,
        ),
        Reporter(box.address),
    )
    rig = Rig(actor, fake, restarts, journal)

    async def collect() -> None:
        while True:
            rig.take((await box.receive()).message)

    with mock.patch.object(incarnation, "decode_in_thread", _at_once), trio.fail_after(WEEK_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(collect)
            nursery.start_soon(actor.run)
            yield rig
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
    assert fake.starts == fake.exits
