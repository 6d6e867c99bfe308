"""The events that are kept in the database (`/api/events/kept`), where a sink of the type `store` is configured."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from supervisor import operations
from supervisor.front.pages.performing import performs
from supervisor.front.pages.view import View
from supervisor.host.workbench import beside

MAX_EVENTS: Final = 500
"""Of one page."""
_MAX_CHARS: Final = 200


class KeptEventsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which events: of a `type`, which may have a `*`, or of a launch of a `server`. `before` is the `next` of the
    page before.
    """

    type: Annotated[str, msgspec.Meta(max_length=_MAX_CHARS)] = ""
    server: Annotated[str, msgspec.Meta(max_length=_MAX_CHARS)] = ""
    before: Annotated[int, msgspec.Meta(ge=1, le=2**53)] | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_EVENTS)] = 100


@performs(operations.KEPT_EVENTS)
async def kept_events(view: View, query: KeptEventsQuery) -> bytes:
    """Show the events that a sink has kept in the store, the newest first, and the `next` to go on before."""
    rows = await view.kept_events(query.limit + 1, query.before, query.type, query.server)
    shown = rows[: query.limit]
    following = shown[-1][0] if len(rows) > query.limit else None
    text = await beside(lambda: b",".join([payload for _, payload in shown]))
    return b'{"events":[%s],"next":%s}' % (text, msgspec.json.encode(following))
