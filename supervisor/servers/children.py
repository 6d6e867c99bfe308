"""The servers of a deployment as supervised actors: built, started, discovered, stopped."""

from __future__ import annotations

import logging
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import trio
from msgspec.structs import replace

from actors.catalogue.offer import Offer
from actors.catalogue.trust import TRUSTING, PinKeeper
from actors.command_line import command
from actors.errors import ActorStopped, ServerDisabled, ServerGaveUp, SupervisorError
from actors.facts import FactLog
from actors.kit import Address, Conditions, Starts
from actors.kit.directory import Directory
from actors.launch import launches_of, server_of
from actors.life.policy import RestartLog, RestartPolicy
from actors.life.states import State
from actors.messages import Departure, ReadServer, ServerChanged, ServerRemoved, ServerStatus, StopServer
from actors.principal import ClientKey
from actors.protocol.agreement.era import Identity
from actors.protocol.agreement.versions import Era
from actors.registry.actor import Message as RegistryMessage
from actors.server import ServerMessage, Shared
from actors.server.settings import DRAIN_S
from actors.subscribers import Subscribers
from actors.transport.base import Transport
from actors.transport.redaction import Mask
from supervisor.config.given import RestingServer
from supervisor.fleet.engine import NodeAway
from supervisor.host.pauses import wakes
from supervisor.metatools.servers import missing_values_error
from supervisor.servers.deployment import DeployedServer
from supervisor.servers.instances import Launcher, LaunchRun, Registers, Statuses
from supervisor.servers.journals.journals import Journals
from supervisor.servers.tree import supervise

# One server as a child of the supervisor, as one configuration has it.
#
# When that changes, the child does not: another one takes its place, and begins where this one has ended.


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
        self._launch: LaunchRun | None = None
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
    def act(self, launch: LaunchRun) -> Iterator[None]:
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


# Servers that are configured and have no actor: what is shown of them, and what whoever asks for one is told.

SWITCHED_OFF = "it is switched off in the configuration"
BY_OPERATOR = "it is switched off by its operator; to take that back: "


class Absences:
    """Reports to the registry what no actor does."""

    def __init__(
        self, registry: Address[RegistryMessage], directory: Directory[ServerMessage], journals: Journals
    ) -> None:
        self._registry = registry
        self._directory = directory
        self._journals = journals
        self.awaiting: set[str] = set()
        """Servers that run for those alone who have given values."""
        self.elsewhere: dict[str, str] = {}
        """What another node of the fleet runs, or will, and how it is reached."""

    async def report(self, resting: RestingServer) -> None:
        (self.awaiting.add if resting.awaits else self.awaiting.discard)(resting.name)
        if resting.disabled:
            await self.report_disabled(resting.name, resting.kind, resting.reason or SWITCHED_OFF)
        elif resting.awaits:
            await self.report_awaiting(resting)
        else:
            await self.report_failed(resting.name, resting.reason, resting.kind, aloud=False)

    async def report_failed(self, name: str, reason: str, kind: str = "stdio", *, aloud: bool = True) -> None:
        """Show a server that cannot run at all; in the daemon's log, too, if it is said `aloud`."""
        said = f"cannot run: {reason}"
        self._directory.explain(name, lambda: ServerGaveUp(f"server {name!r} {said}", server=name))
        self._journals.make(name, Mask({})).note(said, "warning", aloud=aloud)
        await self._show(name, kind, reason, disabled=False)

    async def report_disabled(self, name: str, kind: str, why: str = SWITCHED_OFF) -> None:
        """Show a server that is switched off: its name stays taken, and whoever asks for it is told why."""
        text = f"server {name!r} is not available: {why}"
        self._directory.explain(name, lambda: ServerDisabled(text, server=name))
        self._journals.make(name, Mask({})).note(why)
        await self._show(name, kind, why, disabled=True)

    async def report_switched_off(self, name: str, kind: str) -> None:
        """Show a launch that an operator has switched off."""
        await self.report_disabled(name, kind, BY_OPERATOR + command("enable", server_of(name)))

    async def switch_elsewhere(self, name: str, *, on: bool) -> None:
        """Show what other nodes of the fleet have of a server as switched on or off; nothing happens with any other."""
        for launch in launches_of(name, [*self.elsewhere]):
            await self.report_elsewhere(launch, self.elsewhere[launch], off=not on)

    async def report_elsewhere(self, name: str, kind: str, *, off: bool = False) -> None:
        """Show a server that another node of the fleet runs, or will, or would if it were not switched `off`."""
        self.elsewhere[name] = kind
        if off:
            await self.report_switched_off(name, kind)
            return
        text = f"server {name!r} does not run at this node of the fleet; give the order to the one that has it"
        self._directory.explain(name, lambda: NodeAway(text, server=name))
        since = trio.current_time()
        status = ServerStatus(server=name, state=State.DORMANT, wanted="dormant", since=since, transport=kind)
        await self._registry.tell(ServerChanged(status=status, previous=State.DORMANT))

    async def report_awaiting(self, resting: RestingServer) -> None:
        """Show a server that runs for those alone who have given values for it, or whose team has."""
        name, missing, why = resting.name, resting.awaits, resting.reason
        self._directory.explain(name, lambda: missing_values_error(name, missing, why))
        self._journals.make(name, Mask({})).note(why)
        await self._show(name, resting.kind, why, disabled=False, awaits=missing)

    async def _show(self, name: str, kind: str, reason: str, *, disabled: bool, awaits: tuple[str, ...] = ()) -> None:
        """Report how a server is doing that has no actor to say so."""
        rests = disabled or awaits
        state, previous = (State.STOPPED, State.STOPPED) if rests else (State.FAILED, State.DORMANT)
        status = ServerStatus(
            server=name,
            state=state,
            wanted="stopped",
            since=trio.current_time(),
            transport=kind,
            disabled=disabled,
            down=None if rests else "permanently_failed",
            last_error=None if disabled or awaits else reason,
            reason=reason,
            awaits=awaits,
        )
        await self._registry.tell(ServerChanged(status=status, previous=previous, reason=reason))


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
        facts: FactLog | None = None,
        configured: Callable[[str], bool] = lambda name: False,
        may_run: Callable[[str], bool] | None = None,
    ) -> None:
        """`recall` gives what is known of a server, `keeper` what may be called; `reached`: `starts` of remotes.

        `configured` says whether there is to be a server of a name, `may_run` whether it may have an actor here: in a
        fleet, another node may own it.
        """
        self.directory: Directory[ServerMessage] = Directory(configured)
        self.statuses = Statuses()
        self._registry = registry
        self.subscribers = Subscribers(lambda wake: wakes().soon(wake))
        desk = trio.CapacityLimiter(1)
        shared = Shared(starts=starts, clock=clock, identity=identity, desk=desk, subscribers=self.subscribers)
        self.shared = shared = replace(shared, keeper=keeper, facts=facts or shared.facts)
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
        self.may_run = may_run or (lambda name: True)

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
