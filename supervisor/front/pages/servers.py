"""The pages of one server: how it does, and what may be ordered of it (`/api/servers/...`).

- A name means exactly one configured server; anything else is 404 with the nearest names.
- An order is a POST without a body. It is waited for until `deadline_s` at most; what is not done by then goes on.
- Orders come from this machine only. A page of a foreign origin cannot give any: a browser sends `Origin` with every
  POST, and the guard refuses it.
"""

from __future__ import annotations

from typing import Annotated, get_args

import msgspec
import trio
from quart import Response, request
from quart_trio import QuartTrio

from actors.errors import CallTimedOut
from supervisor.front.pages.api import View, server_row
from supervisor.front.pages.app import json_response, with_query
from supervisor.front.pages.logs import add_log_routes
from supervisor.front.pages.requests import check_from_here
from supervisor.servers.control import Order


class OrderQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long an order is waited for, in seconds."""

    deadline_s: Annotated[float, msgspec.Meta(ge=0.1, le=3600)] = 60.0


def add_server_routes(view: View, app: QuartTrio) -> None:
    pages = ServerPages(view)
    add_log_routes(view, app)
    app.add_url_rule("/api/servers/<server>", "server", pages.row)
    rule = f"/api/servers/<server>/<any({','.join(get_args(Order))}):order>"
    app.add_url_rule(rule, "order_server", with_query(OrderQuery, pages.order), methods=["POST"])


class ServerPages:
    """Answers for one server at a time."""

    def __init__(self, view: View) -> None:
        self._view = view

    async def row(self, server: str) -> Response:
        """Show one server, as `/api/status` does; of a launch also the names of its tools."""
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
