"""Puts the front together: guard, MCP over HTTP and WebSocket, the operators' pages, the server under them."""

from __future__ import annotations

from collections.abc import Callable
from socket import socket

import trio

from actors.errors import ConfigError
from actors.kit import Conditions
from supervisor.config import Settings
from supervisor.front.edge.app import create_app
from supervisor.front.edge.asgi import Application, Receive, Scope, Send, respond
from supervisor.front.edge.budget import Budget
from supervisor.front.edge.connection import Counters
from supervisor.front.edge.guard import Guard
from supervisor.front.edge.serve import ServeSettings, serve
from supervisor.front.edge.websocket_frames import FrameSettings
from supervisor.front.http.endpoint import McpHttp
from supervisor.front.http.session_ids import Sealer
from supervisor.front.http.settings import HttpSettings
from supervisor.front.mcp.listen import StreamLimit
from supervisor.front.pages.api import View, routes
from supervisor.front.pages.servers import server_routes
from supervisor.front.pages.tools import tool_routes
from supervisor.front.pages.welcome import welcome_routes
from supervisor.front.websocket.endpoint import McpWebSocket
from supervisor.front.websocket.session import WebSocketSettings
from supervisor.host.datadir import DataDir
from supervisor.service.drain import Drain
from supervisor.service.port import Service
from supervisor.store import Store

FAREWELL_S = 2.0
"""For the last answers to leave, once no call is in flight any more."""

PAGE_BODY_BYTES = 64 * 1024
"""No page has use for a body."""


class Front:
    """The front of one daemon. `open`, then `serve` until the daemon's `closing` is set."""

    def __init__(
        self,
        settings: Settings,
        sockets: list[socket],
        app: Application,
        http: McpHttp,
        store: Store,
        clock: Callable[[], float],
        conditions: Conditions,
        drain: Drain,
        budget: Budget,
    ) -> None:
        self._settings = settings
        self._conditions = conditions
        self._store = store
        self._clock = clock
        self._sockets = sockets
        self._app = app
        self._http = http
        self._drain = drain
        self._budget = budget
        self.counters = Counters()

    @classmethod
    async def open(
        cls,
        settings: Settings,
        sockets: list[socket],
        service: Service,
        view: Callable[[Callable[[], object]], View],
        data: DataDir,
        store: Store,
        clock: Callable[[], float],
        conditions: Conditions,
    ) -> Front:
        """Read the ended sessions and build the application. `view` gets a function that returns the counters."""
        counters: list[Counters] = []
        shown = view(lambda: counters[0])
        drain, budget = Drain(service, shown.closing), Budget(_buffered_bytes(settings))
        http = McpHttp(
            _nothing_here,
            drain,
            sealer=Sealer(data.key("session")),
            settings=_http_settings(settings),
            now=clock,
            ended=store.end_session,
            ended_until=store.end_sessions_until,
            kept=store.keep,
            already_ended=await store.load_ended_sessions(clock()) if store.opened.is_set() else {},
            limit=StreamLimit(),
            budget=budget,
        )
        websocket = McpWebSocket(drain, _websocket_settings(settings), budget)
        app = create_app(
            guard=_guard(settings, sockets),
            mcp_http=http,
            mcp_websocket=websocket,
            register=routes(shown),
            max_body_bytes=PAGE_BODY_BYTES,
        )
        tool_routes(shown)(app)
        server_routes(shown)(app)
        welcome_routes(shown.version)(app)
        front = cls(settings, sockets, app, http, store, clock, conditions, drain, budget)
        counters.append(front.counters)
        return front

    def end_calls(self) -> None:
        """Answer every call that is still in flight with `ShuttingDown`: the time to finish is over."""
        self._drain.end()

    async def serve(self, closing: trio.Event, *, task_status: trio.TaskStatus[list[str]]) -> None:
        """Serve until `closing` is set; started with the base URLs.

        Then new calls are refused and those in flight go on until `end_calls`; a moment later the rest is closed.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._http.run)
            if not self._store.opened.is_set():
                nursery.start_soon(self._learn_late)
            await serve(
                self._app,
                self._sockets,
                _serve_settings(self._settings),
                closing,
                counters=self.counters,
                budget=self._budget,
                conditions=self._conditions,
                task_status=task_status,
            )
            nursery.cancel_scope.cancel()

    async def _learn_late(self) -> None:
        """Read which sessions have ended as soon as the store can be opened."""
        await self._store.opened.wait()
        self._http.sessions.take_ended(await self._store.load_ended_sessions(self._clock()))


async def _nothing_here(scope: Scope, receive: Receive, send: Send) -> None:
    del receive
    await respond(scope, send, 404, b'{"error":{"code":404,"message":"not found"}}')


def _guard(settings: Settings, sockets: list[socket]) -> Guard:
    host, _ = settings.address
    ports = {listener.getsockname()[1] for listener in sockets}
    try:
        return Guard(host, ports, settings.allowed_hosts, settings.allowed_origins)
    except ValueError as error:
        raise ConfigError(str(error), key="supervisor.allowed_hosts") from None


def _http_settings(settings: Settings) -> HttpSettings:
    return HttpSettings(
        session_idle_s=settings.session_idle_s,
        session_max_age_s=settings.session_max_age_s,
        max_sessions=settings.max_sessions,
        sse_keepalive_s=settings.sse_keepalive_s,
        list_changed_min_interval_s=settings.list_changed_min_interval_s,
        list_changed_debounce_s=settings.list_changed_debounce_s,
        max_body_bytes=settings.max_body_bytes,
        body_timeout_s=settings.body_timeout_s,
    )


def _buffered_bytes(settings: Settings) -> int:
    """Return the limit of the budget; the largest request has room in it, when it is alone."""
    return max(settings.max_buffered_bytes, settings.max_body_bytes, settings.websocket_max_message_bytes)


def _websocket_settings(settings: Settings) -> WebSocketSettings:
    return WebSocketSettings(
        max_message_bytes=settings.websocket_max_message_bytes,
        max_queued_messages=settings.max_sockets_queue,
        list_changed_min_interval_s=settings.list_changed_min_interval_s,
        list_changed_debounce_s=settings.list_changed_debounce_s,
        stall_s=settings.websocket_stall_s,
        drain_s=settings.drain_within_s + FAREWELL_S / 2,  # before the sockets are closed under whoever is left
    )


def _serve_settings(settings: Settings) -> ServeSettings:
    return ServeSettings(
        max_connections=settings.max_connections,
        head_timeout_s=settings.head_timeout_s,
        graceful_timeout_s=settings.drain_within_s + FAREWELL_S,
        frames=FrameSettings(
            max_message_bytes=settings.websocket_max_message_bytes,
            control_frames_per_s=settings.websocket_control_frames_per_s,
            message_timeout_s=settings.body_timeout_s,
        ),
        websocket_ping_s=settings.websocket_ping_s,
    )
