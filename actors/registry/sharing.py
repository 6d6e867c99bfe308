"""What launches of one server share in the catalogue: memory grows with what is offered, not with launches. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from actors.catalogue.offer import unchanged
from actors.catalogue.snapshot import Entry
from actors.launch import server_of

MAX_VARIANTS: Final = 16
"""So many different entries of a server are looked at for an equal one."""


def share(entry: Entry, entries: Mapping[str, Entry]) -> Entry:
    """Return an equal entry that there is already, by launch, so that what is made of it is there once; else itself."""
    variants = {id(each): each for launch, each in entries.items() if server_of(launch) == entry.server}
    for each in [*variants.values()][-MAX_VARIANTS:]:
        shown_alike = (each.available, each.rules, each.standing) == (entry.available, entry.rules, entry.standing)
        if shown_alike and unchanged(each.own, entry.own):
            return each
    return entry
