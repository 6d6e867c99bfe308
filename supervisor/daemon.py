"""The daemon: starts what it is made of (`house`), and ends it in order.

The web server is one child of the tree, the servers are others. A crash of the core (registry, router, front) is our
bug, and leaves `run`; other parts begin again (`parts`). Want of resources is no crash: whoever meets it waits it out,
and the status says so. See `process` for what surrounds it.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from socket import socket
from typing import TYPE_CHECKING, Final

import trio

from actors.errors import SupervisorError
from actors.kit import Conditions, Latest
from actors.router import BeginShutdown
from actors.transport.base import Transport
from actors.transport.stdio.containment import default_containment
from actors.transport.stdio.resources.room import Room
from supervisor.config import Configuration
from supervisor.fleet.engine import Engine
from supervisor.front.http.streams import cancel_when_set
from supervisor.front.wiring import Front, open_front, serve_front
from supervisor.host.datadir import DataDir
from supervisor.host.pauses import keep_catalogue
from supervisor.host.program import Systemd
from supervisor.host.version import VERSION
from supervisor.house import Ground, House, build_house
from supervisor.servers.deployment import DeployedServer
from supervisor.servers.fleet.late import open_engine
from supervisor.servers.reach import discover
from supervisor.servers.reloading.reload import Read
from supervisor.store import Store, open_store
from supervisor.store.write_behind import CLOSE_S
from supervisor.tracing.tracer import close_tracer

if TYPE_CHECKING:
    from supervisor.servers.fleet.node import FleetNode

log = logging.getLogger(__name__)

KNOWN_S: Final = 10.0
"""The longest that a node waits for what others know, before it listens all the same."""


class Daemon:
    """One daemon. `urls` holds the addresses it listens on once it does; `closing` ends it.

    `read` reads the configuration again; see `Reload`. It may be replaced before `run`, as may `systemd`.
    `connect` makes the transport of a server, whose processes may have `descriptors` open files (0: as many as we).
    `ending` is called when the end begins, by a signal, in order or by a crash; more than once.
    `conditions` has what is degraded. `tell_idle` is told when nobody has used it for long, and when somebody does
    again; unless it is replaced, the daemon ends.
    """

    def __init__(
        self,
        configuration: Configuration,
        data: DataDir,
        sockets: list[socket],
        clock: Callable[[], float] = time.time,
        *,
        connect: Callable[[DeployedServer], Transport] | None = None,
        descriptors: int = 0,
        ending: Callable[[], None] = lambda: None,
    ) -> None:
        self._configuration = configuration
        self.read: Read = lambda path, change: configuration
        self.systemd = Systemd({})
        self.closing = trio.Event()
        self.urls: Latest[list[str]] = Latest([])
        self.conditions = Conditions(clock)
        self._data, self._sockets = data, sockets
        self._clock = clock
        self._connect = connect
        self._room = Room(self.conditions)
        self._containment = default_containment(descriptors, self._room, (*data.private, configuration.path))
        self.ending = ending
        self.tell_idle: Callable[[bool], None] = self._end_if_idle
        self._ends_at = math.inf
        self._house: House | None = None

    async def run(self, *, task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED) -> None:
        """Run until `closing` is set. Started with the base URLs, once clients can connect."""
        fleet = self._configuration.settings.fleet
        async with (
            open_engine(fleet) as engine,
            open_store(self._data.database, conditions=self.conditions) as store,
            trio.open_nursery() as core,
        ):
            core.start_soon(self._watch_end)
            self._house = house = await build_house(self._ground(store, engine), core, self.closing)
            await self._start(house, core)
            if house.fleet is not None:
                await core.start(house.fleet.messages.run)
            front = await open_front(core, house, self._sockets)
            ended = trio.Event()
            urls = await core.start(serve_front, front, self.closing, ended)
            digest = house.deployment.value.digest
            house.trail.note("daemon.start", detail=f"version {VERSION}, configuration sha256 {digest}")
            async with trio.open_nursery() as supervised:
                await self._start_servers(house, supervised)
                if house.fleet is not None and not front.listens:
                    await self._know_others(house.fleet)
                front.listen()  # not before each server is there: a known one would be called unknown
                self.urls.set(urls)
                task_status.started(urls)
                await self.closing.wait()
                house.trail.note("daemon.stop")
                await self._end(house, front)
                supervised.cancel_scope.cancel()
            await ended.wait()
            await self._flush(house)
            core.cancel_scope.cancel()

    def reload(self) -> None:
        """Have the configuration read again, soon, if the daemon has started."""
        if self._house is not None:
            self._house.reload.begin("a signal")

    # The start --------------------------------------------------------------------------------------------------------

    def _ground(self, store: Store, engine: Engine | None) -> Ground:
        return Ground(
            engine=engine,
            configuration=self._configuration,
            data=self._data,
            store=store,
            sockets=self._sockets,
            clock=self._clock,
            conditions=self.conditions,
            containment=self._containment,
            room=self._room,
            systemd=self.systemd,
            read=self.read,
            connect=self._connect,
            tell_idle=self.tell_idle,
        )

    async def _start(self, house: House, core: trio.Nursery) -> None:
        parts, registry = house.parts, house.registry
        parts.start("events", partial(house.events.run, registry.facts, house.deployment))
        await core.start(registry.run)
        parts.start("garbage", partial(keep_catalogue, registry.catalogue))
        parts.start("usage", house.usage.run)
        parts.start("audit", house.trail.run)
        parts.start("signs of life", self.systemd.give_signs_of_life)
        parts.start("approvals", partial(house.known.approvals.read_later, registry.address))
        await house.accounts.open(core, house.deployment.value)
        if house.describing is not None:
            parts.start("model of sentences", house.describing.run)
        parts.start("logs of servers", house.keeper.run)
        parts.start("capacity", house.capacity.run)
        await core.start(house.router.run)

    async def _start_servers(self, house: House, supervised: trio.Nursery) -> None:
        servers, known, deployed = house.servers, house.known, house.deployment.value
        await supervised.start(servers.run)
        servers.switch(*known.off, on=False)
        for name, server in deployed.servers.items():
            await servers.add(server, known.offers.get(name), known.eras.get(name), disabled=name in known.off)
        for resting in deployed.resting:
            await servers.absences.report(resting)
        if house.fleet is not None:  # not before: other nodes ask for servers at once, which begin then
            await supervised.start(house.fleet.run, house.registry.address, house.router)
        supervised.start_soon(house.launches.run)
        wanted = [name for name in deployed.servers if name not in known.offers or deployed.runs_always(name)]
        supervised.start_soon(discover, house.directory, [name for name in wanted if name not in known.off])
        supervised.start_soon(house.reload.run, self.closing)  # what is half applied cannot begin again

    async def _know_others(self, fleet: FleetNode) -> None:
        """Wait until this node knows what other nodes do, and they what it does, tokens above all; not for ever.

        Until then clients are theirs: all listen at one port.
        """
        async with trio.open_nursery() as waiting:
            waiting.start_soon(cancel_when_set, self.closing, waiting.cancel_scope)
            with trio.move_on_after(KNOWN_S):
                await fleet.records.complete.wait()
                await fleet.records.flush()
            waiting.cancel_scope.cancel()

    # The end ----------------------------------------------------------------------------------------------------------

    def _end_if_idle(self, is_idle: bool) -> None:
        if is_idle:
            log.info("no client has been connected for %g s: the end", self._configuration.settings.idle_exit_s)
            self.closing.set()

    async def _watch_end(self) -> None:
        """Say that the end begins, also where a crash of the core cancels this task."""
        try:
            await self.closing.wait()
            self._ends_at = trio.current_time() + self._configuration.settings.shutdown_s
            if self._house is not None:
                self._house.events.delivery.hurry()
        finally:
            self.systemd.begin_stop()
            self.ending()

    async def _end(self, house: House, front: Front) -> None:
        """Stop in order: calls in flight may end, the rest is told so, then all servers stop at once."""
        drain_s = house.deployment.value.settings.drain_within_s
        log.info("ending: calls in flight have %g s", drain_s)
        with trio.move_on_after(drain_s), suppress(SupervisorError):
            if house.fleet is not None:
                await house.fleet.end(drain_s)
            await house.router.address.ask_in_turn(BeginShutdown())
            await front.wait_answered()
        front.end_calls()
        if house.fleet is not None:
            house.fleet.close()
        await house.servers.stop()
        if house.fleet is not None:
            await house.fleet.leave()

    async def _flush(self, house: House) -> None:
        """Write and send what is there to be written and sent."""
        await house.keeper.close()
        house.usage.flush()
        house.trail.close()
        await house.events.end(house.registry.facts, self._left_s)
        await close_tracer(house.tracer)

    def _left_s(self) -> float:
        """Return how long events may still be sent: the store needs the rest of the time for the end."""
        return max(0.0, self._ends_at - trio.current_time() - CLOSE_S)
