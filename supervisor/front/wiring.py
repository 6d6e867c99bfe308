"""Puts the front together: guard, MCP over HTTP and WebSocket, the operators' pages, the server under them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from socket import socket
from typing import Final
from urllib.parse import urlsplit

import trio

from actors.errors import ConfigError
from supervisor.config import Settings
from supervisor.config.address import is_loopback
from supervisor.config.values import OWN_TOKENS
from supervisor.front.admission import Admission
from supervisor.front.certificates import Certificates
from supervisor.front.cors import CrossOrigin
from supervisor.front.dispatch import EVENTS_PATH, Dispatch
from supervisor.front.edge.connection import Handler
from supervisor.front.edge.leaving import Departures
from supervisor.front.edge.listening import is_listening
from supervisor.front.edge.request import BodyLimits, HttpRequest
from supervisor.front.edge.serve import serve
from supervisor.front.edge.wire import ConnectionContext, EdgeState
from supervisor.front.guard import Guard
from supervisor.front.http.elsewhere import shared_memory
from supervisor.front.http.endpoint import McpHttp
from supervisor.front.http.forwarded import answer_with
from supervisor.front.http.session_ids import Sealer
from supervisor.front.http.sessions import SessionMemory
from supervisor.front.mcp.listen import StreamLimit
from supervisor.front.pages.api import View
from supervisor.front.pages.app import add_welcome, create_app
from supervisor.front.pages.audit import add_audit_routes, record_orders
from supervisor.front.pages.cards import add_card_routes
from supervisor.front.pages.configuration import add_configuration_routes
from supervisor.front.pages.consents import add_consent_routes
from supervisor.front.pages.debug import add_status_routes
from supervisor.front.pages.event_streams import EventStreams
from supervisor.front.pages.events import add_event_routes
from supervisor.front.pages.handover import Pages
from supervisor.front.pages.logins import add_login_routes
from supervisor.front.pages.me import add_own_routes
from supervisor.front.pages.metrics import add_metrics_routes
from supervisor.front.pages.nodes import add_node_routes
from supervisor.front.pages.phrases import add_phrase_routes
from supervisor.front.pages.questions import add_question_routes
from supervisor.front.pages.servers import add_server_routes
from supervisor.front.pages.sockets import PageSockets
from supervisor.front.pages.tokens import add_token_routes
from supervisor.front.pages.tools import add_tool_routes
from supervisor.front.pages.trust import add_trust_routes
from supervisor.front.pages.usage import add_usage_routes
from supervisor.front.pages.values import add_value_routes
from supervisor.front.pages.visits import BrowserVisits
from supervisor.front.proxies import TrustedProxies
from supervisor.front.resource import ProtectedResource
from supervisor.front.ui.pages import add_ui_routes
from supervisor.front.websocket.endpoint import McpWebSocket
from supervisor.front.websocket.settings import FAREWELL_S, WebSocketSettings
from supervisor.host import descriptors
from supervisor.host.datadir import DataDir
from supervisor.host.loop.workbench import beside
from supervisor.identity.tokens import TokenTable
from supervisor.service.drain import RequestDrain
from supervisor.service.port import Doors
from supervisor.store import Store

ROUTES: Final = {
    "Health and status": add_status_routes,
    "What is yours": add_own_routes,
    "What is served here": add_card_routes,
    "Tools": add_tool_routes,
    "Sentences for tools": add_phrase_routes,
    "Usage": add_usage_routes,
    "Events": add_event_routes,
    "Metrics": add_metrics_routes,
    "Trust": add_trust_routes,
    "Servers": add_server_routes,
    "Configuration": add_configuration_routes,
    "Logins": add_login_routes,
    "Questions": add_question_routes,
    "What was said yes to": add_consent_routes,
    "Nodes of a fleet": add_node_routes,
    "Tokens": add_token_routes,
    "Values of teams and users": add_value_routes,
    "Audit": add_audit_routes,
}
"""What has pages, by their subjects in the documentation."""
PAGE_BODY_BYTES = 256 * 1024
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
        ended = await store.load_ended_sessions(clock()) if store.ready.is_set() else None
        peers = view.fleet.peers
        http = McpHttp(
            drain,
            sealer=Sealer(data.key("session"), *data.older_keys("session")),
            settings=settings,
            now=clock,
            memory=shared_memory(
                SessionMemory(
                    ended=store.end_session,
                    ended_until=store.end_sessions_until,
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
        app = create_app(view.audit)
        add_welcome(view.version, app)
        for add in (*ROUTES.values(), add_ui_routes):
            add(view, app)
        record_orders(app, view.audit)
        pages = Pages(app, BodyLimits(PAGE_BODY_BYTES, settings.body_timeout_s))
        admission = _admission(settings, sockets, view)
        guard, live = _guard(settings, sockets), PageSockets(view)
        handler = Dispatch(guard, admission, http.serve, websocket.serve, pages, live, streams)
        handler.cross_origin = CrossOrigin(settings.allowed_origins)
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
            visits = BrowserVisits(peers, BodyLimits(PAGE_BODY_BYTES, settings.body_timeout_s), view.closing)
            visits.name_node(app)
            handler.pass_on = visits.pass_on
        handler.meters = view.meters
        view.meters.count_sessions = lambda: len(http.sessions)
        if settings.trusted_proxies:
            handler.proxies = TrustedProxies(settings.trusted_proxies)
            handler.only_proxies = needs_proxy(settings)

        async def learn_late() -> None:
            await store.ready.wait()
            if ended is None:
                http.sessions.take_ended(await store.load_ended_sessions(clock()))
            if not view.tokens.read:
                view.tokens.take(await store.load_tokens())
            if not view.values.read:
                await view.values.take(await store.load_values())

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


def needs_proxy(settings: Settings) -> bool:
    """Say whether a proxy has to encrypt what comes from other machines."""
    host, _ = settings.address
    return not (is_loopback(host) or settings.tls_certificate or settings.insecure_http)


def _admission(settings: Settings, sockets: list[socket], view: View) -> Admission | None:
    if settings.auth == "none":
        return None
    host, _ = settings.address
    view.sign_ins.cookie = f"mcpvisor-{sockets[0].getsockname()[1]}"
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
