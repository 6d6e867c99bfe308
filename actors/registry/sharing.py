"""What launches of one server share in the catalogue: memory grows with what is offered, not with launches. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from actors.catalogue.offer import unchanged
from actors.catalogue.snapshot import Entry
from actors.launch import is_own, server_of
from actors.registry.counting import has_same_tools

MAX_VARIANTS: Final = 16
"""So many different entries of a server are looked at for an equal one."""


def share(launch: str, entry: Entry, entries: Mapping[str, Entry]) -> Entry:
    """Return the entry of a launch, or an equal one that there is already, so that what is made of it is there once.

    What all share is its own.
    """
    if not is_own(launch):
        return entry
    variants = {id(each): each for launch, each in entries.items() if server_of(launch) == entry.server}
    for each in [*variants.values()][-MAX_VARIANTS:]:
        shown_alike = (each.available, each.rules, each.standing) == (entry.available, entry.rules, entry.standing)
        if shown_alike and unchanged(each.own, entry.own):
            return each
    return entry


def with_newest_counts(entry: Entry, newest: Entry | None) -> Entry:
    """Fill in what was counted while an entry was being indexed."""
    if newest is None or newest.offer is entry.offer or not has_same_tools(newest.offer, entry.offer):
        return entry
    return entry.with_counts(newest.offer.token_counts, exact=newest.offer.tokens_exact)
