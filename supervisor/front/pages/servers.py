"""The pages of one server: how it does, and what may be ordered of it (`/api/servers/...`).

- A name means exactly one configured server; anything else is 404 with the nearest names.
- An order is a POST without a body. It is waited for until `deadline_s` at most; what is not done by then goes on.
- Orders come from this machine only. A page of a foreign origin cannot give any: a browser sends `Origin` with every
  POST, and the guard refuses it.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import trio

from actors.errors import CallTimedOut
from supervisor import operations
from supervisor.front.pages.performing import performs
from supervisor.front.pages.status import server_row
from supervisor.front.pages.view import View
from supervisor.servers.control import Order


class OrderQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long an order is waited for, in seconds."""

    deadline_s: Annotated[float, msgspec.Meta(ge=0.1, le=3600)] = 60.0


@performs(operations.SERVER)
async def server(view: View, server: str) -> Any:
    """Show one server, as `/api/status` does; of a launch also the names of its tools."""
    view.control.check(server)
    return await server_row(view, server)


@performs(operations.ORDER_SERVER)
async def order_server(view: View, query: OrderQuery, server: str, order: Order) -> Any:
    """Give an order, as the command does: `message` is a sentence, `status` the server as it is then.

    It is waited for `deadline_s` seconds; what is not done by then is 504, and goes on.
    """
    view.control.check(server)
    with trio.move_on_after(query.deadline_s):
        done = await view.control.order(server, order, view.principal)
        body = {"server": server, "order": order, **msgspec.to_builtins(done)}
        return {**body, "status": await server_row(view, server)}
    text = f"{server}: {order} is not done after {query.deadline_s:g} s; it goes on: see mcpvisor status"
    raise CallTimedOut(text, server=server, outcome="unknown")
