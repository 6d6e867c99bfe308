"""The debug page: everything that is known of tools and processes. It is put together beside the loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from actors.catalogue.metadata import Metadata
from actors.catalogue.snapshot import Catalogue
from supervisor.front.pages.metadata import findings


def debug_page(
    catalogue: Catalogue,
    processes: Mapping[str, Mapping[str, Any]],
    described: Mapping[str, Mapping[str, Metadata]],
    own: Mapping[str, Any],
) -> bytes:
    """Return the page as JSON, with the members of `own`; megabytes, where there are many tools."""
    by_transport: dict[str, int] = {}
    for entry in catalogue.entries.values():
        by_transport[entry.transport] = by_transport.get(entry.transport, 0) + len(entry.tools)
    page = {
        **own,
        "tools_by_transport": by_transport,
        "tools_by_server": {
            name: [{"name": tool.name, "tokens": entry.offer.token_counts.get(tool.name)} for tool in entry.offer.tools]
            for name, entry in catalogue.entries.items()
        },
        "processes": processes,
        "index": {"documents": len(catalogue.index), "complete": catalogue.indexed},
        "findings": findings(described),
    }
    return msgspec.json.encode(page)
