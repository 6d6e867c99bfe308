"""This daemon as a node of a fleet: what it owns runs here, what others own is reached over links.

A launch has an actor here only while this node owns it. It gets one when the first message for it comes, from a client
of this node or from another node, and loses it with the lease. So nothing can start here by itself that runs elsewhere.
"""

from __future__ import annotations

import logging
import secrets
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import trio

from actors.catalogue.offer import Offer
from actors.errors import SupervisorError
from actors.kit import Address, Latest, Reply
from actors.messages import CallServer
from actors.protocol.agreement.versions import Era
from actors.protocol.wire.jsonrpc import RemoteError
from actors.registry.actor import Message as RegistryMessage
from actors.transport.base import Transport
from supervisor.fleet.engine import Engine
from supervisor.fleet.errors import EngineSettling
from supervisor.fleet.lease import LeaseTimes
from supervisor.fleet.links.frames import ForLaunch
from supervisor.fleet.links.identity import FleetKeys
from supervisor.fleet.links.links import Links
from supervisor.fleet.membership import Membership
from supervisor.fleet.ownership import Ownership
from supervisor.fleet.placement import weight_of
from supervisor.fleet.reach import reach
from supervisor.fleet.records import Entry, Node, OfferPublished, Place
from supervisor.host.version import VERSION
from supervisor.servers.children import Servers
from supervisor.servers.deployment import DeployedServer, Deployment
from supervisor.servers.fleet.boot_clock import BootClock
from supervisor.servers.fleet.directory import FleetDirectory
from supervisor.servers.fleet.guarding import LeaseGuard
from supervisor.servers.fleet.offers import FleetOffers
from supervisor.servers.fleet.owned_transport import OwnedTransport

log = logging.getLogger(__name__)

SETTLES_S = 600.0
"""For so long an order waits for an engine that was started a moment ago: a lease is not longer."""
LAPSED = "the lease of this node in the fleet has ended; another node takes it over"
"""Why calls in flight are cut off."""


class FleetNode:
    """One for a daemon that is in a fleet. `place` names its data directory, `free_bytes` says how much it can take."""

    def __init__(
        self,
        engine: Engine,
        deployment: Latest[Deployment],
        keys: FleetKeys,
        place: str,
        free_bytes: Callable[[], int],
    ) -> None:
        self._deployment = deployment
        self._place = place
        self.calls: Callable[[], int] = lambda: 0
        """How many calls of clients of this node are under way."""
        self._free_bytes = free_bytes
        settings = deployment.value.settings.fleet
        self._name = settings.node or socket.gethostname()
        self._address = settings.listen
        times = LeaseTimes(lease_s=settings.lease_s, stop_s=min(6.0, settings.lease_s / 3))
        make = partial(secrets.token_hex, 8)
        self.membership = Membership(engine, times, BootClock(), self._describe, make, self._take)
        self.ownership = Ownership(engine, self.membership, self._end)
        self._guard = LeaseGuard()
        self.membership.on_renewed = self._guard.tell
        self.links = Links(keys, lambda: self.membership.node, self.ownership, self.deliver)
        self.offers = FleetOffers(engine, self.ownership, self.knows)
        self._servers: Servers
        self._recall: Callable[[str], Offer | None]
        self._recall_era: Callable[[str], Awaitable[Era | None]]
        self._beginning: dict[str, trio.Event] = {}
        self._nursery: trio.Nursery

    def transport(self, connect: Callable[[DeployedServer], Transport], server: DeployedServer) -> Transport:
        """Return how a server is reached as long as this node owns it; one of somebody's own runs where they are."""
        transport = connect(server)
        owned = self.knows(server.name)
        return OwnedTransport(transport, partial(self.ownership.fence, server.name)) if owned else transport

    def attach(
        self,
        servers: Servers,
        recall: Callable[[str], Offer | None],
        recall_era: Callable[[str], Awaitable[Era | None]],
    ) -> FleetDirectory:
        """Have servers run only as long as this node owns them; return where launches are found from now on.

        What is known of a launch is recalled by its name, the era that it speaks by its digest.
        """
        self._servers, self._recall, self._recall_era = servers, recall, recall_era
        servers.may_run = lambda launch: self.owns(launch) or not self.knows(launch)
        return FleetDirectory(servers.directory, self.owns, self.knows, self.send)

    def owns(self, launch: str) -> bool:
        return bool(self.ownership.fence(launch))

    def knows(self, launch: str) -> bool:
        """Say whether the configuration of this node has a launch that can run, and that all share."""
        return launch in self._deployment.value.servers

    async def run(
        self, registry: Address[RegistryMessage], *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Be a node until it is cancelled; from `started` on it is a member."""
        host, _, port = self._address.rpartition(":")
        listeners = await trio.open_tcp_listeners(int(port), host=host.strip("[]"))
        self._address = f"{host}:{listeners[0].socket.getsockname()[1]}"
        async with trio.open_nursery() as self._nursery:
            await self._nursery.start(self.links.run, listeners)
            self._nursery.start_soon(self._guard.run)
            self._nursery.start_soon(self.membership.run, self.ownership)
            await self.membership.wait_joined()
            await self.offers.read_everything()
            self._nursery.start_soon(self.offers.run, registry)
            log.info("the node %s is a member of the fleet, reached by others at %s", self._name, self._address)
            task_status.started()

    async def leave(self) -> None:
        """Leave the fleet, when nothing runs any more."""
        with trio.move_on_after(2.0):
            await self.membership.leave(self.ownership)

    # Messages ---------------------------------------------------------------------------------------------------------

    def send(self, launch: str, message: ForLaunch, reply: Reply[Any]) -> None:
        """Send a message to a launch, wherever that is."""
        reply.release()
        self._nursery.start_soon(self._send, launch, message, reply)

    async def _send(self, launch: str, message: ForLaunch, reply: Reply[Any]) -> None:
        async def here(fence: int) -> None:
            self.deliver(launch, message, reply)

        async def there(place: Place) -> None:
            answer: Reply[Any] = Reply()
            reply.on_abandon(answer.abandon)
            await self.links.ask(place, message, answer)
            reply.answer(await answer.wait())

        give_up = trio.current_time() + (message.deadline_s if isinstance(message, CallServer) else SETTLES_S)
        while not reply.settled:
            try:
                await reach(self.ownership, launch, here, there)
                return
            except EngineSettling as error:  # it is over soon
                if (again := trio.current_time() + (error.retry_after_s or 1.0)) > give_up:
                    reply.fail(error)
                    return
                await trio.sleep_until(again)
            except (SupervisorError, RemoteError) as error:
                reply.fail(error)
                return

    def deliver(self, launch: str, message: ForLaunch, reply: Reply[Any]) -> None:
        """Hand a message to a launch that this node owns; one without an actor gets one first."""
        address = self._servers.directory.find(launch)
        if address is not None:
            address.forward(message, reply)
        elif self.knows(launch):
            self._nursery.start_soon(self._deliver_late, launch, message, reply)
        else:
            reply.fail(self._servers.directory.why_not(launch))

    async def _deliver_late(self, launch: str, message: ForLaunch, reply: Reply[Any]) -> None:
        if (beginning := self._beginning.get(launch)) is not None:
            await beginning.wait()
        else:
            self._beginning[launch] = trio.Event()
            try:
                await self._begin(launch)
            finally:
                self._beginning.pop(launch).set()
        address = self._servers.directory.find(launch)
        if address is None:
            reply.fail(self._servers.directory.why_not(launch))
        elif not reply.settled:
            address.forward(message, reply)

    async def _begin(self, launch: str) -> None:
        """Make a launch an actor here."""
        server = self._deployment.value.servers[launch]
        era = await self._recall_era(server.digest)
        await self._servers.add(server, self._recall(launch), era, disabled=self._servers.is_off(launch))

    # What the fleet says of us, and we of it --------------------------------------------------------------------------

    def _describe(self) -> Node:
        return Node(
            name=self._name,
            incarnation="",
            place=self._place,
            address=self._address,
            certificate=self.links.certificate.fingerprint,
            version=VERSION,
            configuration=self._deployment.value.digest,
            weight=weight_of(self._free_bytes(), self.calls()),
        )

    def _take(self, position: int, entry: Entry) -> None:
        if isinstance(entry, OfferPublished):
            self.offers.take(entry)

    async def _end(self, launch: str) -> None:
        """End what runs of a launch whose lease is about to end."""
        await self._servers.end(launch, LAPSED)
        if (server := self._deployment.value.servers.get(launch)) is not None:
            await self._servers.absences.report_elsewhere(launch, server.config.kind)
