"""This daemon as a node of a fleet: what it owns runs here, what others own is reached over links.

A launch has an actor here only while this node owns it. It gets one when the first message for it comes, from a client
of this node or from another node, and loses it with the lease. So nothing can start here by itself that runs elsewhere.
"""

from __future__ import annotations

import logging
import secrets
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

import trio

from actors.errors import ConfigError, SpawnFailed, SupervisorError
from actors.kit import Address, Conditions, Latest
from actors.kit.want import persist
from actors.launch import is_own
from actors.registry.actor import Message as RegistryMessage
from actors.router import Router
from actors.transport.base import Connection, Transport
from actors.transport.stdio.resources.room import Room
from supervisor.fleet.engine import Engine, Entry, Lease, LeaseEnded, LeaseTimes, Node, OfferPublished, RecordPut
from supervisor.fleet.links.link import AnswerRequest
from supervisor.fleet.links.links import FleetKeys
from supervisor.fleet.links.requests import SentRequest
from supervisor.fleet.membership import Membership, NodeClock, Ownership, weight_of
from supervisor.fleet.peers import FleetStatus, NodeStatus, Peers
from supervisor.host.datadir import DataDir
from supervisor.host.version import VERSION
from supervisor.servers.children import Servers
from supervisor.servers.deployment import DeployedServer, Deployment
from supervisor.servers.fleet.configuration import SharedConfiguration
from supervisor.servers.fleet.launch_messages import FleetDirectory, LaunchKeys, LaunchMessages
from supervisor.servers.fleet.offers import FleetOffers
from supervisor.servers.fleet.records import SharedRecords
from supervisor.servers.fleet.shared import EndedSessions
from supervisor.servers.launches.running import Launches
from supervisor.store import Rows
from supervisor.store.records import FleetRecord

# The process that guards the lease of this daemon, for as long as the daemon is a node; see `lease_guard.py`.

SCRIPT: Final = Path(__file__).with_name("lease_guard.py")
SHIM: Final = Path(__file__).parents[3] / "actors" / "transport" / "stdio" / "kill_shim.py"
AGAIN_S: Final = 1.0
"""Between the end of one and the start of another."""


class LeaseGuard:
    """`tell` is called with each new lease. Where there are no shims (not on Linux) it guards nothing."""

    def __init__(self, conditions: Conditions) -> None:
        self._conditions = conditions
        self._newest: Lease | None = None
        self._bell = trio.lowlevel.ParkingLot()

    def tell(self, lease: Lease) -> None:
        self._newest = lease
        self._bell.unpark()

    async def run(self) -> None:
        """Keep one process, and tell it of each lease. One that died is replaced."""
        if sys.platform != "linux":
            return
        while True:
            process = await persist(self._conditions, "lease guard", self._start)
            try:
                await self._tell_all(process)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                await process.wait()
                await trio.sleep(AGAIN_S)
            finally:
                with trio.CancelScope(shield=True), trio.move_on_after(1.0):
                    assert process.stdin is not None
                    await process.stdin.aclose()
                    await process.wait()

    async def _start(self) -> trio.Process:
        return await trio.lowlevel.open_process(
            [sys.executable, "-I", "-S", str(SCRIPT), str(SHIM)],
            stdin=subprocess.PIPE,
            process_group=0,  # not a session: a child of ours in another one is taken for an orphan and swept
        )

    async def _tell_all(self, process: trio.Process) -> None:
        assert process.stdin is not None
        while True:
            if self._newest is not None:
                await process.stdin.send_all(b"%d\n" % int(self._newest.ends * 1e9))
            await self._bell.park()


# How a server is reached that only the owner of its launch may reach.

NOT_OURS = "this node of the fleet does not own it any more"


class OwnedTransport:
    """Implements `Transport`. `fence` gives that by which this node owns the launch now; 0 if it does not."""

    def __init__(self, inner: Transport, fence: Callable[[], int]) -> None:
        self.kind = inner.kind
        self._inner = inner
        self._fence = fence

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """Start one incarnation, if the launch is ours before and after."""
        fence = self._fence()
        if not fence:
            raise SpawnFailed(NOT_OURS)
        async with self._inner.connect() as connection:
            if self._fence() != fence:
                raise SpawnFailed(NOT_OURS)
            yield connection


log = logging.getLogger(__name__)

LEAVE_S = 2.0
WEIGHT_S = 60.0
"""How long a node says the same of its weight, unless it is another one by far."""
LAPSED = "the lease of this node in the fleet has ended; another node takes it over"
"""Why calls in flight are cut off."""


class FleetNode:
    """One for a daemon that is in a fleet. Implements `Peers`, too.

    `data` names its place and its process, `room` says how much it can take, `store` keeps what it has seen of records.
    """

    def __init__(
        self,
        engine: Engine,
        deployment: Latest[Deployment],
        keys: FleetKeys,
        data: DataDir,
        room: Room,
        store: Rows[FleetRecord],
    ) -> None:
        self._deployment = deployment
        self._keys = LaunchKeys(deployment)
        self._place = data.place
        self.life = data.life.hex()
        self.peers: Peers | None = self
        self._room = room
        settings = deployment.value.settings.fleet
        self.name = settings.node or socket.gethostname()
        self._address = settings.listen
        times = LeaseTimes(lease_s=settings.lease_s, stop_s=min(6.0, settings.lease_s / 3))
        make = partial(secrets.token_hex, 8)
        self._clock = NodeClock()
        self._weight = 0, 0.0
        self._guard = LeaseGuard(room.conditions)
        self.membership = Membership(
            engine,
            times,
            self._clock,
            self._describe,
            make,
            self._take,
            room.conditions,
            on_renewed=self._guard.tell,
            on_joined=self._want_everything,
        )
        self.ownership = Ownership(engine, self.membership, self._end)
        self._fleet_keys = keys
        self._engine = engine
        self._ended = EndedSessions(engine)
        self.note_ended, self.flush_sessions = self._ended.note, self._ended.flush
        self.offers = FleetOffers(engine, self.ownership, self._keys)
        self.records = SharedRecords(engine, keys.all, store=store)
        self.configuration = SharedConfiguration(self.records, deployment, self.name, self.membership.hurry)
        self._servers: Servers
        self.messages: LaunchMessages
        """Has to run before clients can connect: what they send waits until this node is a member."""
        self._router: Router
        self._nursery: trio.Nursery

    def transport(self, connect: Callable[[DeployedServer], Transport], server: DeployedServer) -> Transport:
        """Return how a server is reached as long as this node owns it."""
        transport = connect(server)
        return OwnedTransport(transport, partial(self.ownership.fence, self._keys.key(server.name)))

    def may_run(self, launch: str) -> bool:
        """Say whether a launch may have an actor here: one that this node owns, or that no node can own."""
        return self.owns(launch) or not (is_own(launch) or self._keys.has(launch))

    def attach(self, servers: Servers, launches: Launches) -> FleetDirectory:
        """Know what runs here; return where launches are found from now on."""
        self._servers = servers
        self._keys.knows = launches.knows
        self.messages = LaunchMessages(
            self._deployment, self._keys, self.ownership, self._fleet_keys, servers, launches
        )
        self.links = self.messages.links
        launches.dropped = self.messages.drop
        launches.directory = FleetDirectory(servers.directory, self.messages)
        return launches.directory

    def owns(self, launch: str) -> bool:
        return bool(self.ownership.fence(self._keys.key(launch)))

    async def run(
        self,
        registry: Address[RegistryMessage],
        router: Router,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Be a node until it is cancelled, and a member of the fleet whenever it can be. Raises `ConfigError`.

        How much may be placed here depends on the calls of clients of this node, which `router` has.
        """
        self._router = router
        host, _, port = self._address.rpartition(":")
        try:
            listeners = await trio.open_tcp_listeners(int(port), host=host.strip("[]"))
        except OSError as error:
            text, hint = (
                f"cannot listen at {self._address}: {error.strerror or error}",
                "name another one of this machine",
            )
            raise ConfigError(text, key="supervisor.fleet.listen", hint=hint) from None
        self._address = f"{host}:{listeners[0].socket.getsockname()[1]}"
        async with trio.open_nursery() as self._nursery:
            await self._nursery.start(self.links.run, listeners)
            self._nursery.start_soon(self._guard.run)
            self._nursery.start_soon(self._ended.run)
            self._nursery.start_soon(self.messages.subscriptions.run)
            self._nursery.start_soon(self.records.run)
            self._nursery.start_soon(self.membership.run, self.ownership)
            self._nursery.start_soon(self.offers.run, registry)
            self._nursery.start_soon(self._follow_deployment)
            log.info("the node %s of the fleet is reached by others at %s", self.name, self._address)
            task_status.started()

    async def leave(self) -> None:
        """Leave the fleet, when nothing runs any more and the others have their answers; without the engine the lease
        ends by itself.
        """
        with trio.move_on_after(LEAVE_S):
            await self.links.close()
        with trio.move_on_after(LEAVE_S), suppress(SupervisorError):
            await self.membership.leave(self.ownership)

    def status(self) -> FleetStatus:
        """Return the fleet as this node sees it now."""
        membership, own = self.membership, self.membership.node
        left_s = 0.0 if membership.lease is None else membership.lease.serves_until - self._clock.now()
        members = sorted(membership.members.all(), key=lambda node: node.name)
        return FleetStatus(
            node=self.name,
            member=membership.holds,
            lease_s=max(0.0, left_s),
            owns=tuple(sorted(filter(None, map(self._keys.name, self.ownership.fences())))),
            position=membership.position,
            draining=self.ownership.draining,
            published=self.configuration.newest,
            nodes=tuple(NodeStatus.of(node, own) for node in members),
        )

    # Moving ----------------------------------------------------------------------------------------------------------

    async def drain(self, *, undo: bool = False) -> int:
        """Take no servers any more, and give up those that there are, when their calls have ended; return how many.

        Calls that come meanwhile go to the nodes that take them over. `undo`: take servers again.
        """
        self.ownership.draining = not undo
        self.membership.hurry()
        return 0 if undo else await self.messages.move_all()

    async def end(self, drain_s: float) -> None:
        """Give all servers to others, if there are any, and begin none any more: the daemon ends."""
        if len(self.membership.members.all()) > 1:
            self.ownership.draining = True
            self.membership.hurry()
            await self.messages.move_all(drain_s)

    def close(self) -> None:
        """Begin no server any more."""
        self.messages.ending = True

    # Requests of clients ---------------------------------------------------------------------------------------------

    def answer_with(self, answer: AnswerRequest) -> None:
        """Have requests of clients of other nodes answered here from now on."""
        self.links.answer = answer

    def others(self) -> list[Node]:
        return [node for node in self.membership.members.all() if node.life != self.life]

    def find(self, life: str) -> Node | None:
        node = self.membership.members.find_life(life)
        return None if life == self.life else node

    def heir(self, session: str) -> Node | None:
        node = self.membership.members.heir(session) if self.membership.holds else None
        if node is None:
            raise LeaseEnded("this node is no member of the fleet now; retry shortly", retry_after_s=1.0)
        return None if node.life == self.life else node

    async def has_ended(self, session: str) -> bool:
        return await self._engine.has_ended(session)

    async def request(self, node: Node, head: bytes, body: bytes) -> SentRequest:
        return await self.links.request(node, head, body)

    # What the fleet says of us, and we of it --------------------------------------------------------------------------

    def _describe(self) -> Node:
        return Node(
            name=self.name,
            incarnation="",
            place=self._place,
            address=self._address,
            life=self.life,
            certificate=self.links.certificate.fingerprint,
            version=VERSION,
            configuration=self._keys.digest(),
            published=self.configuration.in_use,
            refused=self.configuration.refusal,
            weight=0 if self.ownership.draining else self._weigh(),
        )

    def _weigh(self) -> int:
        """Return how much may be placed here. It stays the same for a while: each change is told to every node."""
        weight, now = weight_of(self._room.look().available or 0, self._router.in_flight.calls), self._clock.now()
        told, told_at = self._weight
        if now - told_at >= WEIGHT_S or not told / 2 < weight < told * 2:
            self._weight = weight, now
        return self._weight[0]

    def _want_everything(self) -> None:
        self.offers.want_everything()
        self.records.want_everything()

    def _take(self, position: int, entry: Entry) -> None:
        if isinstance(entry, OfferPublished):
            self.offers.take(entry)
        elif isinstance(entry, RecordPut):
            self.records.take(entry)

    async def _end(self, key: str) -> None:
        """End what runs of a launch whose lease is about to end; the reload has ended what is started another way.

        One that not all share may be leaving, as nobody has it any more.
        """
        if launch := self._keys.launch(key) if is_own(key) else self._keys.name(key):
            await self._servers.end(launch, LAPSED)
            self.links.move(key)
            await self.messages.show_elsewhere(launch)

    async def _follow_deployment(self) -> None:
        """Own launches no longer that this node would start another way by now."""
        while True:
            await self._deployment.wait_newer(self._deployment.version)
            self.offers.want_everything()
            self.membership.hurry()
            for key in [key for key in self.ownership.fences() if not self._keys.name(key)]:
                with suppress(SupervisorError):  # then others find out when the lease ends
                    await self.messages.give_up(key)
