"""Messages for launches of a fleet: sent to wherever a launch is, and handed over where it is owned.

A launch gets its actor with the first message for it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Protocol

import msgspec
import trio
from msgspec.structs import replace

from actors.catalogue.offer import Offer
from actors.errors import ShuttingDown, SupervisorError
from actors.kit import Latest, Reply
from actors.launch import is_own, server_of
from actors.messages import CallServer, WakeServer
from actors.principal import Principal
from actors.protocol.agreement.versions import Era
from actors.protocol.wire.jsonrpc import RemoteError
from supervisor.fleet.errors import Elsewhere, EngineSettling, LeaseEnded
from supervisor.fleet.links.frames import ForLaunch
from supervisor.fleet.links.links import Links
from supervisor.fleet.ownership import Ownership, reach
from supervisor.fleet.records import Place
from supervisor.servers.children import Servers
from supervisor.servers.deployment import DeployedServer, Deployment
from supervisor.servers.fleet.directory import LaunchAddress
from supervisor.servers.fleet.launch_keys import LaunchKeys

DRAINED = "its node is drained; another node takes it over"
SETTLES_S = 600.0
"""For so long an order waits for an engine that was started a moment ago: a lease is not longer."""
JOINS_S = 3.0
"""For so long a call waits for this node to be a member, which it is soon after its start. A first look at what a
server offers has time."""
LOOK_AGAIN_S = 0.05


class OwnLaunches(Protocol):
    """The launches that not all share, each of somebody who may be known at other nodes alone."""

    def holder_of(self, launch: str, principal: Principal) -> Principal:
        """Return one of those who have a launch: `principal`, if that is one, and also if there is none."""

    async def introduce(self, principal: Principal) -> None:
        """Have what is started for somebody be known."""

    async def begin(self, launch: str) -> None:
        """Make a launch an actor that this node owns, if somebody has it."""

    def end_here(self, launch: str) -> None:
        """A launch has no actor any more."""


class LaunchMemory(msgspec.Struct, frozen=True):
    """What is known of a launch: what it offers by its name, the era that it speaks by its digest."""

    offer: Callable[[str], Offer | None]
    era: Callable[[str], Awaitable[Era | None]]


class LaunchMessages:
    """Those that clients of this node send, and those that come from other nodes. Both settle in any case.

    `leaving` are launches that this node gives up, by their keys, with what is set when it has.
    """

    def __init__(
        self,
        deployment: Latest[Deployment],
        keys: LaunchKeys,
        ownership: Ownership,
        links: Links,
        servers: Servers,
        known: LaunchMemory,
        own: OwnLaunches,
    ) -> None:
        self.leaving: dict[str, trio.Event] = {}
        self.ending = False
        """The daemon ends: nothing is begun here any more."""
        self.moved: Callable[[str], None] = lambda launch: None
        """Called with each launch that does not run here any more, as another node may have it."""
        self._deployment = deployment
        self._keys = keys
        self._ownership = ownership
        self._links = links
        self._servers = servers
        self._known = known
        self._own = own
        self._beginning: dict[str, trio.Event] = {}
        self._nursery: trio.Nursery

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Have a task for each message that waits; from `started` on."""
        async with trio.open_nursery() as self._nursery:
            task_status.started()
            await trio.sleep_forever()

    def send(self, launch: str, message: ForLaunch, reply: Reply[Any]) -> None:
        """Send a message to a launch, wherever that is."""
        reply.release()
        self._nursery.start_soon(self._send, launch, message, reply)

    async def _send(self, launch: str, message: ForLaunch, reply: Reply[Any]) -> None:
        key = self._keys.key(launch)
        if is_own(launch):  # whoever takes it can tell by that how it is started
            message = replace(message, principal=self._own.holder_of(launch, message.principal))

        async def here(fence: int) -> None:
            answer: Reply[Any] = Reply()
            reply.on_abandon(lambda: answer.abandon(reply.abandoned_for))
            self.deliver(key, message, answer)
            reply.answer(await answer.wait())

        async def there(place: Place) -> None:
            answer: Reply[Any] = Reply()
            reply.on_abandon(lambda: answer.abandon(reply.abandoned_for))
            await self._links.ask(place, message, answer)
            reply.answer(await answer.wait())

        began, in_no_hurry = trio.current_time(), isinstance(message, WakeServer) and not message.urgent
        settled_by = began + (message.deadline_s if isinstance(message, CallServer) else SETTLES_S)
        joined_by = began + (SETTLES_S if in_no_hurry else JOINS_S)
        while not reply.settled:
            try:
                await reach(self._ownership, key, here, there)
                return
            except EngineSettling as error:  # it is over soon
                if (again := trio.current_time() + (error.retry_after_s or 1.0)) > settled_by:
                    reply.fail(error)
                    return
                await trio.sleep_until(again)
            except LeaseEnded as error:  # it may be on its way to the next one
                if trio.current_time() > joined_by:
                    reply.fail(error)
                    return
                with trio.move_on_at(joined_by):
                    await self._ownership.membership.wait_joined()
                await trio.sleep(LOOK_AGAIN_S)
            except (SupervisorError, RemoteError) as error:
                reply.fail(error)
                return

    def deliver(self, key: str, message: ForLaunch, reply: Reply[Any]) -> None:
        """Hand a message to a launch that this node owns; one without an actor gets one first."""
        launch = self._keys.name(key)
        message = replace(message, server=launch)
        if self.ending:
            reply.fail(ShuttingDown())
        elif not launch:
            self._nursery.start_soon(self._deliver_to_stranger, key, message, reply)
        elif (leaving := self.leaving.get(key)) is not None:
            self._nursery.start_soon(self._pass_on, key, leaving, message, reply)
        elif (address := self._servers.directory.find(launch)) is not None:
            address.forward(message, reply)
        else:
            self._nursery.start_soon(self._deliver_late, key, launch, message, reply)

    async def _deliver_to_stranger(self, key: str, message: ForLaunch, reply: Reply[Any]) -> None:
        """Hand a message over that is for a launch of somebody who was not here yet, or for none."""
        try:
            if is_own(self._keys.launch(key)):
                await self._own.introduce(message.principal)
            if self._keys.name(key):
                self.deliver(key, message, reply)
            else:
                await self._refuse(key, reply)
        except SupervisorError as error:
            reply.fail(error)

    async def _deliver_late(self, key: str, launch: str, message: ForLaunch, reply: Reply[Any]) -> None:
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
            owned = self._ownership.fence(key)  # else it was given up meanwhile
            reply.fail(self._servers.directory.why_not(launch) if owned else Elsewhere(None))
        elif not reply.settled:
            address.forward(message, reply)

    async def _pass_on(self, key: str, leaving: trio.Event, message: ForLaunch, reply: Reply[Any]) -> None:
        """Have a message go to the node that takes a launch over which leaves this one."""
        await leaving.wait()
        try:
            place = await self._ownership.find(key, {self._ownership.membership.node.incarnation})
        except SupervisorError as error:
            reply.fail(error)
            return
        if self._ownership.is_here(place):  # no other one takes it
            self.deliver(key, message, reply)
        else:
            reply.fail(Elsewhere(place))

    async def _refuse(self, key: str, reply: Reply[Any]) -> None:
        """Have whoever asks find another node: this one starts it otherwise by now, if at all."""
        await self.give_up(key)
        reply.fail(Elsewhere(None))

    async def give_up(self, key: str) -> bool:
        """Own a launch no longer, as soon as nothing of it runs that was told to leave; all of it leaves where this
        node starts it otherwise by now.

        False: it was begun again meanwhile, and is ours still.
        """
        launch = self._keys.launch(key)

        def is_it(server: DeployedServer) -> bool:
            return self._keys.key_of(server) == key

        await self._servers.wait_gone(launch, lambda server: is_it(server) and not self._keys.name(key))
        if not await self._ownership.release(key, lambda: self._servers.runs(launch, is_it)):
            return False
        self._links.move(key)
        return True

    def drop(self, launch: str) -> None:
        """Give a launch up that nobody has any more, as soon as nothing of it runs."""
        self._nursery.start_soon(self._drop, self._keys.key(launch))

    async def _drop(self, key: str) -> None:
        with suppress(SupervisorError):  # then it is ours until the lease ends
            await self.give_up(key)

    async def move_all(self, drain_s: float | None = None) -> int:
        """Have all launches go to other nodes, each when its calls have ended, within `drain_s` or as for a reload.

        Return how many there were, when nothing of them runs here. Whoever waits for that may go away.
        """
        drain_s = self._deployment.value.settings.reload_drain_s if drain_s is None else drain_s
        for key in self._ownership.fences():
            if key not in self.leaving and (launch := self._keys.name(key)):
                self.leaving[key] = trio.Event()
                self._nursery.start_soon(self._move, key, launch, drain_s)
        moving = [*self.leaving.values()]
        for moved in moving:
            await moved.wait()
        return len(moving)

    async def _move(self, key: str, launch: str, drain_s: float) -> None:
        await self._servers.remove(launch, DRAINED, drain_s, LaunchAddress(launch, self.send))
        self._own.end_here(launch)
        stays = False
        with suppress(SupervisorError):  # then the others wait until the lease ends
            stays = not await self.give_up(key)
        if not stays:
            await self.show_elsewhere(launch)
        self.leaving.pop(key).set()

    async def show_elsewhere(self, launch: str) -> None:
        """Show a launch as one that does not run here."""
        self._own.end_here(launch)
        entry = self._deployment.value.entries.get(server_of(launch))
        if entry is not None and self._keys.has(launch):  # else it is configured no longer, or nobody has it
            off = self._servers.is_off(launch)
            await self._servers.absences.report_elsewhere(launch, entry.kind, off=off)
        self.moved(launch)

    async def _begin(self, launch: str) -> None:
        """Make a launch an actor here, unless it was taken out of the configuration a moment ago."""
        if is_own(launch):
            await self._own.begin(launch)
            return
        server = self._deployment.value.servers.get(launch)
        if server is not None:
            era = await self._known.era(server.digest)
            if self._servers.directory.find(launch) is None:  # a reload may have begun it meanwhile
                await self._servers.add(server, self._known.offer(launch), era, disabled=self._servers.is_off(launch))
