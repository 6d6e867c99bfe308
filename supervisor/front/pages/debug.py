"""`/api/status/debug`: all that is known of servers, for finding out why. Never a secret, nor a payload of a call.

What takes long is made a server at a time, with turns for others in between, or beside the loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import msgspec
import trio
from quart import Response, abort
from quart_trio import QuartTrio

from actors.catalogue.metadata import Metadata
from actors.catalogue.snapshot import Catalogue
from actors.installation import DISABLED
from actors.protocol.listing import Readings
from supervisor.front.pages.api import View, add_routes
from supervisor.front.pages.app import json_response
from supervisor.front.pages.metadata import findings
from supervisor.front.pages.server_rows import figures_row, status_row, token_savings
from supervisor.host.workbench import beside

_NOT_READ: Final = msgspec.structs.asdict(Readings())


def add_status_routes(view: View, app: QuartTrio) -> None:
    """Add the pages of health and status, this one with them."""
    add_routes(view, app)

    async def debug() -> Response:
        """Show tools, `discovery`, processes and findings, by server and transport; 404 with `show_debug` off."""
        if not view.deployment.value.settings.show_debug:
            abort(404)
        return json_response(await _debug(view))

    app.add_url_rule("/api/status/debug", view_func=debug)


async def _debug(view: View) -> bytes:
    catalogue = view.visible_catalogue()
    now, figures = view.now(), await view.figures()
    processes: dict[str, dict[str, Any]] = {}
    for name in view.live.names(view.reports()):
        await trio.lowlevel.checkpoint()
        if (status := view.status_of(name, stderr=True)) is not None:
            row = status_row(status, catalogue, now)
            processes[name] = row | figures_row(row, figures)
    described = await view.described.of(catalogue)
    own = {
        "version": view.version,
        "usage": view.usage(view.principal),
        "connections": view.counters(),
        "store": view.store(),
        "degraded": view.degraded(),
        "tokens": token_savings(catalogue),
    }
    return await beside(partial(_page, catalogue, processes, described, own))


def _page(
    catalogue: Catalogue,
    processes: Mapping[str, Mapping[str, Any]],
    described: Mapping[str, Mapping[str, Metadata]],
    own: Mapping[str, Any],
) -> bytes:
    """Return the page as JSON, with the members of `own`; megabytes, where there are many tools."""
    by_transport = Counter[str]()
    for entry in catalogue.entries.values():
        by_transport[entry.transport] += len(entry.tools)
    page = {
        **own,
        "tools_by_transport": by_transport,
        "tools_by_server": {
            name: [{"name": tool.name, "tokens": entry.offer.token_counts.get(tool.name)} for tool in entry.offer.tools]
            for name, entry in catalogue.entries.items()
        },
        "states": Counter(row["state"] for row in processes.values()),
        "statuses": Counter(row["status"] or DISABLED for row in processes.values()),
        "discovery": _discovery(processes),
        "processes": processes,
        "index": {"documents": len(catalogue.index), "complete": catalogue.indexed},
        "findings": findings(described),
    }
    return msgspec.json.encode(page)


def _discovery(processes: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return how lists were read, by server as `Readings` says it, and by transport: sums, and the last of all."""
    by_transport: dict[str, dict[str, Any]] = {}
    for row in processes.values():
        read, total = row["discovery"], by_transport.setdefault(row["transport"], {"servers": 0, **_NOT_READ})
        total["servers"] += 1
        total["count"] += read["count"]
        total["failures"] += read["failures"]
        if (read["last_at"] or 0.0) > (total["last_at"] or 0.0):
            total["last_at"], total["last_s"] = read["last_at"], read["last_s"]
    return {"by_transport": by_transport, "by_server": {name: row["discovery"] for name, row in processes.items()}}
