"""The servers of a configuration as supervised actors: built, started, discovered, stopped."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable

import trio

from actors.catalogue.entries import Offer
from actors.directory import Directory
from actors.errors import SupervisorError
from actors.kit import Address, Starts
from actors.lifecycle import State
from actors.messages import ServerChanged, ServerStatus, StopServer, WakeServer
from actors.policy import RestartLog, RestartPolicy
from actors.protocol.era import Identity
from actors.protocol.versions import Era
from actors.registry import Message as RegistryMessage
from actors.reporter import Reporter
from actors.server import Message as ServerMessage
from actors.server import ServerActor, ServerSettings
from actors.transport.base import Transport
from actors.transport.mask import Mask
from actors.transport.stdio.installer import installer_of
from supervisor.config import ServerConfig
from supervisor.tree import supervise

log = logging.getLogger(__name__)

CRASH_POLICY = RestartPolicy(max_restarts=5, period_s=60.0, backoff_initial_s=0.5)
"""For bugs in an actor itself; deaths of processes have the server's own policy."""


class Servers:
    """All configured servers. `connect` makes the transport of one."""

    def __init__(
        self,
        registry: Address[RegistryMessage],
        connect: Callable[[ServerConfig], Transport],
        identity: Identity,
        clock: Callable[[], float],
        starts: Starts,
    ) -> None:
        self.directory: Directory[ServerMessage] = Directory()
        self._registry = registry
        self._connect = connect
        self._identity = identity
        self._clock = clock
        self._starts = starts

    async def run(
        self,
        config: ServerConfig,
        known: Offer | None,
        era: Era | None,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Run one server until it is stopped; a crash of its actor is answered by policy. Started once it is found."""
        started = False
        name = config.path_name
        restarts = RestartLog(_policy(config), random.random)

        async def once() -> None:
            nonlocal started
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
                hide=mask_of(config),
            )
            with self.directory.registered(name, actor.address):
                await self._registry.tell(ServerChanged(status=actor.status(), previous=State.DORMANT))
                if not started:
                    started = True
                    task_status.started()
                await actor.run()

        if not await supervise(f"server {name}", once, RestartLog(CRASH_POLICY, random.random)):
            await self.report_failed(name, "internal error; the daemon's log says more", config.kind)

    async def report_failed(self, name: str, reason: str, kind: str = "stdio") -> None:
        """Show a server that cannot run at all."""
        status = ServerStatus(
            server=name,
            state=State.FAILED,
            wanted="stopped",
            since=self._clock(),
            transport=kind,
            last_error=reason,
        )
        await self._registry.tell(ServerChanged(status=status, previous=State.DORMANT, reason=reason))

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
        except SupervisorError as error:
            log.warning("%s was not discovered: %s", name, error.message)

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
            await address.ask(StopServer())
        except SupervisorError as error:
            log.warning("%s did not stop in order: %s", name, error.message)


def mask_of(config: ServerConfig) -> Mask:
    """Return what hides a server's secrets: the values of its environment and headers."""
    return Mask({**{f"header {name}": value for name, value in config.headers.items()}, **config.env})


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
