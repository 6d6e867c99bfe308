"""The servers of a deployment as supervised actors: built, started, discovered, stopped."""

from __future__ import annotations

import logging
import random
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress

import trio
from msgspec.structs import replace

from actors.catalogue.offer import Offer
from actors.catalogue.trust import TRUSTING, PinKeeper
from actors.errors import ActorStopped, SupervisorError
from actors.kit import Address, Conditions, Starts
from actors.kit.directory import Directory
from actors.launch import launches_of, server_of
from actors.life.policy import RestartLog, RestartPolicy
from actors.life.states import State
from actors.messages import Departure, ServerChanged, ServerRemoved, StopServer
from actors.observer import NO_OBSERVER, Observer
from actors.principal import ClientKey
from actors.protocol.agreement.era import Identity
from actors.protocol.agreement.versions import Era
from actors.registry.actor import Message as RegistryMessage
from actors.server import ServerMessage, Shared
from actors.server.settings import DRAIN_S
from actors.server.subscribers import Subscribers
from actors.transport.base import Transport
from supervisor.host.loop.wakes import wakes
from supervisor.servers.absences import Absences
from supervisor.servers.child import Child
from supervisor.servers.deployment import DeployedServer
from supervisor.servers.instances import Launcher, Registers
from supervisor.servers.journals.journals import Journals
from supervisor.servers.statuses import Statuses
from supervisor.servers.tree import supervise

log = logging.getLogger(__name__)
_Address = Address[ServerMessage]
Alike = Callable[[DeployedServer], bool]

CRASH_POLICY = RestartPolicy(max_restarts=5, period_s=60.0, backoff_initial_s=0.5)
"""For bugs in an actor itself; deaths of processes have the server's own policy."""

CHANGED = "its configuration has changed"
"""Why calls in flight are cut off that take too long."""


class Servers:
    """All servers of a deployment, each a child of its own. `connect` makes the transport of one."""

    def __init__(
        self,
        registry: Address[RegistryMessage],
        connect: Callable[[DeployedServer], Transport],
        identity: Identity,
        clock: Callable[[], float],
        starts: Starts,
        *,
        reached: Starts | None = None,
        conditions: Conditions | None = None,
        recall: Callable[[str], Offer | None] = lambda server: None,
        keeper: PinKeeper = TRUSTING,
        observer: Observer = NO_OBSERVER,
        configured: Callable[[str], bool] = lambda name: False,
    ) -> None:
        """`recall` gives what is known of a server, `keeper` what may be called; `reached`: `starts` of remotes.

        `configured` says whether there is to be a server of a name.
        """
        self.directory: Directory[ServerMessage] = Directory(configured)
        self.statuses = Statuses()
        self._registry = registry
        self.subscribers = Subscribers(lambda wake: wakes().soon(wake))
        desk = trio.CapacityLimiter(1)
        shared = Shared(starts=starts, clock=clock, identity=identity, desk=desk, subscribers=self.subscribers)
        self.shared = shared = replace(shared, keeper=keeper, observer=observer)
        self._conditions = conditions
        self._recall = recall
        self._children: dict[str, Child] = {}
        self._off: set[str] = set()  # servers, by name
        self._newest: dict[str, Child] = {}  # also those that leave
        self._running: dict[Child, None] = {}
        self.journals = Journals(clock)
        registers = Registers(self.directory, self.statuses, registry)
        self._launcher = Launcher(connect, shared, reached or starts, self.journals, registers)
        self.absences = Absences(registry, self.directory, self.journals)
        self.may_run: Callable[[str], bool] = lambda name: True  # in a fleet, another node may own it

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run all children, from `started` on, until it is cancelled."""
        async with trio.open_nursery() as self._nursery:
            task_status.started()
            await trio.sleep_forever()

    async def add(
        self,
        server: DeployedServer,
        known: Offer | None,
        era: Era | None,
        *,
        disabled: bool = False,
        drain_s: float = DRAIN_S,
    ) -> None:
        """Run a server until it is stopped, also while it is off and after crashes; return once it is found.

        One of this name that is there leaves: its calls in flight have `drain_s` seconds, and the others are passed on.
        """
        if not self.may_run(server.name):
            await self.remove(server.name, CHANGED, drain_s)
            await self.absences.report_elsewhere(server.name, server.config.kind, off=self.is_off(server.name))
            return
        self.absences.elsewhere.pop(server.name, None)
        if disabled:
            self.switch(server_of(server.name), on=False)
        before = self._newest.get(server.name)
        child = Child(server, on=not disabled, predecessor=before, drain_s=drain_s)
        self._children[server.name] = self._newest[server.name] = child
        await self._nursery.start(self._run_child, child, known, era)
        if before is not None and disabled and not before.leaving:
            await before.leave(Departure(reason=CHANGED, drain_s=drain_s))

    def runs(self, name: str, alike: Alike) -> bool:
        """Say whether a server has a child that does not leave, and is started `alike`."""
        return name in self._children and alike(self._children[name].server)

    async def remove(self, name: str, reason: str, drain_s: float, successor: _Address | None = None) -> None:
        """Have a server leave, if it is there; its calls in flight have `drain_s` seconds. It is not found any more."""
        child = self._children.pop(name, None)
        if child is not None:
            self._withdraw(name)
            await child.leave(Departure(reason=reason, drain_s=drain_s, successor=successor))

    async def end(self, name: str, reason: str) -> None:
        """Have a server end at once, also one that leaves already; return when nothing is left of it."""
        if self._children.pop(name, None) is not None:
            self._withdraw(name)
        for child in [each for each in self._running if each.name == name]:
            await child.leave(Departure(reason=reason, drain_s=0.0))
        await self.wait_gone(name)

    async def wait_gone(self, name: str, alike: Alike = lambda server: False) -> None:
        """Return when nothing of a server runs any more that was told to leave, or is started `alike`."""
        for child in [each for each in self._running if each.name == name and (each.leaving or alike(each.server))]:
            await child.gone.wait()

    async def resize(self, server: DeployedServer, drain_s: float) -> None:
        """Have as many instances of a server as it is to have now; those that end have `drain_s` seconds."""
        child = self._children.get(server.name)
        if child is not None and not child.leaving:
            await child.resize(server, drain_s)

    def leave(self, client: ClientKey) -> None:
        """The session of a client is over, and so are the instances that it alone had; see `Caller.identity`."""
        for child in self._children.values():
            child.part(client)

    def _withdraw(self, name: str) -> None:
        self.directory.withdraw(name)
        self.statuses.withdraw(name)

    async def forget(self, name: str) -> None:
        """A server that does not run is not configured any more: nothing is left of it but calls that may end."""
        self.directory.explain(name, None)
        self.journals.drop(name)
        self.absences.elsewhere.pop(name, None)
        self._off.discard(name)
        await self._registry.tell(ServerRemoved(server=name))

    async def _run_child(
        self,
        child: Child,
        known: Offer | None,
        era: Era | None,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        self._running[child] = None
        with child.scope:
            await self._run_while_configured(child, known, era, task_status)
        if self._children.get(child.name) is child:
            del self._children[child.name]
        await child.end()
        if self._newest.get(child.name) is child:
            del self._newest[child.name]
        del self._running[child]

    async def _run_while_configured(
        self, child: Child, known: Offer | None, era: Era | None, task_status: trio.TaskStatus[None]
    ) -> None:
        name, kind = child.name, child.server.config.kind
        self.journals.make(name, child.server.mask)
        if not child.on:
            await self.absences.report_switched_off(name, kind)
            task_status.started()
            task_status = trio.TASK_STATUS_IGNORED
        while True:
            await child.wait_on()
            await self._run_until_stopped(child, known, era, task_status)
            task_status = trio.TASK_STATUS_IGNORED
            if child.on or child.leaving:
                return
            await self.absences.report_switched_off(name, kind)
            child.settled.set()
            known = self._recall(name) or known

    async def _run_until_stopped(
        self, child: Child, known: Offer | None, era: Era | None, task_status: trio.TaskStatus[None]
    ) -> None:
        started = False
        name, server = child.name, child.server
        restarts = defaultdict[int, RestartLog](lambda: RestartLog(server.policy, random.random))
        self.directory.explain(name, None)

        async def once() -> None:
            nonlocal started
            if not child.on or child.leaving:  # that came while its actor was to be restarted after a crash
                return
            launch = self._launcher.begin(child, restarts, known, era)
            with child.act(launch), launch.register():
                await child.take_over(CHANGED)
                await self._registry.tell(ServerChanged(status=launch.status(), previous=State.DORMANT))
                if not started:
                    started = True
                    child.settled.set()
                    task_status.started()
                await launch.run()

        well = await supervise(f"server {name}", once, RestartLog(CRASH_POLICY, random.random), self._conditions)
        if not well and not child.leaving:  # of one that leaves nothing is said any more
            self._withdraw(name)
            await child.take_over(CHANGED)
            await self.absences.report_failed(name, "internal error; the daemon's log says more", server.config.kind)
        if not started:
            task_status.started()

    def is_off(self, name: str) -> bool:
        """Say whether a server is switched off by its operator, with all its launches."""
        return server_of(name) in self._off

    def switch(self, *names: str, on: bool) -> None:
        """Note whether servers are switched on, of which nothing needs to run yet."""
        self._off = self._off - {*names} if on else self._off | {*names}

    def _launches_of(self, name: str) -> list[str]:
        """Return the children of a server, one for each launch; of one that waits for values there may be none.

        Raises what `Directory.why_not` says of one that cannot run.
        """
        launches = launches_of(name, self._children)
        if not launches and name not in self.absences.awaiting and self.may_run(name):
            raise self.directory.why_not(name)
        return launches

    def disabled(self, name: str) -> bool:
        """Say whether a server is switched off. Raises what `Directory.why_not` says of one that cannot run."""
        self._launches_of(name)
        return self.is_off(name)

    async def disable(self, name: str) -> None:
        """Stop a server and keep it stopped. Raises what `Directory.why_not` says of one that cannot run."""
        await self._turn(name, on=False)

    async def enable(self, name: str) -> None:
        """Let a server run again. Raises what `Directory.why_not` says of one that cannot run."""
        await self._turn(name, on=True)

    async def _turn(self, name: str, *, on: bool) -> None:
        launches = self._launches_of(name)
        self.switch(name, on=on)
        for launch in launches:
            child = await self._wait_settled(launch)
            if child.on is on:
                continue
            if child.address is not None and not on:  # else its actor crashed, and is not run again
                with suppress(ActorStopped):
                    child.address.request(StopServer())
            child.turn(on=on)
            await self._wait_settled(launch)
        await self.absences.switch_elsewhere(name, on=on)

    async def _wait_settled(self, name: str) -> Child:
        """Return a child once it is neither on its way up nor down; of one that leaves meanwhile its successor."""
        while True:
            child = self._children.get(name)
            if child is None:
                raise self.directory.why_not(name)
            await child.settled.wait()
            if child.settled.is_set() and self._children.get(name) is child:
                return child

    async def stop(self) -> None:
        async with trio.open_nursery() as nursery:
            for child in self._running:
                if child.address is not None:
                    nursery.start_soon(self._stop, child.name, child.address)

    async def _stop(self, name: str, address: Address[ServerMessage]) -> None:
        try:
            await address.ask_in_turn(StopServer())
        except SupervisorError as error:
            log.warning("%s did not stop in order: %s", name, error.message)
