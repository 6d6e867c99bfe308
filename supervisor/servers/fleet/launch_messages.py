"""Messages for launches of a fleet: sent to wherever a launch is, and handed over where it is owned.

A launch gets its actor with the first message for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import trio
from msgspec.structs import replace

from actors.errors import ActorStopped, ShuttingDown, SupervisorError
from actors.kit import Address, Latest, Pauses, Reply
from actors.kit.directory import Directory
from actors.kit.mailbox import Envelope
from actors.launch import is_own, server_of
from actors.messages import CallServer, RefreshServer, RestartServer, SleepServer, WakeServer
from actors.principal import LOCAL
from actors.protocol.changes import SUBSCRIBE, UNSUBSCRIBE
from actors.protocol.wire.jsonrpc import RemoteError, encode
from actors.server import ServerMessage
from actors.subscribers import Subscribers
from supervisor.fleet.engine import Elsewhere, EngineSettling, LeaseEnded, Place
from supervisor.fleet.links.frames import ForLaunch
from supervisor.fleet.links.links import FleetKeys, Links
from supervisor.fleet.membership import Ownership, reach
from supervisor.servers.children import Servers
from supervisor.servers.deployment import DeployedServer, Deployment
from supervisor.servers.launches.running import Launches

# Where launches are found in a fleet: here if this node owns them, else behind an address that looks like theirs.


class LaunchAddress(Address[ServerMessage]):
    """Stands for a launch that may be at another node. What cannot be for another node is refused."""

    __slots__ = ("_launch", "_messages")

    def __init__(self, launch: str, messages: LaunchMessages) -> None:
        self._launch = launch
        self._messages = messages

    def _put(self, envelope: Envelope[ServerMessage]) -> None:
        message, reply = envelope.message, envelope.reply
        if reply is None or not isinstance(
            message, CallServer | WakeServer | RestartServer | RefreshServer | SleepServer
        ):
            raise ActorStopped("only its own node does that with it")
        self._messages.send(self._launch, message, reply)


class FleetDirectory(Directory[ServerMessage]):
    """Finds every launch. `local` has those that run here."""

    def __init__(self, local: Directory[ServerMessage], messages: LaunchMessages) -> None:
        super().__init__()
        self._local = local
        self._messages = messages

    def find(self, name: str) -> Address[ServerMessage] | None:
        address = self._local.find(name)
        if address is not None and self._messages.owns(name):
            return address
        return LaunchAddress(name, self._messages) if self._messages.keys.has(name) else address

    def why_not(self, name: str) -> SupervisorError:
        return self._local.why_not(name)


# What launches are called in a fleet: by the name of the server, and by what it is started with.
#
# So where nodes have read different configurations, each owns and runs what its own one says, and takes nothing over
# that it would start another way.

_DIGITS: Final = 16
_MARK: Final = "#"


class LaunchKeys:
    """The keys of launches, by the newest deployment."""

    def __init__(self, deployment: Latest[Deployment]) -> None:
        self.knows: Callable[[str], bool] = lambda launch: False
        """Says of a launch that not all share whether somebody is known who has it."""
        self._deployment = deployment
        self._digested: tuple[Mapping[str, str], str] = {}, ""

    def has(self, launch: str) -> bool:
        """Say whether a launch can run: one that all share, or one of somebody who is known here."""
        return self.knows(launch) if is_own(launch) else launch in self._deployment.value.servers

    def key(self, launch: str) -> str:
        """Return what a launch is called in the fleet; of one that there is not, what nobody owns.

        The name of one that not all share says already what it is started with.
        """
        return self._key(launch, self._deployment.value.digests.get(launch, ""))

    def key_of(self, server: DeployedServer) -> str:
        """Return what a launch is called that is started in this way, which may be that of a former deployment."""
        return self._key(server.name, server.digest)

    @staticmethod
    def _key(launch: str, digest: str) -> str:
        return launch + _MARK + ("" if is_own(launch) else digest[:_DIGITS])

    def name(self, key: str) -> str:
        """Return which launch of this node has a key; empty if none has, or it is started another way here."""
        launch = self.launch(key)
        return launch if self.has(launch) and self.key(launch) == key else ""

    @staticmethod
    def launch(key: str) -> str:
        """Return which launch a key is of, however that is started."""
        return key.rpartition(_MARK)[0]

    def digest(self) -> str:
        """Return what all nodes have in common that start everything alike."""
        digests = self._deployment.value.digests
        if self._digested[0] is not digests:
            told = "\n".join(f"{name} {digests[name]}" for name in sorted(digests))
            self._digested = digests, hashlib.sha256(told.encode()).hexdigest()[:_DIGITS]
        return self._digested[1]


DRAINED = "its node is drained; another node takes it over"
SETTLES_S = 600.0
"""For so long an order waits for an engine that was started a moment ago: a lease is not longer."""
JOINS_S = 3.0
"""For so long a call waits for this node to be a member, which it is soon after its start. A first look at what a
server offers has time."""
LOOK_AGAIN_S = 0.05


class LaunchMessages:
    """Those that clients of this node send, and those that come from other nodes. Both settle in any case.

    `leaving` are launches that this node gives up, by their keys, with what is set when it has.
    """

    def __init__(
        self,
        deployment: Latest[Deployment],
        keys: LaunchKeys,
        ownership: Ownership,
        fleet_keys: FleetKeys,
        servers: Servers,
        launches: Launches,
    ) -> None:
        self.leaving: dict[str, trio.Event] = {}
        self.ending = False
        """The daemon ends: nothing is begun here any more."""
        self._deployment = deployment
        self.keys = keys
        self._ownership = ownership
        self._servers = servers
        self._launches = launches
        self.subscriptions = FleetSubscriptions(servers.subscribers, self)
        self.links = Links(fleet_keys, ownership, self.deliver, self.subscriptions)
        self._beginning: dict[str, trio.Event] = {}
        self._nursery: trio.Nursery

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Have a task for each message that waits; from `started` on."""
        async with trio.open_nursery() as self._nursery:
            task_status.started()
            await trio.sleep_forever()

    def owns(self, launch: str) -> bool:
        """Say whether this node may act for a launch, now."""
        return bool(self._ownership.fence(self.keys.key(launch)))

    def send(self, launch: str, message: ForLaunch, reply: Reply[Any]) -> None:
        """Send a message to a launch, wherever that is."""
        reply.release()
        self._nursery.start_soon(self._send, launch, message, reply)

    async def _send(self, launch: str, message: ForLaunch, reply: Reply[Any]) -> None:
        key = self.keys.key(launch)
        if is_own(launch):  # whoever takes it can tell by that how it is started
            message = replace(message, principal=self._launches.holder_of(launch, message.principal))

        async def here(fence: int) -> None:
            answer: Reply[Any] = Reply()
            reply.on_abandon(lambda: answer.abandon(reply.abandoned_for))
            self.deliver(key, message, answer)
            reply.answer(await answer.wait())

        async def there(place: Place) -> None:
            answer: Reply[Any] = Reply()
            reply.on_abandon(lambda: answer.abandon(reply.abandoned_for))
            await self.links.ask(place, message, answer)
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
        launch = self.keys.name(key)
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
            if is_own(self.keys.launch(key)):
                await self._launches.introduce(message.principal)
            if self.keys.name(key):
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
        launch = self.keys.launch(key)

        def is_it(server: DeployedServer) -> bool:
            return self.keys.key_of(server) == key

        await self._servers.wait_gone(launch, lambda server: is_it(server) and not self.keys.name(key))
        if not await self._ownership.release(key, lambda: self._servers.runs(launch, is_it)):
            return False
        self.links.move(key)
        return True

    def drop(self, launch: str) -> None:
        """Give a launch up that nobody has any more, as soon as nothing of it runs."""
        self._nursery.start_soon(self._drop, self.keys.key(launch))

    async def _drop(self, key: str) -> None:
        with suppress(SupervisorError):  # then it is ours until the lease ends
            await self.give_up(key)

    async def move_all(self, drain_s: float | None = None) -> int:
        """Have all launches go to other nodes, each when its calls have ended, within `drain_s` or as for a reload.

        Return how many there were, when nothing of them runs here. Whoever waits for that may go away.
        """
        drain_s = self._deployment.value.settings.reload_drain_s if drain_s is None else drain_s
        for key in self._ownership.fences():
            if key not in self.leaving and (launch := self.keys.name(key)):
                self.leaving[key] = trio.Event()
                self._nursery.start_soon(self._move, key, launch, drain_s)
        moving = [*self.leaving.values()]
        for moved in moving:
            await moved.wait()
        return len(moving)

    async def _move(self, key: str, launch: str, drain_s: float) -> None:
        await self._servers.remove(launch, DRAINED, drain_s, LaunchAddress(launch, self))
        self._launches.end_here(launch)
        stays = False
        with suppress(SupervisorError):  # then the others wait until the lease ends
            stays = not await self.give_up(key)
        if not stays:
            await self.show_elsewhere(launch)
        self.leaving.pop(key).set()

    async def show_elsewhere(self, launch: str) -> None:
        """Show a launch as one that does not run here."""
        self._launches.end_here(launch)
        entry = self._deployment.value.entries.get(server_of(launch))
        if entry is not None and self.keys.has(launch):  # else it is configured no longer, or nobody has it
            off = self._servers.is_off(launch)
            await self._servers.absences.report_elsewhere(launch, entry.kind, off=off)
        self.subscriptions.ask_again(launch)  # another node may have it

    async def _begin(self, launch: str) -> None:
        """Make a launch an actor here, unless it was taken out of the configuration a moment ago."""
        server = self._deployment.value.servers.get(launch)
        if is_own(launch):
            await self._launches.begin(launch)
        elif server is not None:
            offer, era = await self._launches.recall_one(server)
            if self._servers.directory.find(launch) is None:  # a reload may have begun it meanwhile
                await self._servers.add(server, offer, era, disabled=self._servers.is_off(launch))


# Subscriptions of clients of this node to resources of launches that run at other nodes, and of theirs here.
#
# A node that has subscribed clients asks the owner, as it asks a server; the owner tells it of each change. Where a
# launch moves, or the connection breaks, it asks again, wherever the launch is then, and its clients are told that what
# they are subscribed to may have changed meanwhile.

ASK_S: Final = 60.0
"""How long an owner has to be asked again: its server may have to start."""


class FleetSubscriptions:
    """Implements `supervisor.fleet.links.link.Watchers`."""

    def __init__(self, subscribers: Subscribers, messages: LaunchMessages) -> None:
        self._subscribers = subscribers
        self._messages = messages
        self._keys = messages.keys
        self._is_of_node = False
        self._again: set[str] = set()
        self._bell = trio.lowlevel.ParkingLot()
        subscribers.left = self._leave

    def add(self, launch: str, uri: str, tell: Callable[[], None], node: object) -> None:
        if name := self._keys.name(launch):
            self._subscribers.add(name, uri, tell, (LOCAL, node))

    def remove(self, launch: str, uri: str, tell: Callable[[], None]) -> bool:
        self._is_of_node = True
        try:
            return self._subscribers.remove(self._keys.launch(launch), uri, tell)
        finally:
            self._is_of_node = False

    def hear(self, launch: str, uri: str) -> None:
        if name := self._keys.name(launch):
            self._subscribers.tell_missed(name, (uri,))

    def hear_move(self, launch: str) -> None:
        self.ask_again(self._keys.launch(launch))

    def hear_break(self) -> None:
        for name in self._subscribers.servers():
            self.ask_again(name)

    def ask_again(self, name: str) -> None:
        """A launch of this name is not where it was: whoever is subscribed here is to be told of it from there."""
        if self._subscribers.uris(name) and self._keys.has(name):
            self._again.add(name)
            self._bell.unpark_all()

    async def run(self) -> None:
        """Ask owners again, until each of them has answered, for ever."""
        pauses = Pauses()
        while True:
            while not self._again:
                await self._bell.park()
            again, self._again = self._again, set()
            for name in sorted(again):
                if not await self._ask(name):
                    self._again.add(name)
            if self._again:
                await trio.sleep(pauses.next())
            else:
                pauses.reset()

    async def _ask(self, name: str) -> bool:
        """Ask the owner of a launch for all its resources; whoever runs here is asked by its actor. False: again."""
        for uri in () if self._messages.owns(name) else self._subscribers.uris(name):
            reply: Reply[Any] = Reply()
            self._messages.send(name, _message(name, SUBSCRIBE, uri), reply)
            try:
                with trio.fail_after(ASK_S):
                    await reply.wait()
            except RemoteError:
                continue  # it has no such resource any more
            except (SupervisorError, trio.TooSlowError):
                return False
            self._subscribers.tell_missed(name, (uri,))
        return True

    def _leave(self, name: str, uri: str) -> None:
        """Nobody here is subscribed to a resource any more: its owner need not tell us."""
        if not self._is_of_node and self._keys.has(name) and not self._messages.owns(name):
            self._messages.send(name, _message(name, UNSUBSCRIBE, uri), Reply())


def _message(name: str, method: str, uri: str) -> CallServer:
    members = b'"uri":' + encode(uri)
    return CallServer(server=name, method=method, members=members, name=uri, deadline_s=ASK_S, principal=LOCAL)
