"""The actors of one launch while its child runs it: one, or several instances with one in front of them.

As long as one is wanted there is nothing in front of it. When more are wanted, those who look it up find the one in
front from then on, and the first one goes on behind it: its process is not disturbed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Protocol

import msgspec
import trio
from msgspec.structs import replace

from actors.catalogue.offer import Offer
from actors.errors import SupervisorError
from actors.instances.group import ClientLeft, InstanceGroup, Resize
from actors.instances.instance import Instance, InstanceSpec, MakeInstance
from actors.instances.settings import InstanceSettings
from actors.kit import Address, Starts
from actors.kit.directory import Directory
from actors.kit.reporter import Reporter
from actors.life.policy import RestartLog
from actors.messages import ServerStatus, StopServer
from actors.principal import ClientKey
from actors.protocol.agreement.versions import Era
from actors.registry.actor import Message as RegistryMessage
from actors.server import Profile, ServerActor, ServerMessage, Shared
from actors.server.inbox import Seat
from actors.server.operators.journal import Journal, voice_of
from actors.subscribers import LeadersOnly
from actors.transport.base import Transport
from actors.transport.http.remote import server_of
from supervisor.servers.deployment import DeployedServer
from supervisor.servers.journals.journals import Journals

# How running servers are doing, read from their actors without asking them.
#
# An actor's handler runs to its end before anybody else has a turn, so whatever is read in between is whole. To ask two
# thousand actors instead would wake all of them in one turn of the loop.

Read = Callable[[bool], ServerStatus]
"""Tells how one server is doing, at once; with its stderr, which takes some milliseconds, only for True."""


class Statuses:
    """Those of all servers that have an actor."""

    def __init__(self) -> None:
        self._read: dict[str, Read] = {}

    @contextmanager
    def register(self, server: str, read: Read) -> Iterator[None]:
        self._read[server] = read
        try:
            yield
        finally:
            self.end(server, read)

    def end(self, server: str, read: Read) -> None:
        """Read no more from an actor that has ended; another one of this name may be there already."""
        if self._read.get(server) == read:
            del self._read[server]

    def withdraw(self, server: str) -> None:
        """Say nothing more of an actor that still runs."""
        self._read.pop(server, None)

    def names(self, reported: Mapping[str, ServerStatus]) -> list[str]:
        return sorted(reported.keys() | self._read.keys())

    def of(self, server: str, reported: Mapping[str, ServerStatus], *, stderr: bool = False) -> ServerStatus | None:
        """Return how a server is doing now, or as it reported last if it has no actor; None if nothing is known."""
        read = self._read.get(server)
        return reported.get(server) if read is None else read(stderr)


class Registers(msgspec.Struct, frozen=True):
    """Where the actor of a launch is found and read, and to whom it reports."""

    directory: Directory[ServerMessage]
    statuses: Statuses
    registry: Address[RegistryMessage]


class LaunchChild(Protocol):
    """What runs a launch."""

    server: DeployedServer

    @property
    def way_free(self) -> trio.Event | None:
        """Set once a process may be started."""


class Launcher:
    """Makes the actors of launches. `connect` makes the transport of one, `reached` bounds starts of remote ones."""

    def __init__(
        self,
        connect: Callable[[DeployedServer], Transport],
        shared: Shared,
        reached: Starts,
        journals: Journals,
        registers: Registers,
    ) -> None:
        self._connect = connect
        self._shared = shared
        self._reaching = replace(shared, starts=reached)
        self._journals = journals
        self._registers = registers

    def begin(
        self, child: LaunchChild, restarts: Mapping[int, RestartLog], known: Offer | None, era: Era | None
    ) -> LaunchRun:
        """Return the actors of a child, which do not run yet. `restarts` are the logs by the number of the instance."""

        def make(spec: InstanceSpec) -> Instance:
            return self._make(child, restarts[spec.number], spec)

        return LaunchRun(child, make, self._registers, make(InstanceSpec(number=1, known=known, era=era)))

    def _make(self, child: LaunchChild, restarts: RestartLog, spec: InstanceSpec) -> Instance:
        server, seat, number, address = child.server, Seat(), spec.number, spec.address
        profile = Profile(
            name=server.name,
            transport=self._connect(replace(server, replica=address)),
            settings=server.settings,
            restarts=restarts,
            journal=self._journal(server, number),
            known=spec.known,
            era=spec.era,
            hide=server.mask,
            predecessor=child.way_free,
            seat=seat,
        )
        shared = self._shared if server.config.kind == "stdio" else self._reaching
        shared = replace(shared, subscribers=LeadersOnly(shared.subscribers, lambda: seat.leads))
        reporter = Reporter(self._registers.registry)
        actor = ServerActor(profile, shared, reporter)
        shown = server.mask(server_of(address or server.remote.url)) if server.remote.url else ""
        return Instance(number, actor, profile, reporter, address=address, shown=shown)

    def _journal(self, server: DeployedServer, number: int) -> Journal:
        journal = self._journals.make(server.name, server.mask)
        several = server.instances.several or number > 1
        return voice_of(journal, f"instance {number}") if several else journal


class LaunchRun:
    """The actors of one launch, from when they are made until they have ended."""

    def __init__(
        self,
        child: LaunchChild,
        make: MakeInstance,
        registers: Registers,
        first: Instance,
    ) -> None:
        self._server = child.server
        self._make = make
        self._registers = registers
        self._first = first
        self._nursery: trio.Nursery | None = None
        self._group: InstanceGroup | None = None
        if child.server.instances.several:
            self._group = self._gather(child.server.instances)

    @property
    def address(self) -> Address[ServerMessage]:
        return self._first.post if self._group is None else self._group.address

    def status(self, stderr: bool = False) -> ServerStatus:
        """Return how the launch is doing now."""
        return self._first.actor.status(stderr) if self._group is None else self._group.status(stderr)

    @contextmanager
    def register(self) -> Iterator[None]:
        """Have it be found."""
        name, directory = self._server.name, self._registers.directory
        directory.admit(name, self.address)
        try:
            with self._registers.statuses.register(name, self.status):
                yield
        finally:
            if directory.find(name) is self.address:
                directory.withdraw(name)

    async def run(self) -> None:
        """Run the actors until all have ended."""
        async with trio.open_nursery() as self._nursery:
            if self._group is not None:
                self._nursery.start_soon(self._group.run)
            try:
                await self._first.actor.run()
            finally:  # at once: others may read in the turns that it takes to leave what is around this
                self._registers.statuses.end(self._server.name, self.status)
            if self._group is not None:
                with suppress(SupervisorError):  # it has ended, too
                    await self._group.address.ask_in_turn(StopServer())

    async def resize(self, wanted: InstanceSettings, drain_s: float) -> None:
        """Have other instances than before; those that stay are not disturbed."""
        if self._group is not None:
            with suppress(SupervisorError):  # it has ended
                await self._group.address.ask_in_turn(Resize(wanted, drain_s))
        elif wanted.several and not self._first.actor.life.ending:
            name, before = self._server.name, self.address
            self._group = self._gather(wanted)
            if self._registers.directory.find(name) is before:
                self._registers.directory.admit(name, self.address)
            if self._nursery is not None:
                self._nursery.start_soon(self._group.run)

    def leave(self, client: ClientKey) -> None:
        """The session of a client is over, and so is the instance that it alone had."""
        if self._group is not None:
            with suppress(SupervisorError):  # full or gone: it ends when it is idle
                self._group.address.tell_nowait(ClientLeft(client))

    def _gather(self, wanted: InstanceSettings) -> InstanceGroup:
        reporter = Reporter(self._registers.registry)
        return InstanceGroup(self._server.name, self._first, self._make, self._server.settings, reporter, wanted)
