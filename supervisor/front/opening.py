"""Opens the front of a daemon: what clients reach, and what the pages show, made of what stands behind it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial
from socket import socket

import msgspec
import trio

from actors.principal import LOCAL, Principal
from supervisor.config import Settings
from supervisor.config.address import base_url
from supervisor.fleet.lives import DaemonLife
from supervisor.fleet.status import NO_FLEET
from supervisor.front.edge.budget import Budget
from supervisor.front.edge.wire import ConnectionCounters, EdgeState
from supervisor.front.idleness import watch_idleness
from supervisor.front.pages.api import View
from supervisor.front.wiring import Front
from supervisor.host.datadir import PUBLISHED
from supervisor.host.logs import count_lost_records
from supervisor.host.loop.turns import loop_turns
from supervisor.host.version import VERSION
from supervisor.house import House
from supervisor.identity.operator_key import KEY_FILE, OperatorKey
from supervisor.identity.people import Person, Role, team_of, user_of
from supervisor.identity.tokens import TokenTable
from supervisor.metrics.following import follow
from supervisor.oauth.late import open_verifier
from supervisor.oauth.shared import SharedLogins
from supervisor.servers.control import Operation
from supervisor.servers.fleet.shared import SharedApprovals, SharedSwitches, SharedTokens
from supervisor.servers.journals.keeper import LogReader
from supervisor.servers.launches.names import ConfiguredSecrets
from supervisor.servers.reloading.reload import ServerEdits
from supervisor.servers.safety import expose
from supervisor.servers.warm_up import WarmUp
from supervisor.service.asking.confirmations import Consent, Consents
from supervisor.service.asking.elicitations import Elicitations
from supervisor.service.calls.meta_calls import Sample
from supervisor.service.doors.addresses import DoorTable
from supervisor.service.events.callbacks import Callbacks
from supervisor.service.events.journal import Journal
from supervisor.service.events.own import OwnEvents
from supervisor.service.events.sources import Viewpoint
from supervisor.service.events.webhooks import Webhooks
from supervisor.service.gateway import Gateway, ServiceParts
from supervisor.service.port import Service
from supervisor.values.shared import SharedValues


async def open_front(core: trio.Nursery, house: House, sockets: list[socket]) -> Front:
    """Return the front, which is still to be served; what it needs runs in `core`."""
    deployment, registry, servers, store = house.deployment, house.registry, house.servers, house.store
    settings = deployment.value.settings
    host, _ = settings.address
    pages = settings.public_url.rstrip("/") or base_url(host, sockets[0].getsockname()[1])
    elicitations = Elicitations(registry.feed, house.clock, pages, house.trail)
    consents = Consents(house.clock, store)
    if store.ready.is_set():
        consents.take(msgspec.convert(await store.load_consents(), list[Consent]))
    shown = await core.start(expose, registry.catalogue, deployment, house.conditions)
    sample: Sample | None = None
    if house.describing is not None and settings.describe.sampling:
        from supervisor.service.asking.sampling import Sampling  # with rules that no other daemon needs

        sampling = Sampling(house.describing, settings.describe.timeout_s, house.closing)
        sample = sampling.describe
        core.start_soon(sampling.run)
    parts = ServiceParts(
        house.router.address,
        shown,
        registry.statuses,
        deployment,
        used=house.usage.add,
        audit=house.trail,
        subscribers=servers.subscribers,
        key=house.data.key("request-state"),
        life=_life_of(house),
        elicitations=elicitations,
        launches=house.launches.names,
        consents=consents,
        plugins=house.plugins,
        meters=house.meters,
        used_by=house.usage.of,
        journal=Journal(house.clock, store, _life_of(house)),
        sources=[OwnEvents(house.events, deployment, house.launches)],
        sample=sample,
    )
    starts = servers.shared.starts.spawning
    warm_up = WarmUp(
        house.router.address,
        house.launches.names.of,
        lambda: starts.has_room and not house.conditions.now(),
        lambda launch: servers.statuses.of(launch, registry.statuses.value),
        deployment,
        house.clock,
        house.meters,
    )
    parts.searches.ahead = warm_up.consider
    house.usage.ledger.takers.append(warm_up.take)
    core.start_soon(warm_up.run)
    house.usage.arguments.wanted = lambda: deployment.value.settings.calls_keep_arguments
    house.usage.arguments.hide_for = ConfiguredSecrets(deployment, house.launches.names).hide_for

    async def view_of(principal: Principal, role: Role) -> Viewpoint | None:
        """Return what somebody sees now who is not here, in a role at most; None for who could not come in any more."""
        user, team = user_of(principal), team_of(principal)
        by_tokens, now = deployment.value.settings.auth == "tokens", house.clock()
        if by_tokens and not tokens.has(user, team, now, role):
            role = "member"
        person = deployment.value.person(user, role=role, team=team)
        if person is None or (by_tokens and not tokens.has(user, team, now)):
            return None
        return Viewpoint(principal, await doors.seen_by(person), person.role)

    parts.webhooks = webhooks = None if house.fleet is not None else _make_webhooks(house, parts, view_of)
    gateway = Gateway(parts, VERSION)
    core.start_soon(gateway.run)
    core.start_soon(gateway.parts.parking.run, house.closing)
    core.start_soon(gateway.parts.topics.run, house.closing)
    counters = ConnectionCounters()
    tokens = TokenTable(store, house.trail.note_token)
    if house.fleet is not None:
        shared = SharedTokens(store, house.fleet.records)
        tokens = TokenTable(shared, house.trail.note_token)
        shared.attach(tokens)
    if store.ready.is_set():
        tokens.take(await store.load_tokens())
    doors = DoorTable(gateway, VERSION, house.launches.prepare)

    async def service_for(person: Person) -> Service:
        return (await doors.find_for(person, "")).service

    control = Operation(deployment, servers, house.router.address, registry, store, house.launches.call_up_all)
    if house.fleet is not None:
        records = house.fleet.records
        core.start_soon(SharedSwitches(records, control, house.known.off).run)
        core.start_soon(SharedApprovals(records, house.known.approvals).run)
        core.start_soon(SharedValues(records, house.values).run)
        core.start_soon(SharedLogins(records, house.accounts, house.fleet.life).run)
        if settings.fleet.configuration == "published":
            core.start_soon(house.fleet.configuration.run, house.reload, house.data.root / PUBLISHED)
    view = View(
        seen_by=doors.seen_by,
        service_for=service_for,
        tokens=tokens,
        values=house.values,
        trail=house.trail,
        bearer=await open_verifier(deployment, house.clock, core),
        version=VERSION,
        started=house.started,
        clock=house.clock,
        catalogue=registry.catalogue,
        statuses=registry.statuses,
        live=servers.statuses,
        feed=registry.feed,
        changes=registry.changes.of,
        events=house.events,
        kept_events=store.load_events,
        closing=house.closing,
        deployment=deployment,
        store=store.status,
        definitions=store.load_definitions,
        approvals=house.known.approvals,
        degraded=house.conditions.now,
        part_restarts=house.parts.restarts,
        usage=house.usage.table,
        counters=lambda: counters,
        log_records_lost=count_lost_records,
        totals=house.usage.totals,
        history=house.usage.history,
        arguments=house.usage.arguments_of,
        configurator=house.reload,
        editor=ServerEdits(house.reload, deployment),
        key=house.data.key("page"),
        token_file=str(house.data.root / KEY_FILE),
        operator=OperatorKey(house.data.key("page"), house.data.boot, time.monotonic),
        control=control,
        logs=LogReader(servers.journals, house.keeper),
        accounts=house.accounts.now,
        launches=house.launches,
        fleet=house.fleet or NO_FLEET,
        publisher=None if house.fleet is None else house.fleet.configuration,
        elicitations=elicitations,
        consents=consents,
        plugins=house.plugins.statuses,
        describing=(lambda: None) if house.describing is None else house.describing.status,
        meters=house.meters,
        tracer=house.tracer,
        turns=loop_turns(),
        room=house.room,
        figures=house.figures,
    )
    core.start_soon(doors.run)
    if webhooks is not None:
        house.parts.start("webhooks", partial(webhooks.run, house.closing))
    house.parts.start("lag of the loop", view.lag.run)
    house.parts.start("metrics", partial(follow, registry.feed, house.meters))
    house.parts.start("end when idle", partial(watch_idleness, counters, settings.idle_exit_s, house.tell_idle))
    state = EdgeState(counters, Budget(buffered_bytes(settings)), house.conditions)
    return await Front.open(settings, sockets, doors, view, house.data, store, state)


def _make_webhooks(
    house: House, parts: ServiceParts, view_of: Callable[[Principal, Role], Awaitable[Viewpoint | None]]
) -> Webhooks:
    callbacks = Callbacks(lambda: house.deployment.value.settings.webhook_origins, house.clock)
    whole = Viewpoint(LOCAL, parts.visible)
    return Webhooks(
        parts.topics,
        callbacks,
        house.store,
        house.data.key("webhooks"),
        view_of,
        whole,
        house.deployment,
        house.clock,
        house.trail,
    )


def _life_of(house: House) -> DaemonLife | None:
    """Return what names say of the process that gives them; nothing outside of a fleet."""
    peers = house.fleet
    if peers is None:
        return None
    older = tuple(house.data.older_keys("request-state"))
    return DaemonLife(house.data.life, lambda life: peers.find(life.hex()) is not None, older)


def buffered_bytes(settings: Settings) -> int:
    """Return the limit of the budget of requests; the largest one has room in it, when it is alone."""
    return max(settings.max_buffered_bytes, settings.max_body_bytes, settings.websocket_max_message_bytes)
