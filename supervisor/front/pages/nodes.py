"""The daemons that this one works with (`/api/nodes`), the order that it shall take no servers any more, and one
configuration for all of them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from quart import abort

from supervisor import operations
from supervisor.front.pages.configuration import MAX_PATH_CHARS, when_done
from supervisor.front.pages.performing import describe, performs
from supervisor.front.pages.requests import REQUESTER
from supervisor.front.pages.view import View

_ALONE = "this daemon is alone: it has no other one to give its servers to"
_NO_NODE = "this daemon is no node of a fleet: there is nobody to publish a configuration for"


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


@performs(operations.NODES)
async def nodes(view: View) -> Any:
    """Show the fleet as this node sees it, and which servers it runs itself."""
    return view.fleet.status()


@performs(operations.DRAIN)
async def drain(view: View, query: DrainQuery) -> Any:
    """Have this node give its servers to others and take none, until that is undone; answered when it has none."""
    node = view.fleet.status().node or abort(409, _ALONE)
    describe(node, "undone" if query.undo else "")
    return {"node": node, "moved": await view.fleet.drain(undo=query.undo)}


@performs(operations.PUBLISH)
async def publish(view: View, body: NewPublication) -> Any:
    """Publish a configuration for all nodes that take it: `{"text": null, "plan": false}`, null for the node's own
    file; a `name` is what its faults call it.

    It answers with the `digest`, and `changes` as a reload has them; 422 with all faults of one that cannot be
    used. `plan`: only say what would change. `GET /api/nodes` says which nodes use it.
    """
    publisher = view.publisher or abort(409, _NO_NODE)
    by = REQUESTER.get().person.user or "the operator"
    describe(view.fleet.status().node, "only what would change" if body.plan else "")
    return await when_done(lambda: publisher.publish(body.text, by, name=body.name, plan=body.plan))
