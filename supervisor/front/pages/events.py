"""The events that are kept in the database (`/api/events/kept`), where a sink of the type `store` is configured."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from quart import Response
from quart_trio import QuartTrio

from supervisor.front.pages.api import View
from supervisor.front.pages.app import json_response, with_query
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


def add_event_routes(view: View, app: QuartTrio) -> None:
    async def kept_events(wanted: KeptEventsQuery) -> Response:
        """Show the events that a sink has kept in the store, the newest first, and the `next` to go on before."""
        rows = await view.kept_events(wanted.limit + 1, wanted.before, wanted.type, wanted.server)
        shown = rows[: wanted.limit]
        following = shown[-1][0] if len(rows) > wanted.limit else None
        text = await beside(lambda: b",".join([payload for _, payload in shown]))
        return json_response(b'{"events":[%s],"next":%s}' % (text, msgspec.json.encode(following)))

    app.add_url_rule("/api/events/kept", "kept_events", with_query(KeptEventsQuery, kept_events))
