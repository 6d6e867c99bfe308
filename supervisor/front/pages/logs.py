"""What servers wrote: of one (`/api/servers/{server}/logs`), and of all that somebody may see (`/api/logs`); as pages,
and over a WebSocket as it comes.

- Logs are the server's own text: without secrets, unprintable characters escaped; show it, never run it.
- A member sees the logs of launches that are theirs alone, and of those what came while that was so: what a launch
  writes that others have as well may be about their calls. Whoever may look at everything sees it all.
- A client of a WebSocket says nothing that means anything; it is read so that it can leave, and be asked for signs of
  life.
"""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Annotated, Any, Final
from urllib.parse import unquote

import msgspec
import trio
from quart import abort

from actors.errors import SupervisorError
from actors.kit import Latest
from actors.launch import is_own
from actors.server.operators.journal import QUIET_S, Journal, KeptLine, LogLine
from supervisor import operations
from supervisor.front.dispatch import EVENTS_PATH
from supervisor.front.edge.request import HttpRequest
from supervisor.front.edge.websocket import WebSocket
from supervisor.front.pages.app import error_body
from supervisor.front.pages.events import read_query, serve_socket
from supervisor.front.pages.performing import performs
from supervisor.front.pages.requests import REQUESTER, admits
from supervisor.front.pages.view import View
from supervisor.identity.people import Person
from supervisor.servers.journals.files import MAX_GREP_CHARACTERS, Wanted

_MAX_LINES: Final = 1000
"""Of one page, and of one message of a follower."""

Grep = Annotated[str, msgspec.Meta(max_length=MAX_GREP_CHARACTERS)]
Since = Annotated[float, msgspec.Meta(ge=0)]


class AllLogsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many of the newest lines a page has, `since` a moment in unix seconds, with the text `grep` in them."""

    lines: Annotated[int, msgspec.Meta(ge=0, le=_MAX_LINES)] = 100
    since: Since = 0.0
    grep: Grep = ""


class LogQuery(AllLogsQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The same, and the number `before` which they are: the `before` of the page of newer ones."""

    before: Annotated[int, msgspec.Meta(ge=0)] | None = None


@performs(operations.SERVER_LOGS)
async def server_logs(view: View, query: LogQuery, server: str) -> Any:
    """Show the newest lines of a log; `newest` is the number to follow from, `before` leads to older ones.

    A member sees that of a server which is started for them alone. `docs/reference/logs.md` has the parameters.
    """
    person = REQUESTER.get().person
    launch = await _find_log(view, person, server)
    if launch is None:
        abort(404)
    journal = view.logs.journals.find(launch)
    newest = journal.newest.value if journal is not None else 0
    asked = Wanted(**msgspec.structs.asdict(query), user=_member_of(person))
    page = await view.logs.page([launch], asked, view.launches.mask_of)
    lines = [{name: getattr(line, name) for name in ("number", "time", "source", "text")} for line in page.lines]
    before = page.lines[0].number if lines and len(lines) == query.lines else None
    return {"server": server, "newest": newest, "lines": lines, "before": before, "complete": page.complete}


@performs(operations.LOGS)
async def logs(view: View, query: AllLogsQuery) -> Any:
    """Show the newest lines of all logs by time, each with its `server`; `until` is the moment to follow from.

    A member sees those of servers that are started for them alone.
    """
    person = REQUESTER.get().person
    await view.seen_by(person)  # so that it is known who has which launch
    until = view.clock()
    asked = Wanted(**msgspec.structs.asdict(query), user=_member_of(person))
    page = await view.logs.page(_find_logs(view, person), asked, view.launches.mask_of)
    lines = [line for line in page.lines if line.time <= until]  # what came meanwhile is for a follower
    return {"until": until, "lines": lines, "complete": page.complete}


def _member_of(person: Person) -> str | None:
    """Return whose lines alone somebody may see, None for anybody's."""
    return None if person.may("auditor") else person.user


async def _find_log(view: View, person: Person, server: str) -> str | None:
    """Return the launch that somebody means by the name of a server; None if there is none whose log they may see.

    Raises `UnknownServer`. A checkpoint.
    """
    if person.may("auditor"):
        view.control.check(server)
        return server
    await view.seen_by(person)  # so that it is known who has which launch
    launch = next((own.name for own in person.rights.launches if own.server == server and own.name), "")
    return launch if launch and view.launches.people_of(launch) == [person.user] else None


def _find_logs(view: View, person: Person) -> list[str]:
    """Return the launches whose logs somebody may see, of whom `View.seen_by` was asked before."""
    if person.may("auditor"):
        return view.logs.journals.names()
    theirs = (own.name for own in person.rights.launches if own.name)
    return [name for name in theirs if is_own(name) and view.launches.people_of(name) == [person.user]]


_GATHER_LINES_S = 0.1
"""A follower gets what came in this time at once."""

_ANGLES: Final = str.maketrans("{}", "<>")


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
            name = await _find_log(self._view, request.requester.person, server)
        except SupervisorError as error:
            await request.refuse(*error_body(error))
            return
        if name is None:
            await self._refuse(request)
            return
        asked = Wanted(lines=_MAX_LINES, grep=wanted.grep, user=_member_of(request.requester.person))
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
        asked = Wanted(lines=_MAX_LINES, grep=wanted.grep, user=_member_of(person), since=later)
        await serve_socket(request, self._view.closing, partial(_tell_all, self._view, person, asked))


async def _say(socket: WebSocket, body: Any) -> None:
    await socket.send(msgspec.json.encode(body).decode())


async def _tell_lines(journal: Journal | None, number: int, wanted: Wanted, socket: WebSocket) -> None:
    while journal is None:  # nothing was ever tried under that name
        await trio.sleep_forever()
    while True:
        version = journal.newest.version
        number, missed, kept = journal.after(number, _MAX_LINES)
        lines = await _render(journal, kept, wanted)
        if missed or lines:
            await _say(socket, {"missed": missed, "newest": number, "lines": lines})
        await _next(journal.newest, version)


async def _tell_all(view: View, person: Person, wanted: Wanted, socket: WebSocket) -> None:
    """Send what each log has more than at the last look."""
    journals, seen = view.logs.journals, dict[str, int]()
    while True:
        version = journals.news.version
        for name in _find_logs(view, person):
            await trio.lowlevel.checkpoint()
            journal = journals.find(name)
            if journal is None or (seen.get(name) == journal.newest.value and not journal.has_begun_line):
                continue
            newest, missed, kept = journal.after(seen.get(name, 0), _MAX_LINES)
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
    await trio.sleep(_GATHER_LINES_S)
