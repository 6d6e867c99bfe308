"""Puts the front together: guard, MCP over HTTP and WebSocket, the operators' pages, the server under them."""

from __future__ import annotations

from collections.abc import Callable
from socket import socket

import trio

from actors.errors import ConfigError
from actors.kit import Conditions
from supervisor.config import Settings
from supervisor.front.dispatch import Dispatch
from supervisor.front.edge.budget import Budget
from supervisor.front.edge.connection import Handler
from supervisor.front.edge.request import BodyLimits
from supervisor.front.edge.serve import serve
from supervisor.front.edge.wire import ConnectionCounters
from supervisor.front.guard import Guard
from supervisor.front.http.endpoint import McpHttp
from supervisor.front.http.session_ids import Sealer
from supervisor.front.mcp.listen import StreamLimit
from supervisor.front.pages.api import View, routes
from supervisor.front.pages.app import create_app
from supervisor.front.pages.handover import Pages
from supervisor.front.pages.logins import login_routes
from supervisor.front.pages.questions import question_routes
from supervisor.front.pages.servers import server_routes
from supervisor.front.pages.sockets import PageSockets
from supervisor.front.pages.tools import tool_routes
from supervisor.front.pages.welcome import welcome_routes
from supervisor.front.settings import buffered_bytes, http_settings, serve_settings, websocket_settings
from supervisor.front.websocket.endpoint import McpWebSocket
from supervisor.host.datadir import DataDir
from supervisor.service.drain import RequestDrain
from supervisor.service.port import Doors
from supervisor.store import Store

PAGE_BODY_BYTES = 256 * 1024
"""Of what a person types into a form, files included; no other page has use for a body."""


class Front:
    """The front of one daemon. `open`, then `serve` until the daemon's `closing` is set."""

    def __init__(
        self,
        settings: Settings,
        sockets: list[socket],
        handler: Handler,
        http: McpHttp,
        store: Store,
        clock: Callable[[], float],
        conditions: Conditions,
        drain: RequestDrain,
        budget: Budget,
        counters: ConnectionCounters,
    ) -> None:
        self._settings = settings
        self._conditions = conditions
        self._store = store
        self._clock = clock
        self._sockets = sockets
        self._handler = handler
        self._http = http
        self._drain = drain
        self._budget = budget
        self._counters = counters

    @classmethod
    async def open(
        cls,
        settings: Settings,
        sockets: list[socket],
        doors: Doors,
        view: View,
        data: DataDir,
        store: Store,
        clock: Callable[[], float],
        conditions: Conditions,
        counters: ConnectionCounters,
    ) -> Front:
        """Read the ended sessions and build the application. `counters` are those that `view` shows."""
        drain, budget = RequestDrain(doors.find("").service, view.closing, data.mark), Budget(buffered_bytes(settings))
        http = McpHttp(
            drain,
            sealer=Sealer(data.key("session")),
            settings=http_settings(settings),
            now=clock,
            ended=store.end_session,
            ended_until=store.end_sessions_until,
            kept=store.keep,
            already_ended=await store.load_ended_sessions(clock()) if store.opened.is_set() else {},
            limit=StreamLimit(),
            doors=doors,
        )
        websocket = McpWebSocket(drain, websocket_settings(settings), doors)
        app = create_app(routes(view))
        tool_routes(view)(app)
        server_routes(view)(app)
        login_routes(view)(app)
        question_routes(view)(app)
        welcome_routes(view.version)(app)
        pages = Pages(app, BodyLimits(PAGE_BODY_BYTES, settings.body_timeout_s))
        handler = Dispatch(_guard(settings, sockets), http.serve, websocket.serve, pages, PageSockets(view))
        return cls(settings, sockets, handler, http, store, clock, conditions, drain, budget, counters)

    async def answered(self) -> None:
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
            nursery.start_soon(self._http.run)
            if not self._store.opened.is_set():
                nursery.start_soon(self._learn_late)
            await serve(
                self._handler,
                self._sockets,
                serve_settings(self._settings),
                closing,
                counters=self._counters,
                budget=self._budget,
                conditions=self._conditions,
                task_status=task_status,
            )
            nursery.cancel_scope.cancel()

    async def _learn_late(self) -> None:
        """Read which sessions have ended as soon as the store can be opened."""
        await self._store.opened.wait()
        self._http.sessions.take_ended(await self._store.load_ended_sessions(self._clock()))


def _guard(settings: Settings, sockets: list[socket]) -> Guard:
    host, _ = settings.address
    ports = {listener.getsockname()[1] for listener in sockets}
    try:
        return Guard(host, ports, settings.allowed_hosts, settings.allowed_origins)
    except ValueError as error:
        raise ConfigError(str(error), key="supervisor.allowed_hosts") from None
