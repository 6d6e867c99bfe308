"""The daemon: wires the actors, the store and the front together, and ends them in order.

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

import trio

from actors.errors import SupervisorError
from actors.kit import Conditions, Latest
from actors.protocol.agreement.era import Identity
from actors.registry.actor import Registry
from actors.registry.vectors import Embedding
from actors.router import BeginShutdown, Router
from actors.transport.base import Transport
from actors.transport.stdio.containment import default_containment
from actors.transport.stdio.resources.figures import Figures, since_boot
from actors.transport.stdio.resources.room import Room
from supervisor import neural
from supervisor.config import Configuration
from supervisor.delivery.events import DaemonEvents
from supervisor.delivery.known_servers import KnownServers
from supervisor.delivery.sinks import Sinks
from supervisor.front.opening import House, open_front
from supervisor.front.wiring import Front, serve_front
from supervisor.host.datadir import DataDir
from supervisor.host.loop.pauses import keep_catalogue
from supervisor.host.loop.workbench import beside
from supervisor.host.systemd import Systemd
from supervisor.host.version import VERSION
from supervisor.metrics.meters import Meters
from supervisor.oauth.late import LateAccounts
from supervisor.oauth.port import callback_uri
from supervisor.parts import DaemonParts
from supervisor.plugins.hooks import PluginTable
from supervisor.servers.capacity.capacity import Capacity
from supervisor.servers.children import Servers
from supervisor.servers.control import switched_off
from supervisor.servers.deployment import DeployedServer, Deployment
from supervisor.servers.journals.files import LogFiles
from supervisor.servers.journals.keeper import LogKeeper
from supervisor.servers.launches.running import Launches
from supervisor.servers.reach import discover, reached_of, starts_of, transport_of
from supervisor.servers.reloading.plugins import DeployedPlugins
from supervisor.servers.reloading.reload import Read, Reload
from supervisor.store import Store, open_store
from supervisor.store.memory import StoreMemory
from supervisor.store.people.approvals import Approvals
from supervisor.store.people.trail import AuditTrail
from supervisor.store.write_behind import CLOSE_S
from supervisor.tokens.counting import TokenCounter
from supervisor.tracing.late import close_tracer, open_tracer
from supervisor.usage.totals import Usage
from supervisor.values.table import ValueTable

log = logging.getLogger(__name__)


class Daemon:
    """One daemon. `urls` holds the addresses it listens on once it does; `closing` ends it.

    `read` reads the configuration again; see `Reload`. It may be replaced before `run`, as may `systemd`.
    `connect` makes the transport of a server, whose processes may have `descriptors` open files (0: as many as we).
    `ending` is called when the end begins, by a signal, in order or by a crash; more than once.
    `conditions` has what is degraded.
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
        self._reload: Reload | None = None
        self.closing = trio.Event()
        self.urls: Latest[list[str]] = Latest([])
        self.conditions = Conditions(clock)
        self._data, self._sockets = data, sockets
        self._clock = clock
        self._connect = connect
        self._room = Room(self.conditions)
        self._launches: Launches
        self._containment = default_containment(descriptors, self._room, (data.root, configuration.path))
        self.ending = ending
        self._ends_at = math.inf

    async def run(self, *, task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED) -> None:
        """Run until `closing` is set. Started with the base URLs, once clients can connect."""
        started = trio.current_time()
        async with open_store(self._data.database, conditions=self.conditions) as store:
            table = PluginTable(self._clock, self.conditions)
            plugins = DeployedPlugins(table)
            deployment = Latest(await plugins.deploy(self._configuration, self._data.key("launch")))
            values = ValueTable(deployment, store, self._data.key("values"))
            if store.ready.is_set():
                await values.take(await store.load_values())
            deployed, settings = deployment.value, deployment.value.settings
            self._trail = trail = AuditTrail(store, lambda: deployment.value.settings, self._clock)
            meters = Meters(self._clock, lambda: deployment.value.settings.metrics_tools)
            tracer = await beside(partial(open_tracer, settings))
            usage = Usage(store, self._clock, settings.max_kept_calls, trail.note_call)
            memory = StoreMemory(store, lambda: deployment.value.digests, lambda: deployment.value.server_names)
            offers, eras = await memory.load(self._clock())
            approvals = Approvals(store, lambda server: deployment.value.trust_of(server))
            await approvals.read(deployed.server_names)
            await usage.load()
            off = await switched_off(store, deployed)
            kinds = {name: server.config.kind for name, server in deployed.servers.items()}
            counter = TokenCounter(self._data.tokenizer_cache, settings.tokenizer_timeout_s)
            known = {name: (kinds[name], each) for name, each in offers.items() if name in kinds and name not in off}
            registry = Registry(
                known,
                memory,
                counter.count,
                self._clock,
                embedding=Embedding(partial(neural.load, settings.rerank, self._data.model), store),
                conditions=self.conditions,
                names=deployed.names,
                rules=lambda server: deployment.value.tool_rules_of(server),
                pinning=approvals.pinning,
                reviewer=table,
                reviewed={name: await table.review(name, offer) for name, (_, offer) in known.items()},
            )
            table.feed = registry.feed
            people_of = lambda launch: self._launches.people_of(launch)  # noqa: E731 - they are made later
            launch_of = lambda server, principal: self._launches.names.of(server, principal)  # noqa: E731 - as above
            world = KnownServers(deployment, registry.catalogue, registry.statuses, people_of)
            events = DaemonEvents(settings, world, Sinks(store, self._clock).make, self._clock, launch_of)
            events.delivery.configure(settings)
            usage.ledger.takers += (meters.take, events.take)
            events.settle = usage.ledger.settle
            trail.tell, self.conditions.tell = events.note, events.lack
            async with trio.open_nursery() as core:
                core.start_soon(self._watch_end, settings.shutdown_s, events.delivery.hurry)
                parts = DaemonParts(core, self.conditions)
                parts.start("events", partial(events.run, registry.feed, deployment))
                await core.start(registry.run)
                parts.start("garbage", partial(keep_catalogue, registry.catalogue))
                parts.start("usage", usage.run)
                parts.start("audit", trail.run)
                parts.start("signs of life", self.systemd.give_signs_of_life)
                parts.start("approvals", partial(approvals.read_later, registry.address))
                servers = Servers(
                    registry.address,
                    self._connect or self._reach,
                    Identity(version=VERSION, mark=self._data.mark),
                    self._clock,
                    starts_of(settings),
                    reached=reached_of(settings),
                    conditions=self.conditions,
                    recall=registry.offer,
                    keeper=approvals.pinning,
                    observer=meters if tracer is None else tracer.observe(meters),
                )
                self._accounts = self._late_accounts(deployment, store)
                await (prepare := partial(self._accounts.open, core))(deployed)
                files = LogFiles(self._data.logs)
                keeper = LogKeeper(files, servers.journals, deployment, self.conditions, self._clock)
                parts.start("logs of servers", keeper.run)
                self._launches = launches = Launches(deployment, servers, registry, memory)
                memory.own_digest = launches.digest_of
                servers.journals.people_of = launches.people_of
                figures = Figures(since_boot).get
                capacity = Capacity(servers.directory, servers.statuses, self._room, deployment, figures)
                parts.start("capacity", capacity.run)
                router = Router(
                    servers.directory, settings.max_in_flight, launches.names.of, launches, capacity.overload
                )
                await core.start(router.run)
                self._reload = reload = Reload(
                    self.read,
                    deployment,
                    servers,
                    registry,
                    store,
                    key=self._data.key("launch"),
                    clock=self._clock,
                    prepare=prepare,
                    systemd=self.systemd,
                    audit=trail,
                    plugins=plugins,
                )
                front = await open_front(
                    core,
                    House(
                        version=VERSION,
                        clock=self._clock,
                        started=started,
                        closing=self.closing,
                        data=self._data,
                        deployment=deployment,
                        conditions=self.conditions,
                        parts=parts,
                        store=store,
                        registry=registry,
                        router=router,
                        servers=servers,
                        launches=launches,
                        reload=reload,
                        accounts=self._accounts.now,
                        approvals=approvals,
                        values=values,
                        trail=trail,
                        usage=usage,
                        keeper=keeper,
                        plugins=table,
                        events=events,
                        meters=meters,
                        tracer=tracer,
                        room=self._room,
                        figures=figures,
                    ),
                    self._sockets,
                )
                ended = trio.Event()
                urls = await core.start(serve_front, front, self.closing, ended)
                trail.note("daemon.start", detail=f"version {VERSION}, configuration sha256 {deployed.digest}")
                async with trio.open_nursery() as supervised:
                    await supervised.start(servers.run)
                    servers.switch(*off, on=False)
                    for name, server in deployed.servers.items():
                        await servers.add(server, offers.get(name), eras.get(name), disabled=name in off)
                    for resting in deployed.resting:
                        await servers.absences.report(resting)
                    supervised.start_soon(launches.run)
                    self.urls.set(urls)
                    task_status.started(urls)
                    supervised.start_soon(
                        discover, servers.directory, [name for name in kinds if name not in offers and name not in off]
                    )
                    parts.start("reload", partial(reload.run, self.closing))
                    await self.closing.wait()
                    trail.note("daemon.stop")
                    await self._end(deployment, router, servers, front)
                    supervised.cancel_scope.cancel()
                await ended.wait()
                await keeper.close()
                usage.flush()
                trail.close()
                await events.end(registry.feed, self._left_s)
                await close_tracer(tracer)
                core.cancel_scope.cancel()

    def reload(self) -> None:
        """Have the configuration read again, soon, if the daemon has started."""
        if self._reload is not None:
            self._reload.begin("a signal")

    def _left_s(self) -> float:
        """Return how long events may still be sent: the store needs the rest of the time for the end."""
        return max(0.0, self._ends_at - trio.current_time() - CLOSE_S)

    def _reach(self, server: DeployedServer) -> Transport:
        return transport_of(self._containment, self._accounts.authorizer(server), server)

    def _late_accounts(self, deployment: Latest[Deployment], store: Store) -> LateAccounts:
        (host, _), settings = deployment.value.settings.address, deployment.value.settings
        public = settings.public_url if settings.tls_certificate else ""
        uri = callback_uri(host, self._sockets[0].getsockname()[1], public)
        woken = lambda account: self._launches.logged_in(account)  # noqa: E731 - they are made later
        return LateAccounts(deployment, store, self._data.key("oauth"), self._clock, uri, woken, self._trail)

    async def _watch_end(self, shutdown_s: float, hurry: Callable[[], None]) -> None:
        """Say that the end begins, also where a crash of the core cancels this task."""
        try:
            await self.closing.wait()
            self._ends_at = trio.current_time() + shutdown_s
            hurry()
        finally:
            self.systemd.begin_stop()
            self.ending()

    async def _end(self, deployment: Latest[Deployment], router: Router, servers: Servers, front: Front) -> None:
        """Stop in order: calls in flight may end, the rest is told so, then all servers stop at once."""
        drain_s = deployment.value.settings.drain_within_s
        log.info("ending: calls in flight have %g s", drain_s)
        with trio.move_on_after(drain_s), suppress(SupervisorError):
            await router.address.ask_in_turn(BeginShutdown())
            await front.wait_answered()
        front.end_calls()
        await servers.stop()
