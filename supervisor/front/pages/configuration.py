"""The pages of the configuration: how its file does, having it read again, and what that would do (`/api/reload`).

What is refused is 422 with every fault of the file, its line and its key; nothing has changed then. Taken from this
machine only, as every order is.
"""

from __future__ import annotations

import msgspec
import trio
from quart import Response, request
from quart_trio import QuartTrio

from actors.errors import CallTimedOut
from supervisor.front.pages.api import View
from supervisor.front.pages.app import json_response, query
from supervisor.front.pages.requests import check_from_here

WAIT_S = 30.0
"""Reading a file takes milliseconds; one that hangs is on a volume that does."""
MAX_PATH_CHARS = 4096


class ReloadQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`plan`: only say what would be done, also with the file at another `path`."""

    plan: bool = False
    path: str = ""


def add_configuration_routes(view: View, app: QuartTrio) -> None:
    async def source() -> Response:
        return json_response(view.configurator.source.value)

    async def reload() -> Response:
        wanted = query(ReloadQuery)
        check_from_here(request.scope)
        with trio.move_on_after(WAIT_S):
            if wanted.plan:
                return json_response(await view.configurator.plan(wanted.path[:MAX_PATH_CHARS]))
            return json_response(await view.configurator.reload())
        raise CallTimedOut(
            f"the configuration was not read within {WAIT_S:g} s, which goes on: see mcpvisor status", outcome="unknown"
        )

    app.add_url_rule("/api/configuration", "configuration", source)
    app.add_url_rule("/api/reload", "reload", reload, methods=["POST"])
