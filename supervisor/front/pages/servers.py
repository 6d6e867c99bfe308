"""The pages of one server: how it does, what may be ordered of it, and what it and we have to say (`/api/servers/...`).

- A name means exactly one configured server; anything else is 404 with the nearest names.
- An order is a POST without a body. It is waited for until `deadline_s` at most; what is not done by then goes on.
- Orders come from this machine only. A page of a foreign origin cannot give any: a browser sends `Origin` with every
  POST, and the guard refuses it.
- Logs are the server's own text: without secrets, unprintable characters escaped; show it, never run it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, get_args

import msgspec
import trio
from quart import Response, request, websocket
from quart_trio import QuartTrio

from actors.errors import (
    CallTimedOut,
    InvalidArguments,
    LoginFailed,
    MailboxFull,
    ServerDisabled,
    ServerError,
    ShuttingDown,
    SupervisorError,
    UnknownServer,
)
from actors.kit import Latest
from actors.server.journal import QUIET_S, Journal
from supervisor.front.pages.api import GOING_AWAY, View, end_when_gone, end_with, server_row
from supervisor.front.pages.query import decode
from supervisor.front.pages.this_machine import FromElsewhere, check_from_here
from supervisor.servers.orders import Control, Order

MAX_LINES = 1000
"""Of one page, and of one message of a follower."""
GATHER_S = 0.1
"""A follower gets what came in this time at once."""

STATUSES: tuple[tuple[type[SupervisorError], int], ...] = (
    (FromElsewhere, 403),
    (UnknownServer, 404),
    (ServerDisabled, 409),
    (InvalidArguments, 400),
    (MailboxFull, 503),
    (ShuttingDown, 503),
    (CallTimedOut, 504),
    (ServerError, 502),
    (LoginFailed, 502),
)
"""The HTTP status of each error; the first that fits."""


class OrderQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long an order is waited for, in seconds."""

    deadline_s: Annotated[float, msgspec.Meta(ge=0.1, le=3600)] = 60.0


class LogQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many of the newest lines a page has."""

    lines: Annotated[int, msgspec.Meta(ge=0, le=MAX_LINES)] = 100


class FollowQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The number of the last line that the follower has seen; -1 is "from now on"."""

    after: Annotated[int, msgspec.Meta(ge=-1)] = -1


def server_routes(view: View) -> Callable[[QuartTrio], None]:
    """Return a function that adds the routes to an application; without a `control` there are none."""

    def register(app: QuartTrio) -> None:
        if view.control is None:
            return
        pages = ServerPages(view, view.control)
        app.add_url_rule("/api/servers/<server>", "server", pages.row)
        app.add_url_rule("/api/servers/<server>/logs", "server_logs", pages.logs)
        app.add_websocket("/api/servers/<server>/logs", "follow_server_logs", pages.follow)
        rule = f"/api/servers/<server>/<any({','.join(get_args(Order))}):order>"
        app.add_url_rule(rule, "order_server", pages.order, methods=["POST"])

    return register


class ServerPages:
    """Answers for one server at a time."""

    def __init__(self, view: View, control: Control) -> None:
        self._view = view
        self._control = control

    async def row(self, server: str) -> Response:
        """Answer `GET /api/servers/{name}`: its row of `/api/status`."""
        try:
            self._control.check(server)
            return _json(await server_row(self._view, server))
        except SupervisorError as error:
            return failed(error)

    async def order(self, server: str, order: Order) -> Response:
        """Answer `POST /api/servers/{name}/{order}`: a sentence, and the row as it is then."""
        try:
            wanted = decode(request.args.items(multi=True), OrderQuery)
            check_from_here(request.scope)
            self._control.check(server)
            with trio.move_on_after(wanted.deadline_s):
                done = await self._control.order(server, order, self._view.principal)
                body = {"server": server, "order": order, **msgspec.to_builtins(done)}
                return _json({**body, "status": await server_row(self._view, server)})
            text = f"{server}: {order} is not done after {wanted.deadline_s:g} s; it goes on: see mcpvisor status"
            raise CallTimedOut(text, server=server, outcome="unknown")
        except SupervisorError as error:
            return failed(error)

    async def logs(self, server: str) -> Response:
        """Answer `GET /api/servers/{name}/logs`: the newest lines, and the number to follow from."""
        try:
            wanted = decode(request.args.items(multi=True), LogQuery)
            self._control.check(server)
        except SupervisorError as error:
            return failed(error)
        journal = self._view.journals(server)
        kept = journal.last(wanted.lines) if journal is not None else []
        newest = journal.newest.value if journal is not None else 0
        lines = await _shown(journal, kept)
        return _json({"server": server, "newest": newest, "lines": lines})

    async def follow(self, server: str) -> Any:
        """Tell each line that comes, until the daemon or the client ends it."""
        try:
            wanted = decode(websocket.args.items(multi=True), FollowQuery)
            self._control.check(server)
        except SupervisorError as error:
            return failed(error)
        await websocket.accept()
        closing = self._view.closing
        async with trio.open_nursery() as nursery:
            nursery.start_soon(end_with, nursery.cancel_scope, closing)
            nursery.start_soon(end_when_gone, nursery.cancel_scope)
            await _tell(self._view.journals(server), wanted.after)
        if closing.is_set():
            await websocket.close(GOING_AWAY, "the daemon is shutting down")
        return None


async def _tell(journal: Journal | None, number: int) -> None:
    while journal is None:  # nothing was ever tried under that name
        await trio.sleep_forever()
    while True:
        version = journal.newest.version
        number, missed, kept = journal.after(number, MAX_LINES)
        if missed or kept:
            told = {"missed": missed, "newest": number, "lines": await _shown(journal, kept)}
            await websocket.send(msgspec.json.encode(told).decode())
        await _next(journal.newest, version)


async def _next(newest: Latest[int], version: int) -> None:
    """Wait for more to tell; a line without an end counts once it is quiet, which nobody announces."""
    with trio.move_on_after(QUIET_S):
        await newest.changed(version)
    await trio.sleep(GATHER_S)


async def _shown(journal: Journal | None, kept: list[Any]) -> Any:
    """Return lines as they may be shown. In a thread: taking out secrets is slow."""
    return await trio.to_thread.run_sync(journal.shown, kept) if journal is not None and kept else []


def failed(error: SupervisorError) -> Response:
    """Answer with an error."""
    status = next((status for kind, status in STATUSES if isinstance(error, kind)), 500)
    return _json({"error": {"code": status, "message": error.message, "data": error.data()}}, status)


def _json(body: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(body), status=status, content_type="application/json")
