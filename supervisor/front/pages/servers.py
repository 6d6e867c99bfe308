"""The pages of one server: how it does, what may be ordered of it, and what it and we have to say (`/api/servers/...`).

- A name means exactly one configured server; anything else is 404 with the nearest names.
- An order is a POST without a body. It is waited for until `deadline_s` at most; what is not done by then goes on.
- Orders come from this machine only. A page of a foreign origin cannot give any: a browser sends `Origin` with every
  POST, and the guard refuses it.
- Logs are the server's own text: without secrets, unprintable characters escaped; show it, never run it.
"""

from __future__ import annotations

from typing import Annotated, Any, get_args

import msgspec
import trio
from quart import Response, abort, request
from quart_trio import QuartTrio

from actors.errors import CallTimedOut
from actors.server.operators.journal import Journal
from supervisor.front.pages.api import View, server_row
from supervisor.front.pages.app import json_response, with_query
from supervisor.front.pages.requests import check_from_here
from supervisor.front.pages.rights import REQUESTER
from supervisor.identity.people import Person
from supervisor.servers.orders import Order

MAX_LINES = 1000
"""Of one page, and of one message of a follower."""


class OrderQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long an order is waited for, in seconds."""

    deadline_s: Annotated[float, msgspec.Meta(ge=0.1, le=3600)] = 60.0


class LogQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many of the newest lines a page has."""

    lines: Annotated[int, msgspec.Meta(ge=0, le=MAX_LINES)] = 100


def add_server_routes(view: View, app: QuartTrio) -> None:
    pages = ServerPages(view)
    app.add_url_rule("/api/servers/<server>", "server", pages.row)
    app.add_url_rule("/api/servers/<server>/logs", "server_logs", with_query(LogQuery, pages.logs))
    rule = f"/api/servers/<server>/<any({','.join(get_args(Order))}):order>"
    app.add_url_rule(rule, "order_server", with_query(OrderQuery, pages.order), methods=["POST"])


class ServerPages:
    """Answers for one server at a time."""

    def __init__(self, view: View) -> None:
        self._view = view

    async def row(self, server: str) -> Response:
        """Show one server, as `/api/status` does."""
        self._view.control.check(server)
        return json_response(await server_row(self._view, server))

    async def order(self, wanted: OrderQuery, server: str, order: Order) -> Response:
        """Give an order, as the command does: `message` is a sentence, `status` the server as it is then.

        It is waited for `deadline_s` seconds; what is not done by then is 504, and goes on.
        """
        check_from_here(request.scope)
        self._view.control.check(server)
        with trio.move_on_after(wanted.deadline_s):
            done = await self._view.control.order(server, order, self._view.principal)
            body = {"server": server, "order": order, **msgspec.to_builtins(done)}
            return json_response({**body, "status": await server_row(self._view, server)})
        text = f"{server}: {order} is not done after {wanted.deadline_s:g} s; it goes on: see mcpvisor status"
        raise CallTimedOut(text, server=server, outcome="unknown")

    async def logs(self, wanted: LogQuery, server: str) -> Response:
        """Show the newest lines of the log; `newest` is the number to follow from.

        A member sees that of a server which is started for them alone.
        """
        name = await find_log(self._view, REQUESTER.get().person, server)
        if name is None:
            abort(404)
        journal = self._view.journals(name)
        kept = journal.last(wanted.lines) if journal is not None else []
        newest = journal.newest.value if journal is not None else 0
        lines = await render_lines(journal, kept)
        return json_response({"server": server, "newest": newest, "lines": lines})


async def find_log(view: View, person: Person, server: str) -> str | None:
    """Return the log that somebody means by the name of a server; None if there is none that they may see.

    What a launch writes that others have as well may be about their calls. Raises `UnknownServer`.
    """
    if person.may("auditor"):
        view.control.check(server)
        return server
    await view.seen_by(person)  # so that it is known who has which launch
    launch = next((own.name for own in person.rights.launches if own.server == server and own.name), "")
    return launch if launch and view.launches.people_of(launch) == [person.user] else None


async def render_lines(journal: Journal | None, kept: list[Any]) -> Any:
    """Return lines as they may be shown. In a thread: taking out secrets is slow."""
    return await trio.to_thread.run_sync(journal.render, kept) if journal is not None and kept else []
