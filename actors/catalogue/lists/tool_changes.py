"""What plugins of the operator made of the tools that one server lists. Pure.

It is said by the server's own names, and for exactly the offer that was looked at. It comes before the rules of the
configuration, which have the last word, and after the pins: what is approved, or suspicious, is what the server says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from actors.catalogue.lists.findings import quote
from actors.catalogue.offer import Offer, Tool

MAX_PROBLEMS: Final = 20
"""So many rejections of one server are told."""
MAX_NAME_CHARS: Final = 100


class ToolChanges(msgspec.Struct, frozen=True, kw_only=True):
    """Definitions of tools that clients see in the place of the server's, and why they do not see others.

    `failed`: a plugin gave no answer for some, so it is worth asking again.
    """

    tools: Mapping[str, Tool] = {}
    rejected: Mapping[str, str] = {}
    failed: bool = False

    def __bool__(self) -> bool:
        return bool(self.tools or self.rejected)

    def apply(self, offer: Offer) -> Offer:
        """Return what is left to see of an offer, with the rejections as problems; the same object for no changes."""
        if not self:
            return offer
        shown = [tool for tool in offer.tools if tool.name not in self.rejected]
        tools = tuple(replace(self.tools[tool.name], own=tool) if tool.name in self.tools else tool for tool in shown)
        told = [f"tool {quote(name, MAX_NAME_CHARS)} is hidden by {why}" for name, why in self.rejected.items()]
        more = len(told) - MAX_PROBLEMS
        told[MAX_PROBLEMS:] = [f"{more} more tools are hidden by plugins"] if more > 0 else []
        as_they_are = {tool.name for tool in tools if tool.own is None}
        return replace(
            offer,
            tools=tools,
            problems=(*offer.problems, *told),
            token_counts={name: count for name, count in offer.token_counts.items() if name in as_they_are},
        )


NO_CHANGES: Final = ToolChanges()
