"""The daemons that this one works with (`/api/nodes`), the order that it shall take no servers any more, and one
configuration for all of them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from quart import Response, abort, request
from quart_trio import QuartTrio

from supervisor.front.pages.api import View
from supervisor.front.pages.app import json_response, with_query
from supervisor.front.pages.audit import describe
from supervisor.front.pages.bodies import read_json
from supervisor.front.pages.configuration import MAX_PATH_CHARS, check_key, when_done
from supervisor.front.pages.requests import check_from_here
from supervisor.front.pages.rights import REQUESTER

ALONE = "this daemon is alone: it has no other one to give its servers to"
NO_NODE = "this daemon is no node of a fleet: there is nobody to publish a configuration for"


class DrainQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which way."""

    undo: bool = False


class NewPublication(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The text of a configuration, null: that of the node's own file. `name`: what its faults call it. `plan`: only say
    what would change.
    """

    text: str | None = None
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_PATH_CHARS)] = "the text"
    plan: bool = False


_PUBLICATION = msgspec.json.Decoder(NewPublication)


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

    async def publish() -> Response:
        """Publish a configuration for all nodes that take it: `{"text": null, "plan": false}`, null for the node's own
        file; a `name` is what its faults call it.

        It answers with the `digest`, and `changes` as a reload has them; 422 with all faults of one that cannot be
        used. `plan`: only say what would change. `GET /api/nodes` says which nodes use it.
        """
        check_key(view, "publishing a configuration", "mcpvisor fleet publish")
        publisher = view.publisher or abort(409, NO_NODE)
        new, by = await read_json(view.bench, _PUBLICATION), REQUESTER.get().person.user or "the operator"
        describe(view.fleet.status().node, "only what would change" if new.plan else "")
        return await when_done(lambda: publisher.publish(new.text, by, name=new.name, plan=new.plan))

    app.add_url_rule("/api/nodes", "nodes", nodes)
    app.add_url_rule("/api/nodes/configuration", "publish_configuration", publish, methods=["POST"])
    app.add_url_rule("/api/nodes/drain", "drain", with_query(DrainQuery, drain), methods=["POST"])
