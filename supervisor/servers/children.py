"""The servers of a configuration as supervised actors: built, started, discovered, stopped."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from contextlib import suppress

import trio

from actors.catalogue.entries import Offer
from actors.errors import ActorStopped, ServerDisabled, ServerGaveUp, ShuttingDown, SupervisorError
from actors.kit import Address, Conditions, Starts
from actors.kit.directory import Directory
from actors.kit.reporter import Reporter
from actors.life.lifecycle import State
from actors.life.policy import RestartLog, RestartPolicy
from actors.messages import ServerChanged, ServerStatus, StopServer, WakeServer
from actors.protocol.era import Identity
from actors.protocol.versions import Era
from actors.registry.actor import Message as RegistryMessage
from actors.server import Message as ServerMessage
from actors.server import ServerActor, ServerSettings
from actors.transport.base import Transport
from actors.transport.mask import Mask
from actors.transport.stdio.containment import Containment
from actors.transport.stdio.installer import installer_of
from actors.transport.stdio.process import Launch, ProcessLimits, ProcessTransport
from supervisor.config import ServerConfig, Settings
from supervisor.servers.journals import Journals
from supervisor.servers.switch import Switch
from supervisor.servers.tree import supervise

log = logging.getLogger(__name__)

CRASH_POLICY = RestartPolicy(max_restarts=5, period_s=60.0, backoff_initial_s=0.5)
"""For bugs in an actor itself; deaths of processes have the server's own policy."""

SWITCHED_OFF = "it is switched off in the configuration"
BY_OPERATOR = "it is switched off by its operator; to take that back: mcpvisor enable "


class Servers:
    """All configured servers. `connect` makes the transport of one."""

    def __init__(
        self,
        registry: Address[RegistryMessage],
        connect: Callable[[ServerConfig], Transport],
        identity: Identity,
        clock: Callable[[], float],
        starts: Starts,
        *,
        conditions: Conditions | None = None,
        recall: Callable[[str], Offer | None] = lambda server: None,
    ) -> None:
        """`recall` gives what the catalogue has of a server now."""
        self.directory: Directory[ServerMessage] = Directory()
        self._registry = registry
        self._connect = connect
        self._identity = identity
        self._clock = clock
        self._starts = starts
        self._conditions = conditions
        self._recall = recall
        self._switches: dict[str, Switch] = {}
        self._desk = trio.CapacityLimiter(1)
        self.journals = Journals(clock)

    async def run(
        self,
        config: ServerConfig,
        known: Offer | None,
        era: Era | None,
        *,
        disabled: bool = False,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Run one server until it is stopped, not counting the times it is switched off. Started once it is found.

        A crash of its actor is answered by policy.
        """
        name = config.path_name
        self.journals.make(name, mask_of(config))
        switch = self._switches[name] = Switch(on=not disabled)
        if disabled:
            await self.report_disabled(name, config.kind, BY_OPERATOR + name)
            task_status.started()
            task_status = trio.TASK_STATUS_IGNORED
        while True:
            await switch.wait_on()
            await self._run_until_stopped(config, self._recall(name) or known, era, switch, task_status)
            task_status = trio.TASK_STATUS_IGNORED
            if switch.on:
                del self._switches[name]
                return
            await self.report_disabled(name, config.kind, BY_OPERATOR + name)
            switch.settled.set()

    async def _run_until_stopped(
        self,
        config: ServerConfig,
        known: Offer | None,
        era: Era | None,
        switch: Switch,
        task_status: trio.TaskStatus[None],
    ) -> None:
        started = False
        name = config.path_name
        restarts = RestartLog(_policy(config), random.random)
        mask = mask_of(config)
        self.directory.explain(name, None)

        async def once() -> None:
            nonlocal started
            if not switch.on:  # it was switched off while its actor was to be restarted after a crash
                return
            actor = ServerActor(
                name,
                self._connect(config),
                _settings(config),
                restarts,
                self._starts,
                Reporter(self._registry),
                self._clock,
                identity=self._identity,
                known=known,
                era=era,
                hide=mask,
                journal=self.journals.make(name, mask),
                desk=self._desk,
            )
            with self.directory.registered(name, actor.address):
                await self._registry.tell(ServerChanged(status=actor.status(), previous=State.DORMANT))
                if not started:
                    started = True
                    switch.settled.set()
                    task_status.started()
                await actor.run()

        if not await supervise(f"server {name}", once, RestartLog(CRASH_POLICY, random.random), self._conditions):
            await self.report_failed(name, "internal error; the daemon's log says more", config.kind)

    def disabled(self, name: str) -> bool:
        """Return whether an operator has switched a server off. Raises as `disable` does."""
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

    async def report_failed(self, name: str, reason: str, kind: str = "stdio", *, aloud: bool = True) -> None:
        """Show a server that cannot run at all; in the daemon's log, too, if it is said `aloud`."""
        text = f"server {name!r} cannot run: {reason}"
        self.directory.explain(name, lambda: ServerGaveUp(text, server=name))
        self.journals.make(name, Mask({})).note(f"cannot run: {reason}", "warning", aloud=aloud)
        status = ServerStatus(
            server=name,
            state=State.FAILED,
            wanted="stopped",
            since=self._clock(),
            transport=kind,
            last_error=reason,
            reason=reason,
        )
        await self._registry.tell(ServerChanged(status=status, previous=State.DORMANT, reason=reason))

    async def report_disabled(self, name: str, kind: str, why: str = SWITCHED_OFF) -> None:
        """Show a server that is switched off: its name stays taken, and whoever asks for it is told why."""
        text = f"server {name!r} is not available: {why}"
        self.directory.explain(name, lambda: ServerDisabled(text, server=name))
        self.journals.make(name, Mask({})).note(why)
        status = ServerStatus(
            server=name,
            state=State.STOPPED,
            wanted="stopped",
            since=self._clock(),
            transport=kind,
            disabled=True,
            reason=why,
        )
        await self._registry.tell(ServerChanged(status=status, previous=State.STOPPED, reason=why))

    async def discover(self, names: list[str]) -> None:
        """Wake servers whose tools are not known; those that fail are left to their policy.

        All are asked at once: they wait for their turn to start, and nobody for the handshake of another one.
        """
        async with trio.open_nursery() as nursery:
            for name in names:
                nursery.start_soon(self._discover, name)

    async def _discover(self, name: str) -> None:
        address = self.directory.find(name)
        if address is None:
            return
        try:
            await address.ask(WakeServer(server=name, urgent=False))
        except ShuttingDown:
            return
        except SupervisorError as error:
            log.debug("%s was not discovered: %s", name, error.message)  # its own lines say why

    async def stop(self) -> None:
        """Stop all servers at once, each by its own stop sequence."""
        async with trio.open_nursery() as nursery:
            for name in self.directory.names():
                nursery.start_soon(self._stop, name)

    async def _stop(self, name: str) -> None:
        address = self.directory.find(name)
        if address is None:
            return
        try:
            await address.ask_in_turn(StopServer())
        except SupervisorError as error:
            log.warning("%s did not stop in order: %s", name, error.message)


def starts_of(settings: Settings) -> Starts:
    """Return how many servers may be starting and installing at once."""
    return Starts(
        settings.cold_starts,
        installs=settings.max_installs,
        per_s=settings.starts_per_s,
        slot_s=settings.spawn_slot_s,
    )


def mask_of(config: ServerConfig) -> Mask:
    """Return what hides a server's secrets: those in its environment, its headers and its arguments."""
    headers = {f"header {name}": value for name, value in config.headers.items()}
    return Mask({**headers, **config.env}, config.args)


def transport_of(containment: Containment, config: ServerConfig) -> Transport:
    """Return how a local server is reached."""
    launch = Launch(command=config.command, args=config.args, env=dict(config.env), cwd=config.cwd or "")
    limits = ProcessLimits(
        max_line_bytes=config.max_line_bytes, stop_eof_s=config.stop_eof_s, stop_term_s=config.stop_term_s
    )
    return ProcessTransport(launch, limits, containment=containment)


def _settings(config: ServerConfig) -> ServerSettings:
    return ServerSettings(
        idle_timeout_s=config.idle_timeout_s,
        installer=installer_of(config.command, config.args),
        install_timeout_s=config.install_timeout_s,
        install_quiet_s=config.install_quiet_s,
        install_grace_s=config.install_grace_s,
        start_timeout_s=config.start_timeout_s,
        probe_timeout_s=config.probe_timeout_s,
        unresponsive_s=config.unresponsive_s,
        discovery_timeout_s=config.discovery_timeout_s,
        probe_interval_s=config.probe_interval_s,
        catalogue_max_age_s=config.catalogue_max_age_s,
        max_in_flight=config.max_in_flight,
        max_queued=config.max_queued,
        max_queued_bytes=config.max_queued_bytes,
        write_timeout_s=config.write_timeout_s,
    )


def _policy(config: ServerConfig) -> RestartPolicy:
    return RestartPolicy(
        restart=config.restart,
        max_restarts=config.max_restarts,
        period_s=config.period_s,
        backoff_initial_s=config.backoff_initial_s,
        backoff_max_s=config.backoff_max_s,
        stable_s=config.stable_s,
        probe_interval_s=config.probe_interval_s,
        retry_max_s=config.retry_max_s,
    )
