"""Pages of what is known of one server."""

from __future__ import annotations

import msgspec

from actors.catalogue.lists import tool
from actors.catalogue.offer import Offer
from supervisor.service.doors.one_server import MAX_BYTES, PAGE_SIZE, weight


def offering(*sizes: int) -> Offer:
    """Tools whose descriptions have so many characters."""
    definitions = ({"name": f"t{at}", "description": "x" * size, "inputSchema": {}} for at, size in enumerate(sizes))
    return Offer(tools=tuple(tool(msgspec.Raw(msgspec.json.encode(each))) for each in definitions))


def test_a_page_weighs_no_more_than_it_has() -> None:
    large = offering(MAX_BYTES, MAX_BYTES, MAX_BYTES)
    assert MAX_BYTES < weight(large, "tools", 0) < 2 * MAX_BYTES
    assert weight(large, "tools", 2) == weight(large, "tools", 0)
    assert weight(large, "tools", 3) == 0
    small = offering(*[0] * (PAGE_SIZE + 1))
    assert weight(small, "tools", 1) == sum(len(each.definition) for each in small.tools[1:])
