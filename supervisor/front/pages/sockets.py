"""The WebSockets of the pages: what a server writes, as it comes.

A client says nothing here that means anything; it is read so that it can leave, and be asked for signs of life.
"""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Annotated, Any, Final
from urllib.parse import parse_qsl, unquote

import msgspec
import trio

from actors.errors import SupervisorError
from actors.kit import Latest
from actors.server.operators.journal import QUIET_S, Journal, KeptLine, LogLine
from supervisor.front.admission import TICKET
from supervisor.front.dispatch import EVENTS_PATH
from supervisor.front.edge.request import HttpRequest
from supervisor.front.edge.websocket import Handshake, WebSocket
from supervisor.front.http.streams import cancel_when_set
from supervisor.front.pages.app import error_body
from supervisor.front.pages.logs import MAX_LINES, Grep, Since, find_log, find_logs, member_of
from supervisor.front.pages.requests import S, decode
from supervisor.front.pages.rights import admits
from supervisor.front.pages.view import View
from supervisor.front.websocket import choose_subprotocol
from supervisor.identity.people import Person
from supervisor.servers.journals.files import Wanted

GOING_AWAY = 1001
"""RFC 6455 section 7.4.1."""
GATHER_S = 0.1
"""A follower gets what came in this time at once."""

_ANGLES: Final = str.maketrans("{}", "<>")
Tell = Callable[[WebSocket], Awaitable[None]]


class FollowQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The number of the last line that the follower has seen; -1 is "from now on". The text `grep` is in each line."""

    after: Annotated[int, msgspec.Meta(ge=-1)] = -1
    grep: Grep = ""


class FollowAllQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The moment in unix seconds of the last line that the follower has seen; without one it is "from now on"."""

    after: Since | None = None
    grep: Grep = ""


PATHS: Mapping[str, tuple[str, type[msgspec.Struct] | None]] = {
    "/api/servers/{server}/logs": ("Tell each line of the log from `after` on, over a WebSocket.", FollowQuery),
    "/api/logs": ("Tell each line of all logs from the moment `after` on, over a WebSocket.", FollowAllQuery),
}
"""Where they are, what they do, and their parameters; those of MCP are where MCP is."""


class PageSockets:
    """Serves the WebSockets that are none of MCP's."""

    def __init__(self, view: View) -> None:
        self._view = view
        ways = (self._follow, self._follow_all)
        self._ways: dict[str, Callable[..., Awaitable[None]]] = dict(zip(PATHS, ways, strict=True))

    async def __call__(self, request: HttpRequest) -> None:
        path = request.target.decode("ascii").partition("?")[0]
        for place, serve in self._ways.items():
            match = re.fullmatch(place.replace("{server}", "([^/]+)"), path)
            if match and admits(self._view.audit, request.requester, "WS", place.translate(_ANGLES)):
                await serve(request, *map(unquote, match.groups()))
                return
        await self._refuse(request)

    async def _refuse(self, request: HttpRequest) -> None:
        places = ", ".join((EVENTS_PATH, *PATHS))
        await request.fail(404, f"there is no WebSocket here, or not for your role; there is /mcp, {places}")

    async def _follow(self, request: HttpRequest, server: str) -> None:
        try:
            wanted = read_query(request, FollowQuery)
            name = await find_log(self._view, request.requester.person, server)
        except SupervisorError as error:
            await request.refuse(*error_body(error))
            return
        if name is None:
            await self._refuse(request)
            return
        asked = Wanted(lines=MAX_LINES, grep=wanted.grep, user=member_of(request.requester.person))
        tell = partial(_tell_lines, self._view.logs.journals.find(name), wanted.after, asked)
        await serve_socket(request, self._view.closing, tell)

    async def _follow_all(self, request: HttpRequest) -> None:
        try:
            wanted = read_query(request, FollowAllQuery)
        except SupervisorError as error:
            await request.refuse(*error_body(error))
            return
        person = request.requester.person
        await self._view.seen_by(person)
        later = math.nextafter(self._view.clock() if wanted.after is None else wanted.after, math.inf)
        asked = Wanted(lines=MAX_LINES, grep=wanted.grep, user=member_of(person), since=later)
        await serve_socket(request, self._view.closing, partial(_tell_all, self._view, person, asked))


def read_query(request: HttpRequest, type_: type[S]) -> S:
    """Return the parameters of a request; a ticket that has opened a WebSocket is none. Raises `InvalidArguments`."""
    pairs = parse_qsl(request.target.decode("ascii").partition("?")[2], keep_blank_values=True)
    return decode([pair for pair in pairs if not (request.is_websocket and pair[0] == TICKET)], type_)


async def serve_socket(request: HttpRequest, closing: trio.Event, tell: Tell) -> None:
    """Accept a WebSocket and tell until the client leaves or `closing` is set. Raises `HttpProtocolError`.

    A browser that offers subprotocols, as a page does to show a token, takes no answer without one of them.
    """
    handshake = Handshake(request)
    socket = await handshake.accept(choose_subprotocol(handshake.subprotocols))
    with trio.CancelScope() as scope, socket.leaving.ends(scope):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cancel_when_set, closing, scope)
            nursery.start_soon(_end_after, scope, socket)
            nursery.start_soon(socket.pings)
            await tell(socket)
    if closing.is_set():
        await socket.close(GOING_AWAY, "the daemon is shutting down")


async def _say(socket: WebSocket, body: Any) -> None:
    await socket.send(msgspec.json.encode(body).decode())


async def _end_after(scope: trio.CancelScope, socket: WebSocket) -> None:
    while await socket.receive() is not None:
        pass
    scope.cancel()


async def _tell_lines(journal: Journal | None, number: int, wanted: Wanted, socket: WebSocket) -> None:
    while journal is None:  # nothing was ever tried under that name
        await trio.sleep_forever()
    while True:
        version = journal.newest.version
        number, missed, kept = journal.after(number, MAX_LINES)
        lines = await _render(journal, kept, wanted)
        if missed or lines:
            await _say(socket, {"missed": missed, "newest": number, "lines": lines})
        await _next(journal.newest, version)


async def _tell_all(view: View, person: Person, wanted: Wanted, socket: WebSocket) -> None:
    """Send what each log has more than at the last look."""
    journals, seen = view.logs.journals, dict[str, int]()
    while True:
        version = journals.news.version
        for name in find_logs(view, person):
            await trio.lowlevel.checkpoint()
            journal = journals.find(name)
            if journal is None or (seen.get(name) == journal.newest.value and not journal.has_begun_line):
                continue
            newest, missed, kept = journal.after(seen.get(name, 0), MAX_LINES)
            missed = missed if name in seen else 0
            seen[name] = newest
            lines = await _render(journal, kept, wanted)
            if missed or lines:
                await _say(socket, {"server": name, "missed": missed, "lines": lines})
        await _next(journals.news, version)


async def _render(journal: Journal, kept: list[KeptLine], wanted: Wanted) -> list[LogLine]:
    """Return those of some lines that are wanted. In a thread: taking out secrets is slow."""
    shown = [line for line in kept if wanted.may_show(line.user, line.time, line.number)]
    lines = await trio.to_thread.run_sync(journal.render, shown) if shown else []
    return [line for line in lines if wanted.fits(line.text)]


async def _next(newest: Latest[int], version: int) -> None:
    """Wait for more to tell; a line without an end counts once it is quiet, which nobody announces."""
    with trio.move_on_after(QUIET_S):
        await newest.wait_newer(version)
    await trio.sleep(GATHER_S)
