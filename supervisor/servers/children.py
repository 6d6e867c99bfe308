"""The servers of a deployment as supervised actors: built, started, discovered, stopped."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from contextlib import suppress

import trio
from msgspec.structs import replace

from actors.catalogue.offer import Offer
from actors.errors import ActorStopped, ServerDisabled, ServerGaveUp, ShuttingDown, SupervisorError
from actors.kit import Address, Conditions, Starts
from actors.kit.directory import Directory
from actors.kit.reporter import Reporter
from actors.life.policy import RestartLog, RestartPolicy
from actors.life.states import State
from actors.messages import ReadServer, RestartServer, ServerChanged, ServerStatus, StopServer, WakeServer
from actors.principal import LOCAL
from actors.protocol.agreement.era import Identity
from actors.protocol.agreement.versions import Era
from actors.registry.actor import Message as RegistryMessage
from actors.server import Profile, ServerActor, ServerMessage, Shared
from actors.server.subscribers import Subscribers
from actors.transport.base import Transport
from actors.transport.mask import Mask
from supervisor.host.loop.wakes import wakes
from supervisor.servers.deployment import DeployedServer, RestingServer
from supervisor.servers.journals import Journals
from supervisor.servers.statuses import Statuses
from supervisor.servers.tree import supervise

log = logging.getLogger(__name__)

CRASH_POLICY = RestartPolicy(max_restarts=5, period_s=60.0, backoff_initial_s=0.5)
"""For bugs in an actor itself; deaths of processes have the server's own policy."""

SWITCHED_OFF = "it is switched off in the configuration"
BY_OPERATOR = "it is switched off by its operator; to take that back: mcpvisor enable "


class Switch:
    """Whether a server may run. `settled` once what follows from it is done: the server is found, or it has stopped."""

    def __init__(self, *, on: bool) -> None:
        self.on = on
        self.settled = trio.Event()
        self._turned = trio.Event()
        if not on:
            self.settled.set()

    def turn(self, *, on: bool) -> None:
        """Turn it; what follows from it is not settled yet."""
        self.on = on
        self.settled = trio.Event()
        self._turned.set()
        self._turned = trio.Event()

    async def wait_on(self) -> None:
        while not self.on:
            await self._turned.wait()


class Servers:
    """All servers of a deployment. `connect` makes the transport of one."""

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
    ) -> None:
        """`recall` gives what the catalogue has of a server now. `reached`: `starts` of those without a process."""
        self.directory: Directory[ServerMessage] = Directory()
        self.statuses = Statuses()
        self._registry = registry
        self._connect = connect
        self._clock = clock
        self.subscribers = Subscribers(lambda wake: wakes().soon(wake))
        self._shared = Shared(
            starts=starts, clock=clock, identity=identity, desk=trio.CapacityLimiter(1), subscribers=self.subscribers
        )
        self._reaching = replace(self._shared, starts=reached or starts)
        self._conditions = conditions
        self._recall = recall
        self._switches: dict[str, Switch] = {}
        self.journals = Journals(clock)

    async def run(
        self,
        server: DeployedServer,
        known: Offer | None,
        era: Era | None,
        *,
        disabled: bool = False,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Run one server until it is stopped, also while it is off and after crashes. Started once it is found."""
        name, kind = server.name, server.config.kind
        self.journals.make(name, server.mask)
        switch = self._switches[name] = Switch(on=not disabled)
        if disabled:
            await self.report_disabled(name, kind, BY_OPERATOR + name)
            task_status.started()
            task_status = trio.TASK_STATUS_IGNORED
        while True:
            await switch.wait_on()
            await self._run_until_stopped(server, self._recall(name) or known, era, switch, task_status)
            task_status = trio.TASK_STATUS_IGNORED
            if switch.on:
                del self._switches[name]
                return
            await self.report_disabled(name, kind, BY_OPERATOR + name)
            switch.settled.set()

    async def _run_until_stopped(
        self,
        server: DeployedServer,
        known: Offer | None,
        era: Era | None,
        switch: Switch,
        task_status: trio.TaskStatus[None],
    ) -> None:
        started = False
        name = server.name
        restarts = RestartLog(server.policy, random.random)
        self.directory.explain(name, None)

        async def once() -> None:
            nonlocal started
            if not switch.on:  # it was switched off while its actor was to be restarted after a crash
                return
            profile = Profile(
                name=name,
                transport=self._connect(server),
                settings=server.settings,
                restarts=restarts,
                journal=self.journals.make(name, server.mask),
                known=known,
                era=era,
                hide=server.mask,
            )
            shared = self._shared if server.config.kind == "stdio" else self._reaching
            actor = ServerActor(profile, shared, Reporter(self._registry))
            with self.directory.register(name, actor.address), self.statuses.register(name, actor.status):
                await self._registry.tell(ServerChanged(status=actor.status(), previous=State.DORMANT))
                if not started:
                    started = True
                    switch.settled.set()
                    task_status.started()
                await actor.run()

        if not await supervise(f"server {name}", once, RestartLog(CRASH_POLICY, random.random), self._conditions):
            await self.report_failed(name, "internal error; the daemon's log says more", server.config.kind)

    def disabled(self, name: str) -> bool:
        return not self._switch(name).on

    async def disable(self, name: str) -> None:
        """Stop a server and keep it stopped. Raises what `Directory.why_not` says of one that cannot run."""
        switch = self._switch(name)
        await switch.settled.wait()  # it may be on its way up
        if switch.on:
            address = self.directory.find(name)
            if address is not None:  # else its actor crashed, and is not run again
                with suppress(ActorStopped):
                    address.request(StopServer())
            switch.turn(on=False)
        await switch.settled.wait()

    async def enable(self, name: str) -> None:
        """Let a server run again. Raises what `Directory.why_not` says of one that cannot run."""
        switch = self._switch(name)
        while not switch.on:
            await switch.settled.wait()  # it may be on its way down
            if not switch.on:
                switch.turn(on=True)
        await switch.settled.wait()

    def _switch(self, name: str) -> Switch:
        switch = self._switches.get(name)
        if switch is None:
            raise self.directory.why_not(name)
        return switch

    async def report(self, resting: RestingServer) -> None:
        if resting.disabled:
            await self.report_disabled(resting.name, resting.kind)
        else:
            await self.report_failed(resting.name, resting.reason, resting.kind, aloud=False)

    async def report_failed(self, name: str, reason: str, kind: str = "stdio", *, aloud: bool = True) -> None:
        """Show a server that cannot run at all; in the daemon's log, too, if it is said `aloud`."""
        said = f"cannot run: {reason}"
        self.directory.explain(name, lambda: ServerGaveUp(f"server {name!r} {said}", server=name))
        self.journals.make(name, Mask({})).note(said, "warning", aloud=aloud)
        await self._show(name, kind, reason, disabled=False)

    async def report_disabled(self, name: str, kind: str, why: str = SWITCHED_OFF) -> None:
        """Show a server that is switched off: its name stays taken, and whoever asks for it is told why."""
        text = f"server {name!r} is not available: {why}"
        self.directory.explain(name, lambda: ServerDisabled(text, server=name))
        self.journals.make(name, Mask({})).note(why)
        await self._show(name, kind, why, disabled=True)

    async def _show(self, name: str, kind: str, reason: str, *, disabled: bool) -> None:
        """Report how a server is doing that has no actor to say so."""
        state, previous = (State.STOPPED, State.STOPPED) if disabled else (State.FAILED, State.DORMANT)
        status = ServerStatus(
            server=name,
            state=state,
            wanted="stopped",
            since=trio.current_time(),
            transport=kind,
            disabled=disabled,
            last_error=None if disabled else reason,
            reason=reason,
        )
        await self._registry.tell(ServerChanged(status=status, previous=previous, reason=reason))

    async def logged_in(self, name: str) -> None:
        """Try a server again at which its operator has logged in; one that is ready goes on."""
        address = self.directory.find(name)
        if address is None:
            return
        try:
            status = await address.ask(ReadServer())
            if status.state is not State.READY or status.requires_reauth:
                await address.ask(RestartServer(server=name, principal=LOCAL))
        except SupervisorError as error:
            log.debug("%s did not come up after its login: %s", name, error.message)  # its own lines say why

    async def discover(self, names: list[str]) -> None:
        """Wake servers whose tools are not known; those that fail are left to their policy.

        They start in the order given, as there is room: each has its place in the line before the next one is asked.
        Nobody waits for the handshake of another one.
        """
        async with trio.open_nursery() as nursery:
            for name in names:
                if (address := self.directory.find(name)) is not None:
                    await nursery.start(self._discover, name, address)

    async def _discover(
        self, name: str, address: Address[ServerMessage], *, task_status: trio.TaskStatus[None]
    ) -> None:
        """Wake a server, and see how it comes up. Started once it has taken the order."""
        try:
            woken = address.request(WakeServer(server=name, urgent=False, principal=LOCAL))
            await address.ask(ReadServer())
            task_status.started()
            task_status = trio.TASK_STATUS_IGNORED
            await woken.wait()
        except ShuttingDown:
            pass
        except SupervisorError as error:
            log.debug("%s was not discovered: %s", name, error.message)  # its own lines say why
        task_status.started()

    async def stop(self) -> None:
        async with trio.open_nursery() as nursery:
            for name in self.directory.names():
                if (address := self.directory.find(name)) is not None:
                    nursery.start_soon(self._stop, name, address)

    async def _stop(self, name: str, address: Address[ServerMessage]) -> None:
        try:
            await address.ask_in_turn(StopServer())
        except SupervisorError as error:
            log.warning("%s did not stop in order: %s", name, error.message)
