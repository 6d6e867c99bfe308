"""Catalogues without some of their tools: those above the safety level that clients are shown, and others. Pure.

What an operator takes away or gives back changes the list of a server for its clients as a change of its own would: the
revisions grow. An entry of which nothing changed stays the same object.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import msgspec
from msgspec.structs import replace

from actors.catalogue.metadata import SAFETY, Safety, judge
from actors.catalogue.snapshot import Catalogue, Entry

Highest = Mapping[str, Safety]
"""The highest level that is shown, by server; of others everything is."""
ALL: Safety = SAFETY[-1]


class _Shown(msgspec.Struct, frozen=True):
    of: Entry
    highest: Safety
    entry: Entry


class Exposure:
    """Makes one catalogue after the other, for one thread at a time."""

    def __init__(self) -> None:
        self._shown: dict[str, _Shown] = {}
        self._own: dict[str, _Shown] = {}
        self._changes: Counter[str] = Counter()

    def begin_with(self, catalogue: Catalogue) -> None:
        """So far clients saw all of this."""
        self._shown = {name: _Shown(entry, ALL, entry) for name, entry in catalogue.entries.items()}

    def of(self, catalogue: Catalogue, highest: Highest) -> Catalogue:
        """Return what is shown of a catalogue: itself, if that is all, and always was."""
        self._shown = {name: self._of(entry, highest.get(name, ALL)) for name, entry in catalogue.entries.items()}
        entries = {name: self._with_changes(shown.entry) for name, shown in self._shown.items()}
        catalogue = self._with_own(catalogue, highest)
        if not self._changes and not any(entry.hidden for entry in entries.values()):
            return catalogue
        more = self._changes.total()
        revisions = replace(catalogue.revisions, tools=catalogue.revisions.tools + more)
        return _ready(replace(catalogue, revision=catalogue.revision + more, revisions=revisions, entries=entries))

    def _with_own(self, catalogue: Catalogue, highest: Highest) -> Catalogue:
        """Do the same for launches that not all share; whoever sees one counts its changes by itself."""
        if not catalogue.own:
            return catalogue
        alike: dict[int, _Shown] = {id(shown.of): shown for shown in self._own.values()}
        now: dict[str, _Shown] = {}
        for launch, entry in catalogue.own.items():
            level, shown = highest.get(entry.server, ALL), alike.get(id(entry))
            if shown is None or shown.of is not entry or shown.highest != level:
                hidden = _above(entry, level)
                shown = alike[id(entry)] = _Shown(entry, level, _without(entry, hidden) if hidden else entry)
            now[launch] = shown
        self._own = now
        return replace(catalogue, own={launch: shown.entry for launch, shown in now.items()})

    def _of(self, entry: Entry, highest: Safety) -> _Shown:
        before = self._shown.get(entry.server)
        if before is not None and before.of is entry and before.highest == highest:
            return before
        hidden = _above(entry, highest)
        if before is not None and before.of.offer.tools == entry.offer.tools and before.entry.hidden != hidden:
            self._changes[entry.server] += 1
        return _Shown(entry, highest, _without(entry, hidden) if hidden else entry)

    def _with_changes(self, entry: Entry) -> Entry:
        more = self._changes[entry.server]
        tools = entry.revisions.tools + more
        return replace(entry, revisions=replace(entry.revisions, tools=tools)) if more else entry


def _above(entry: Entry, highest: Safety) -> frozenset[str]:
    following = SAFETY[SAFETY.index(highest) + 1 :]
    if not following:
        return frozenset()
    return frozenset(tool.name for tool in entry.offer.tools if judge(tool).reaches(following[0]))


def _without(entry: Entry, hidden: frozenset[str]) -> Entry:
    left = entry.with_tools(tuple(tool for tool in entry.offer.tools if tool.name not in hidden))
    return replace(left, hidden=hidden, offer=replace(left.offer, barred=entry.offer.barred))


def only(catalogue: Catalogue, wanted: Callable[[str, str], bool]) -> Catalogue:
    """Return a catalogue with those tools only that are wanted; `wanted` is given a server and its own name of one."""
    entries: dict[str, Entry] = {}
    for server, entry in catalogue.entries.items():
        tools = tuple(tool for tool in entry.offer.tools if wanted(server, (tool.own or tool).name))
        entries[server] = entry if len(tools) == len(entry.offer.tools) else entry.with_tools(tools)
    return _ready(replace(catalogue, entries=entries))


def _ready(catalogue: Catalogue) -> Catalogue:
    """Return a catalogue of which it is known what of its index may be found: that takes a while."""
    _ = catalogue.within
    return catalogue
