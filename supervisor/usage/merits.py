"""How tools are placed among others of equal score: by how their calls ended, then by how many there were. Pure.

One looks at one's own calls alone: an order made of everybody's would tell a person what others use, and let one of
them put a tool before all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from actors.catalogue.snapshot import Catalogue
from actors.search.document import Document
from actors.search.page import Prefer
from supervisor.store import ToolUsage

MOST_CALLS: Final = 20
"""More calls count as so many, in proportion: the millionth says no more than the twentieth."""
_STEPS: Final = 10
"""A success rate is told in tenths, as twenty calls do not tell more: their standard error is about a tenth."""
_PLACES: Final = MOST_CALLS + 1


def merit(calls: int, failures: int) -> int:
    """Return how a tool is placed by its calls: the more the better. One that was never called is in the middle."""
    counted = min(calls, MOST_CALLS)
    good = counted * (calls - failures) / calls if calls else 0.0
    rate = (good + 1) / (counted + 2)  # as if it had succeeded once and failed once: one call is not everything
    return round(_STEPS * rate) * _PLACES + counted


def preference(seen: Catalogue, used: Mapping[tuple[str, str], ToolUsage]) -> Prefer | None:
    """Return how one prefers what one sees by what one has used, which is by the servers' own names of tools.

    None if that is nothing.
    """
    if not used:
        return None
    unused = merit(0, 0)

    def prefer(document: Document) -> int:
        tool = seen.entries[document.server].tools.get(document.name) if document.kind == "tool" else None
        row = used.get((document.server, (tool.own or tool).name)) if tool is not None else None
        return unused if row is None else merit(row.calls, row.failures)

    return prefer
