"""A small catalogue: five tools of two servers, one more of a server that failed, and how often they were called."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from actors.catalogue.criteria import ToolTotals, Usage
from actors.catalogue.lists import tool
from actors.catalogue.offer import Offer
from actors.catalogue.snapshot import Catalogue, Entry
from actors.search.index import Index


def entry(server: str, *tools: dict[str, Any], version: str = "1.2.0", available: bool = True, **more: Any) -> Entry:
    listed = tuple(tool(msgspec.Raw(json.dumps({"inputSchema": {"type": "object"}, **one}).encode())) for one in tools)
    info = msgspec.Raw(json.dumps({"name": server, "version": version}).encode())
    return Entry.make(server, "stdio", Offer(tools=listed, server_info=info, **more), available=available)


FILES = entry(
    "files",
    {"name": "read_file", "description": "Reads a text file from the disk.", "annotations": {"tags": ["Slow"]}},
    {"name": "writeFile", "description": "Puts text into a file.", "annotations": {"idempotentHint": True}},
    {"name": "delete_file", "description": "Deletes a file for ever."},
    token_counts={"read_file": 30, "writeFile": 10, "delete_file": 20},
)
SHOP = entry(
    "shop",
    {"name": "search_orders", "description": "Searches orders of text books.", "annotations": {"openWorldHint": True}},
    {
        "name": "ship",
        "description": "Ships an order to a buyer.",
        "inputSchema": {"properties": {key: {} for key in "abc"}},
    },
    version="2.0.0-beta",
)
GONE = entry("gone", {"name": "list_ghosts", "description": "Lists what is no more."}, available=False, version="dev")
CATALOGUE = Catalogue(entries={"files": FILES, "gone": GONE, "shop": SHOP}, index=Index.empty())
USED: Usage = {
    ("files", "read_file"): ToolTotals(10, 5, 1000.0, 3000.0),
    ("files", "delete_file"): ToolTotals(2, 0, 10.0),
    ("shop", "ship"): ToolTotals(10, 0, 500.0),
    ("shop", "no_longer_there"): ToolTotals(99, 0, 1.0),
}
