"""The daemons that this one works with (`/api/nodes`), and the order that it shall take no servers any more."""

from __future__ import annotations

import msgspec
from quart import Response, abort, request
from quart_trio import QuartTrio

from supervisor.front.pages.api import View
from supervisor.front.pages.app import json_response, with_query
from supervisor.front.pages.audit import describe
from supervisor.front.pages.requests import check_from_here

ALONE = "this daemon is alone: it has no other one to give its servers to"


class DrainQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which way."""

    undo: bool = False


def add_node_routes(view: View, app: QuartTrio) -> None:
    async def nodes() -> Response:
        """Show the fleet as this node sees it, and which servers it runs itself."""
        return json_response(view.fleet.status())

    async def drain(wanted: DrainQuery) -> Response:
        """Have this node give its servers to others and take none, until that is undone; answered when it has none."""
        check_from_here(request.scope)
        node = view.fleet.status().node or abort(409, ALONE)
        describe(node, "undone" if wanted.undo else "")
        return json_response({"node": node, "moved": await view.fleet.drain(undo=wanted.undo)})

    app.add_url_rule("/api/nodes", "nodes", nodes)
    app.add_url_rule("/api/nodes/drain", "drain", with_query(DrainQuery, drain), methods=["POST"])
