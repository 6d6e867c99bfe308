"""What a daemon is made of, and how its parts come to know each other. Nothing of it runs yet: see `daemon`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from socket import socket
from typing import TYPE_CHECKING

import msgspec
import trio

from actors.catalogue.documents import no_phrases
from actors.catalogue.offer import Offer
from actors.facts import FactLog
from actors.kit import Conditions, Latest
from actors.kit.directory import Directory
from actors.protocol.agreement.era import Identity
from actors.protocol.agreement.versions import Era
from actors.registry.actor import Memory, Registry
from actors.registry.indexing import Embedding
from actors.router import Router
from actors.server import ServerMessage
from actors.transport.base import Transport
from actors.transport.stdio.containment import Containment
from actors.transport.stdio.resources.figures import Figures, since_boot
from actors.transport.stdio.resources.room import Room
from supervisor import neural
from supervisor.audit_trail import AuditTrail
from supervisor.config import Configuration
from supervisor.delivery.events import DaemonEvents, KnownServers
from supervisor.delivery.sinks import Sinks
from supervisor.fleet.engine import Engine
from supervisor.host.datadir import DataDir
from supervisor.host.program import Systemd
from supervisor.host.version import VERSION
from supervisor.host.workbench import beside
from supervisor.metrics.meters import Meters
from supervisor.oauth.late import LateAccounts
from supervisor.oauth.port import callback_uri
from supervisor.parts import DaemonParts
from supervisor.phrases.late import make_describing, open_sources
from supervisor.plugins.hooks import PluginTable
from supervisor.servers.approvals import Approvals
from supervisor.servers.capacity import Capacity, Measure
from supervisor.servers.children import Servers
from supervisor.servers.control import switched_off
from supervisor.servers.deployment import DeployedServer, Deployment
from supervisor.servers.fleet.late import make_node, memory_of, recall_of, share_keys
from supervisor.servers.journals.files import LogFiles
from supervisor.servers.journals.keeper import LogKeeper
from supervisor.servers.launches.names import AccountName, ConfiguredSecrets
from supervisor.servers.launches.running import Launches
from supervisor.servers.memory import StoreMemory
from supervisor.servers.reach import reached_of, starts_of, transport_of
from supervisor.servers.reloading.reload import DeployedPlugins, Read, Reload
from supervisor.store import Store
from supervisor.tokens.counting import TokenCounter
from supervisor.tracing.context import Tracer
from supervisor.tracing.tracer import open_tracer
from supervisor.usage.totals import KeptArguments, Usage
from supervisor.values.table import ValueTable

if TYPE_CHECKING:
    from supervisor.phrases.describing import Describing
    from supervisor.phrases.sources import Sources
    from supervisor.servers.fleet.node import FleetNode


class Ground(msgspec.Struct, frozen=True, kw_only=True):
    """What a daemon stands on: what it was given, and what outlives it. For functions see `Daemon`."""

    configuration: Configuration
    data: DataDir
    store: Store
    sockets: list[socket]
    clock: Callable[[], float]
    conditions: Conditions
    containment: Containment
    room: Room
    systemd: Systemd
    read: Read
    connect: Callable[[DeployedServer], Transport] | None
    tell_idle: Callable[[bool], None]
    engine: Engine | None = None


class Recollection(msgspec.Struct, frozen=True, kw_only=True):
    """What is known from earlier: what servers offer and speak, which are switched off, what was approved."""

    offers: Mapping[str, Offer]
    eras: Mapping[str, Era]
    off: frozenset[str]
    approvals: Approvals
    memory: StoreMemory


class House(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of one daemon. `started` is a moment of the trio clock, `clock` gives unix time.

    `prepare` has to be told of a deployment before its servers are reached.
    """

    started: float
    clock: Callable[[], float]
    closing: trio.Event
    tell_idle: Callable[[bool], None]
    data: DataDir
    deployment: Latest[Deployment]
    conditions: Conditions
    parts: DaemonParts
    store: Store
    known: Recollection
    registry: Registry
    router: Router
    servers: Servers
    launches: Launches
    reload: Reload
    accounts: LateAccounts
    values: ValueTable
    trail: AuditTrail
    usage: Usage
    keeper: LogKeeper
    plugins: PluginTable
    events: DaemonEvents
    meters: Meters
    tracer: Tracer | None
    room: Room
    capacity: Capacity
    figures: Measure
    directory: Directory[ServerMessage]
    describing: Describing | None = None
    fleet: FleetNode | None = None


async def build_house(ground: Ground, core: trio.Nursery, closing: trio.Event) -> House:
    """Make all of it; the parts will run in `core`."""
    started, settings = trio.current_time(), ground.configuration.settings
    data, store, clock = ground.data, ground.store, ground.clock
    share_keys(data, settings.fleet)
    facts = FactLog(clock)
    table = PluginTable(facts, ground.conditions)
    plugins = DeployedPlugins(table)
    deployment = Latest(await plugins.deploy(ground.configuration, data.key("launch")))
    values = ValueTable(deployment, store.values, data.key("values"))
    if store.ready.is_set():
        await values.take(await store.values.load())
    known = await _recall(store, deployment, clock, is_shared=ground.engine is not None)
    trail = AuditTrail(store, lambda: deployment.value.settings, clock)
    meters = Meters(clock, lambda: deployment.value.settings.metrics_tools)
    tracer = await beside(partial(open_tracer, settings))
    fleet = None
    if ground.engine is not None:
        fleet = await make_node(ground.engine, deployment, data, ground.room, store, core)
    elif store.ready.is_set() and await store.fleet_records.load():
        store.fleet_records.forget()  # what is done without a fleet from now on is newer
    sources = await open_sources(settings, store)
    registry = await _make_registry(ground, deployment, known, memory_of(fleet, known.memory), table, sources, facts)
    reach = _Reach(ground)
    connect = ground.connect or reach
    servers = Servers(
        registry.address,
        connect if fleet is None else partial(fleet.transport, connect),
        Identity(version=VERSION, mark=data.mark),
        clock,
        starts_of(settings),
        reached=reached_of(settings),
        conditions=ground.conditions,
        recall=registry.offer,
        keeper=known.approvals.pinning,
        facts=facts,
        configured=lambda name: name in deployment.value.entries,
        may_run=None if fleet is None else fleet.may_run,
    )
    launches = Launches(deployment, servers, registry, recall_of(fleet, known.memory))
    known.memory.own_digest = launches.digest_of
    servers.journals.people_of = launches.people_of
    hide_for = ConfiguredSecrets(deployment, launches.names).hide_for
    arguments = KeptArguments(settings.max_kept_calls, lambda: deployment.value.settings.calls_keep_arguments, hide_for)
    usage = Usage(store, clock, settings.max_kept_calls, arguments, trail.note_call)
    await usage.load()
    reach.accounts = accounts = _make_accounts(ground, deployment, launches.logged_in, trail)
    events = _make_events(ground, deployment, registry, launches)
    usage.ledger.takers += (meters.take, events.take)
    facts.projections += [meters] if tracer is None else [meters, tracer]
    events.settle = usage.ledger.settle
    trail.tell, ground.conditions.tell = events.note, events.lack
    figures = Figures(since_boot).get
    directory = servers.directory if fleet is None else fleet.attach(servers, launches)
    capacity = Capacity(servers.directory, servers.statuses, ground.room, deployment, figures)
    router = Router(directory, settings.max_in_flight, launches.names.of, launches, capacity.overload)
    return House(
        started=started,
        clock=clock,
        closing=closing,
        tell_idle=ground.tell_idle,
        data=data,
        deployment=deployment,
        conditions=ground.conditions,
        parts=DaemonParts(core, ground.conditions),
        store=store,
        known=known,
        registry=registry,
        router=router,
        servers=servers,
        launches=launches,
        reload=Reload(
            ground.read,
            deployment,
            servers,
            registry,
            store,
            directory,
            key=data.key("launch"),
            clock=clock,
            prepare=partial(accounts.open, core),
            systemd=ground.systemd,
            audit=trail,
            plugins=plugins,
        ),
        accounts=accounts,
        values=values,
        trail=trail,
        usage=usage,
        keeper=LogKeeper(LogFiles(data.logs), servers.journals, deployment, ground.conditions, clock),
        plugins=table,
        events=events,
        meters=meters,
        tracer=tracer,
        room=ground.room,
        capacity=capacity,
        figures=figures,
        directory=directory,
        describing=make_describing(
            settings,
            sources,
            store,
            registry,
            environ=ground.configuration.environ,
            containment=ground.containment,
            hide_for=lambda server: deployment.value.mask(server),
            clock=clock,
            conditions=ground.conditions,
        ),
        fleet=fleet,
    )


async def _recall(
    store: Store, deployment: Latest[Deployment], clock: Callable[[], float], *, is_shared: bool
) -> Recollection:
    memory = StoreMemory(store, lambda: deployment.value.digests, lambda: deployment.value.server_names)
    offers, eras = await memory.load(clock())
    approvals = Approvals(store, lambda server: deployment.value.trust_of(server), is_shared=is_shared)
    await approvals.read(deployment.value.server_names)
    off = frozenset(await switched_off(store, deployment.value))
    return Recollection(offers=offers, eras=eras, off=off, approvals=approvals, memory=memory)


async def _make_registry(
    ground: Ground,
    deployment: Latest[Deployment],
    known: Recollection,
    memory: Memory,
    table: PluginTable,
    sources: Sources | None,
    facts: FactLog,
) -> Registry:
    """Return the registry, which knows what is known of servers that are configured and on."""
    settings, deployed = deployment.value.settings, deployment.value
    kinds = {name: server.config.kind for name, server in deployed.servers.items() if name not in known.off}
    offers = {name: (kinds[name], offer) for name, offer in known.offers.items() if name in kinds}
    return Registry(
        offers,
        memory,
        TokenCounter(ground.data.tokenizer_cache, settings.tokenizer_timeout_s).count,
        ground.clock,
        facts=facts,
        embedding=Embedding(partial(neural.load, settings.rerank, ground.data.model), ground.store.vectors),
        conditions=ground.conditions,
        names=deployed.names,
        rules=lambda server: deployment.value.tool_rules_of(server),
        described=lambda server: deployment.value.described.get(server, ""),
        phrases=no_phrases if sources is None else sources.said,
        pinning=known.approvals.pinning,
        reviewer=table,
        reviewed={name: await table.review(name, offer) for name, (_, offer) in offers.items()},
    )


def _make_events(
    ground: Ground, deployment: Latest[Deployment], registry: Registry, launches: Launches
) -> DaemonEvents:
    world = KnownServers(deployment, registry.catalogue, registry.statuses, launches.people_of)
    sinks = Sinks(ground.store, ground.clock).make
    events = DaemonEvents(deployment.value.settings, world, sinks, ground.clock, launches.names.of)
    events.delivery.configure(deployment.value.settings)
    return events


def _make_accounts(
    ground: Ground, deployment: Latest[Deployment], woken: Callable[[AccountName], Awaitable[None]], trail: AuditTrail
) -> LateAccounts:
    settings = deployment.value.settings
    public = settings.public_url if settings.tls_certificate else ""
    uri = callback_uri(settings.address[0], ground.sockets[0].getsockname()[1], public)
    return LateAccounts(deployment, ground.store, ground.data.key("oauth"), ground.clock, uri, woken, trail)


class _Reach:
    """Makes the transports of servers, whose logins are made later."""

    def __init__(self, ground: Ground) -> None:
        self._containment = ground.containment
        self.accounts: LateAccounts | None = None

    def __call__(self, server: DeployedServer) -> Transport:
        authorizer = None if self.accounts is None else self.accounts.authorizer(server)
        return transport_of(self._containment, authorizer, server)
