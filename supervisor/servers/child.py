"""One server as a child of the supervisor, as one configuration has it.

When that changes, the child does not: another one takes its place, and begins where this one has ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import trio

from actors.errors import ActorStopped
from actors.instances.settings import InstanceSettings
from actors.kit import Address
from actors.messages import Departure, ReadServer, StopServer
from actors.principal import ClientKey
from actors.server import ServerMessage
from actors.server.settings import DRAIN_S
from supervisor.servers.deployment import DeployedServer


class RunningLaunch(Protocol):
    """What a child has while it runs: one actor, or several behind one address."""

    @property
    def address(self) -> Address[ServerMessage]:
        """Where it is spoken to now."""

    async def resize(self, wanted: InstanceSettings, drain_s: float) -> None:
        """Have other instances; those that end have so many seconds."""

    def leave(self, client: ClientKey) -> None:
        """The session of a client is over, and so is the instance that it alone had."""


class Child:
    """`on`: it may run. `settled` once what follows from that is done: the server is found, or it has stopped for good.

    `gone` is set once nothing is left of it, nor of its predecessor. `address` is that of its actor, None while it has
    none: it is off, or its actor crashed. `scope` is that of its task.
    """

    def __init__(
        self, server: DeployedServer, *, on: bool, predecessor: Child | None = None, drain_s: float = DRAIN_S
    ) -> None:
        """The `predecessor` leaves once there is a successor: its calls in flight have `drain_s` seconds then."""
        self.server = server
        self.on = on
        self.leaving = False
        self.scope = trio.CancelScope()
        self._launch: RunningLaunch | None = None
        self.settled = trio.Event()
        self.gone = trio.Event()
        self._turned = trio.Event()
        self._predecessor = predecessor
        self._drain_s = drain_s
        if not on:
            self.settled.set()

    @property
    def name(self) -> str:
        return self.server.name

    def turn(self, *, on: bool) -> None:
        """Switch it on or off; what follows from it is not settled yet."""
        self.on = on
        self.settled = trio.Event()
        self._turned.set()
        self._turned = trio.Event()

    async def wait_on(self) -> None:
        while not self.on:
            await self._turned.wait()

    @property
    def address(self) -> Address[ServerMessage] | None:
        return None if self._launch is None else self._launch.address

    @contextmanager
    def act(self, launch: RunningLaunch) -> Iterator[None]:
        self._launch = launch
        try:
            yield
        finally:
            self._launch = None

    def part(self, client: ClientKey) -> None:
        """The session of a client is over."""
        if self._launch is not None:
            self._launch.leave(client)

    async def resize(self, server: DeployedServer, drain_s: float) -> None:
        """Have as many instances as a server is to have now that is the same otherwise."""
        self.server = server
        if self._launch is not None:
            await self._launch.resize(server.instances, drain_s)

    @property
    def way_free(self) -> trio.Event | None:
        """Set once a process may be started: two at once could want the same file or port. None: from the start.

        What has to be gone is the last process before it, also where an address came between the two.
        """
        before = self if self.server.config.kind == "stdio" else None
        while before is not None:
            before = before._predecessor
            if before is not None and before.server.config.kind == "stdio":
                return before.gone
        return None

    async def take_over(self, reason: str) -> None:
        """Have the predecessor leave, unless it does already; who waits there is passed on to the actor of this one."""
        before = self._predecessor
        if before is not None and not before.leaving:
            await before.leave(Departure(reason=reason, drain_s=self._drain_s, successor=self.address))

    async def end(self) -> None:
        """Be gone, as soon as the predecessor is. Who waits for it to come up or go down waits no longer."""
        self.settled.set()
        if self._predecessor is not None:
            await self._predecessor.gone.wait()
            self._predecessor = None
        self.gone.set()

    async def leave(self, departure: Departure) -> None:
        """Begin to leave; from then on its actor reports nothing. Without an actor it is over at once."""
        self.leaving = True
        address = self.address
        if address is None:
            self.scope.cancel()
            return
        try:
            await address.request_in_turn(StopServer(departure))
            await address.ask_in_turn(ReadServer())  # it has read what was put before
        except ActorStopped:
            self.scope.cancel()
