"""Puts the front together and opens it: guard, MCP over HTTP and WebSocket, the pages, the server under them.

A front that nobody uses any more may end the daemon: whether anybody does is seen by its connections.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from socket import socket
from typing import Final
from urllib.parse import urlsplit

import trio

from actors.errors import ConfigError
from actors.principal import LOCAL, Principal
from supervisor.config import Settings
from supervisor.config.address import base_url, is_loopback
from supervisor.config.values import OWN_TOKENS
from supervisor.fleet.peers import NO_FLEET, DaemonLife
from supervisor.front.admission import Admission, ProtectedResource
from supervisor.front.application import application
from supervisor.front.dispatch import EVENTS_PATH, Dispatch
from supervisor.front.edge.budget import Budget
from supervisor.front.edge.connection import Handler
from supervisor.front.edge.listening import is_listening
from supervisor.front.edge.request import BodyLimits, HttpRequest
from supervisor.front.edge.serve import Certificates, serve
from supervisor.front.edge.wire import ConnectionContext, ConnectionCounters, Departures, EdgeState
from supervisor.front.guard import CrossOrigin, Guard, TrustedProxies
from supervisor.front.http.elsewhere import answer_with, shared_memory
from supervisor.front.http.endpoint import McpHttp
from supervisor.front.http.sessions import Sealer, SessionMemory
from supervisor.front.listen import StreamLimit
from supervisor.front.pages.app import Pages
from supervisor.front.pages.events import EventStreams
from supervisor.front.pages.logs import PageSockets
from supervisor.front.pages.view import View
from supervisor.front.pages.visits import BrowserVisits
from supervisor.front.websocket import FAREWELL_S, McpWebSocket, WebSocketSettings
from supervisor.host import descriptors
from supervisor.host.datadir import PUBLISHED, DataDir
from supervisor.host.logs import count_lost_records
from supervisor.host.turns import loop_turns
from supervisor.host.version import VERSION
from supervisor.host.workbench import beside
from supervisor.house import House
from supervisor.identity.operator_key import KEY_FILE, OperatorKey
from supervisor.identity.people import Person, team_of, user_of
from supervisor.identity.requester import SignIns
from supervisor.identity.tokens import TokenTable
from supervisor.oauth.late import open_verifier
from supervisor.oauth.shared import SharedLogins
from supervisor.operations import Role
from supervisor.servers.control import Control
from supervisor.servers.fleet.shared import SharedApprovals, SharedSwitches, SharedTokens
from supervisor.servers.journals.keeper import LogReader
from supervisor.servers.reloading.reload import ServerEdits
from supervisor.servers.safety import expose
from supervisor.servers.warm_up import WarmUp
from supervisor.service.asking.confirmations import Consents
from supervisor.service.asking.elicitations import Elicitations
from supervisor.service.calls.meta_calls import Sample
from supervisor.service.doors.addresses import DoorTable
from supervisor.service.drain import RequestDrain
from supervisor.service.events.callbacks import Callbacks
from supervisor.service.events.journal import Journal
from supervisor.service.events.own import OwnEvents
from supervisor.service.events.sources import Viewpoint
from supervisor.service.events.webhooks import Webhooks
from supervisor.service.gateway import Gateway, ServiceParts
from supervisor.service.port import Doors, Service
from supervisor.store import Store
from supervisor.values.table import SharedValues

LOOKS: Final = 8
"""So often is looked within the time, which is kept to that part."""


async def watch_idleness(counters: ConnectionCounters, idle_s: float, tell: Callable[[bool], None]) -> None:
    """Tell whether no connection has been open for `idle_s`, whenever that becomes otherwise; never, if that is 0.

    Connections are all there is: a client that is gone leaves a session over HTTP behind, a living one opens another.
    """
    if not idle_s:
        return
    quiet, accepted, told = 0, counters.accepted, False
    while True:
        await trio.sleep(idle_s / LOOKS)
        is_quiet = not counters.open and counters.accepted == accepted
        quiet, accepted = quiet + 1 if is_quiet else 0, counters.accepted
        if (is_idle := quiet >= LOOKS) != told:
            told = is_idle
            tell(is_idle)


_PAGE_BODY_BYTES = 256 * 1024
"""Of what a person types into a form, files included; no other page has use for a body."""


class Front:
    """The front of one daemon. `open`, then `serve` until the daemon's `closing` is set."""

    def __init__(
        self,
        settings: Settings,
        sockets: list[socket],
        handler: Handler,
        drain: RequestDrain,
        state: EdgeState,
        tasks: Sequence[Callable[[], Awaitable[None]]],
        certificates: Certificates | None = None,
    ) -> None:
        """`tasks` run as long as it serves."""
        self._settings = settings
        self._certificates = certificates
        self._tasks = tasks
        self._state = state
        self._sockets = sockets
        self._handler = handler
        self._drain = drain

    @classmethod
    async def open(
        cls,
        settings: Settings,
        sockets: list[socket],
        doors: Doors,
        view: View,
        data: DataDir,
        store: Store,
        state: EdgeState,
    ) -> Front:
        """Read the ended sessions and build the application. `state` has the counters that `view` shows."""
        clock, told = view.clock, (view.meters, view.tracer)
        drain = RequestDrain(doors.find("").service, view.closing, data.mark, *told)
        ended = await store.sessions.load_ended() if store.ready.is_set() else None
        peers = view.fleet.peers
        http = McpHttp(
            drain,
            sealer=Sealer(data.key("session"), *data.older_keys("session")),
            settings=settings,
            now=clock,
            memory=shared_memory(
                SessionMemory(
                    ended=store.sessions.end,
                    ended_until=store.sessions.end_until,
                    kept=store.keep,
                    already_ended=ended or {},
                ),
                peers,
            ),
            limit=StreamLimit(),
            doors=doors,
        )
        streams = EventStreams(view, settings.sse_keepalive_s, settings.max_event_streams)
        websocket = McpWebSocket(drain, WebSocketSettings.of(settings), doors)
        app = application(view)
        pages = Pages(app, BodyLimits(_PAGE_BODY_BYTES, settings.body_timeout_s))
        admission = _admission(settings, sockets, view)
        visits = None
        if peers is not None:
            visits = BrowserVisits(peers, BodyLimits(_PAGE_BODY_BYTES, settings.body_timeout_s), view.closing)
            visits.name_node(app)
        handler = Dispatch(
            _guard(settings, sockets),
            admission,
            http.serve,
            websocket.serve,
            pages,
            PageSockets(view),
            streams,
            cross_origin=CrossOrigin(settings.allowed_origins),
            meters=view.meters,
            proxies=TrustedProxies(settings.trusted_proxies) if settings.trusted_proxies else None,
            only_proxies=_needs_proxy(settings),
            pass_on=None if visits is None else visits.pass_on,
        )
        if peers is not None:

            async def serve_for_node(door: str, request: HttpRequest) -> None:
                await (streams(request) if request.path == EVENTS_PATH else http.serve(door, request))

            context = ConnectionContext(
                settings=settings,
                budget=state.budget,
                counters=state.counters,
                departures=Departures(),
                closing=view.closing,
            )
            peers.answer_with(answer_with(serve_for_node, handler.receive_visit, context))
        view.meters.count_sessions = lambda: len(http.sessions)

        async def learn_late() -> None:
            await store.ready.wait()
            if ended is None:
                http.sessions.take_ended(await store.sessions.load_ended())
            if not view.tokens.read:
                view.tokens.take(await store.tokens.load())
            if not view.values.read:
                await view.values.take(await store.values.load())

        files = (settings.tls_certificate, settings.tls_key)
        certificates = await beside(partial(Certificates, *files)) if settings.tls_certificate else None
        ongoing = None if admission is None else admission.ongoing
        tasks = [http.run, learn_late, *(each.run for each in (ongoing, certificates) if each is not None)]
        return cls(settings, sockets, handler, drain, state, tasks, certificates)

    @property
    def listens(self) -> bool:
        """Whether clients can connect, at all of its sockets."""
        return all(map(is_listening, self._sockets))

    def listen(self) -> None:
        """Serve whoever connects, at once or as soon as it serves at all."""
        self._state.opened.set()

    async def wait_answered(self) -> None:
        """Wait until every request that came before the end is performed. A checkpoint if there are any."""
        await self._drain.empty()

    def end_calls(self) -> None:
        """Answer every call that is still in flight with `ShuttingDown`: the time to finish is over."""
        self._drain.end()

    async def serve(self, closing: trio.Event, *, task_status: trio.TaskStatus[list[str]]) -> None:
        """Serve until `closing` is set; started with the base URLs.

        Then new calls are refused and those in flight go on until `end_calls`; a moment later the rest is closed.
        """
        async with trio.open_nursery() as nursery:
            for task in self._tasks:
                nursery.start_soon(task)
            await serve(
                self._handler,
                self._sockets,
                self._settings,
                closing,
                grace_s=self._settings.drain_within_s + FAREWELL_S,
                state=self._state,
                certificates=self._certificates,
                task_status=task_status,
            )
            nursery.cancel_scope.cancel()


async def serve_front(
    front: Front, closing: trio.Event, ended: trio.Event, *, task_status: trio.TaskStatus[list[str]]
) -> None:
    """Serve, and set `ended` at the end. Raises `RuntimeError` for an end that nobody wanted."""
    await front.serve(closing, task_status=task_status)
    if not closing.is_set():
        raise RuntimeError("the front ended by itself")
    ended.set()


def _needs_proxy(settings: Settings) -> bool:
    """Say whether a proxy has to encrypt what comes from other machines."""
    host, _ = settings.address
    return not (is_loopback(host) or settings.tls_certificate or settings.insecure_http)


def _admission(settings: Settings, sockets: list[socket], view: View) -> Admission | None:
    if settings.auth == "none":
        return None
    host, _ = settings.address
    tokens = view.tokens if settings.auth in OWN_TOKENS else TokenTable.empty()
    return Admission(
        tokens,
        view.deployment,
        view.operator,
        view.clock,
        view.bearer,
        ProtectedResource(
            settings.public_url,
            host,
            {listener.getsockname()[1] for listener in sockets},
            "https" if settings.tls_certificate else "http",
        ),
        view.audit,
        view.tickets,
        min(settings.max_connections, descriptors.for_clients()),
        view.sign_ins,
    )


def _guard(settings: Settings, sockets: list[socket]) -> Guard:
    host, _ = settings.address
    ports = {listener.getsockname()[1] for listener in sockets}
    try:
        public = urlsplit(settings.public_url).netloc
        return Guard(host, ports, (*settings.allowed_hosts, *([public] if public else [])), settings.allowed_origins)
    except ValueError as error:
        raise ConfigError(str(error), key="supervisor.allowed_hosts") from None


async def open_front(core: trio.Nursery, house: House, sockets: list[socket]) -> Front:
    """Return the front, which is still to be served; what it needs runs in `core`."""
    deployment, registry, servers, store = house.deployment, house.registry, house.servers, house.store
    settings = deployment.value.settings
    host, _ = settings.address
    pages = settings.public_url.rstrip("/") or base_url(host, sockets[0].getsockname()[1])
    elicitations = Elicitations(registry.facts, pages, house.trail)
    consents = Consents(house.clock, store.consents)
    if store.ready.is_set():
        consents.take(await store.consents.load())
    shown = await core.start(expose, registry.catalogue, deployment, house.conditions)
    sample: Sample | None = None
    if house.describing is not None and settings.describe.sampling:
        from supervisor.service.asking.sampling import Sampling  # with rules that no other daemon needs

        sampling = Sampling(house.describing, settings.describe.timeout_s, house.closing)
        sample = sampling.describe
        core.start_soon(sampling.run)
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
        ahead=warm_up.consider,
        journal=Journal(house.clock, store.occurrences, _life_of(house)),
        sources=[OwnEvents(house.events, deployment, house.launches)],
        sample=sample,
    )
    house.usage.ledger.takers.append(warm_up.take)
    core.start_soon(warm_up.run)

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
    gateway = Gateway(parts, parts.view, VERSION)
    core.start_soon(gateway.run)
    core.start_soon(gateway.parts.parking.run, house.closing)
    core.start_soon(gateway.parts.topics.run, house.closing)
    counters = ConnectionCounters()
    tokens = TokenTable(store.tokens, house.trail.note_token)
    if house.fleet is not None:
        shared = SharedTokens(store.tokens, house.fleet.records)
        tokens = TokenTable(shared, house.trail.note_token)
        shared.attach(tokens)
    if store.ready.is_set():
        tokens.take(await store.tokens.load())
    doors = DoorTable(gateway, VERSION, house.launches.prepare)

    async def service_for(person: Person) -> Service:
        return (await doors.find_for(person, "")).service

    switches = None if house.fleet is None else SharedSwitches(house.fleet.records, house.known.off)
    switched = None if switches is None else switches.note
    control = Control(deployment, servers, house.router.address, registry, store, house.launches, switched)
    if switches is not None:
        core.start_soon(switches.run, control)
    if house.fleet is not None:
        records = house.fleet.records
        core.start_soon(SharedApprovals(records, house.known.approvals).run)
        core.start_soon(SharedValues(records, house.values).run)
        core.start_soon(SharedLogins(records, house.accounts, house.fleet.life).run)
        if settings.fleet.configuration == "published":
            core.start_soon(house.fleet.configuration.run, house.reload, house.data.root / PUBLISHED)
    view = View(
        seen_by=doors.seen_by,
        service_for=service_for,
        tokens=tokens,
        sign_ins=SignIns(f"mcpvisor-{sockets[0].getsockname()[1]}"),
        values=house.values,
        trail=house.trail,
        bearer=await open_verifier(deployment, house.clock, core),
        version=VERSION,
        started=house.started,
        clock=house.clock,
        catalogue=registry.catalogue,
        statuses=registry.statuses,
        live=servers.statuses,
        facts=registry.facts,
        events=house.events,
        kept_events=store.events.find,
        closing=house.closing,
        deployment=deployment,
        store=store.status,
        definitions=store.definitions.load_of,
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
    house.parts.start("end when idle", partial(watch_idleness, counters, settings.idle_exit_s, house.tell_idle))
    state = EdgeState(counters, Budget(_buffered_bytes(settings)), house.conditions)
    return await Front.open(settings, sockets, doors, view, house.data, store, state)


def _make_webhooks(
    house: House, parts: ServiceParts, view_of: Callable[[Principal, Role], Awaitable[Viewpoint | None]]
) -> Webhooks:
    callbacks = Callbacks(lambda: house.deployment.value.settings.webhook_origins, house.clock)
    whole = Viewpoint(LOCAL, parts.view.visible)
    return Webhooks(
        parts.topics,
        callbacks,
        house.store.webhooks,
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


def _buffered_bytes(settings: Settings) -> int:
    """Return the limit of the budget of requests; the largest one has room in it, when it is alone."""
    return max(settings.max_buffered_bytes, settings.max_body_bytes, settings.websocket_max_message_bytes)
