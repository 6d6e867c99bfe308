"""What launches of one server share in the catalogue: memory grows with what is offered, not with launches. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from actors.catalogue.offer import Offer, unchanged
from actors.catalogue.snapshot import Entry
from actors.catalogue.tool_rules import ToolChanges
from actors.launch import is_own, server_of
from actors.registry.counting import has_same_tools

MAX_VARIANTS: Final = 16
"""So many different entries of a server are looked at for an equal one."""


class Variants:
    """Finds equal ones among the `entries`, which are by launch, without a look at all of them."""

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self._entries = entries
        self._newest: dict[str, dict[str, None]] = {}
        """By server: launches that had another entry than all before them, the newest last."""

    def find(self, launch: str, own: Offer) -> Entry | None:
        """Return the entry of a launch of the same server that offers the same; None if there is none."""
        return next((each for each in self._of(server_of(launch)) if each.own is own or unchanged(each.own, own)), None)

    def usable(self, launch: str, kind: str, own: Offer, changes: ToolChanges) -> Entry | None:
        """Return such an entry that is available, has this kind of transport, and is changed alike."""
        alike = self.find(launch, own)
        fits = alike is not None and alike.available and (alike.transport, alike.changes) == (kind, changes)
        return alike if fits else None

    def share(self, launch: str, entry: Entry) -> Entry:
        """Return the entry of a launch, or an equal one that there is already, so that what is made of it is there
        once. What all share is its own.
        """
        if not is_own(launch):
            return entry
        for each in self._of(entry.server):
            if shown_by(each) == shown_by(entry) and unchanged(each.own, entry.own):
                return each
        newest = self._newest.setdefault(entry.server, {})
        newest.pop(launch, None)
        newest[launch] = None
        while len(newest) > MAX_VARIANTS:
            del newest[next(iter(newest))]
        return entry

    def forget(self, launch: str) -> None:
        newest = self._newest.get(server_of(launch), {})
        newest.pop(launch, None)
        if not newest:
            self._newest.pop(server_of(launch), None)

    def _of(self, server: str) -> Iterator[Entry]:
        launches = (server, *reversed(self._newest.get(server, {})))
        return (self._entries[launch] for launch in launches if launch in self._entries)


def shown_by(entry: Entry) -> tuple[object, ...]:
    """Return what decides how an offer is seen."""
    return entry.available, entry.rules, entry.standing, entry.changes, entry.described


def with_newest_counts(entry: Entry, newest: Entry | None) -> Entry:
    """Fill in what was counted while an entry was being indexed."""
    if newest is None or newest.offer is entry.offer or not has_same_tools(newest.offer, entry.offer):
        return entry
    return entry.with_counts(newest.offer.token_counts, exact=newest.offer.tokens_exact)
