"""What a walk over the lists of a server has brought so far, page by page, and the offer that becomes of it."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from actors.catalogue.diff import Compared
from actors.catalogue.lists.marks import MARKS
from actors.catalogue.lists.pages import Known, ListPage, ListRoom
from actors.catalogue.lists.validation import MAX_PROBLEMS
from actors.catalogue.offer import MAX_DESCRIPTION, Declared, EventType, Offer, Prompt, Resource, Skill, Tool, key_of
from actors.protocol.agreement.era import Agreement
from actors.protocol.listing import METHODS, Kind, Listed, ListLimits, capability_names
from actors.protocol.wire import json

E = TypeVar("E", Tool, Resource, Prompt, Skill, EventType)


class _Part:
    """One list so far. `broken` are digests of the entries that were left out."""

    __slots__ = ("broken", "entries", "size")

    def __init__(self) -> None:
        self.entries: dict[str, Declared] = {}
        self.broken: set[int] = set()
        self.size = 0


class Drafted(msgspec.Struct, frozen=True, eq=False):
    """What a walk has brought: the offer, the names of the tools that were read, and how they differ from before."""

    offer: Offer
    read: frozenset[str]
    compared: Compared


class Draft:
    """One walk. Of two entries of one name the first stays, so that a later one cannot shadow it."""

    def __init__(self, limits: ListLimits, known: Offer | None) -> None:
        self.known = Known(known)
        self._before = known
        self._limits = limits
        self._parts: dict[Kind, _Part] = {kind: _Part() for kind in METHODS}
        self._problems: list[str] = []
        self._good_for_s = 0.0

    def count(self, kind: Kind) -> int:
        return len(self._parts[kind].entries)

    def names(self, kind: Kind) -> frozenset[str]:
        """Return what was read of a list, by name or URI, without what was only known before."""
        return frozenset(self._parts[kind].entries)

    def room(self, kind: Kind) -> ListRoom:
        part = self._parts[kind]
        seen = len(part.entries) + len(part.broken)
        return ListRoom(self._limits.max_entries - seen, self._limits.bytes_of(kind) - part.size, seen)

    def add(self, kind: Kind, page: ListPage) -> bool:
        """Take a page; return whether it brought anything new."""
        part = self._parts[kind]
        before = len(part.entries) + len(part.broken)
        for key, entry in page.entries.items():
            first = part.entries.setdefault(key, entry)
            if first is not entry and bytes(first.definition) != bytes(entry.definition):
                self._note(f"{METHODS[kind]}: {key[:80]!r} is there twice; the first one counts")
        for digest, problem in page.broken.items():
            if digest not in part.broken and problem:
                self._note(problem)
        part.broken.update(page.broken)
        part.size += page.size
        if page.good_for_s:  # all lists are read together, so the shortest time counts
            self._good_for_s = min(self._good_for_s or page.good_for_s, page.good_for_s)
        return len(part.entries) + len(part.broken) > before

    def offer(self, agreement: Agreement, listed: Listed) -> Offer:
        """Return what the server offers; what it offered before stays in lists that were not read to their end."""
        tools = self._list("tools", Tool, listed)
        return Offer(
            tools=tools,
            resources=self._list("resources", Resource, listed),
            templates=self._list("templates", Resource, listed),
            prompts=self._list("prompts", Prompt, listed),
            skills=self._list("skills", Skill, listed),
            events=self._list("events", EventType, listed),
            instructions=agreement.instructions[:MAX_DESCRIPTION],
            server_info=agreement.server_info,
            capabilities=_with_tools(agreement.capabilities) if tools else agreement.capabilities,
            answer=agreement.answer,
            era=agreement.era,
            version=agreement.version,
            problems=(*listed.problems, *self._problems)[:MAX_PROBLEMS],
            partial="tools" in listed.missing,
            circular=tuple(sorted(listed.circular)),
            good_for_s=self._good_for_s,
            marked_by=MARKS,
        )

    def _list(self, kind: Kind, of: type[E], listed: Listed) -> tuple[E, ...]:
        part = self._parts[kind]
        entries = [entry for entry in part.entries.values() if isinstance(entry, of)]
        if kind in listed.missing and self._before is not None:
            entries += self._carry_over(kind, of)
        before: tuple[E, ...] = getattr(self._before, kind, ())
        made = tuple(entries)
        return before if made == before else made

    def _carry_over(self, kind: Kind, of: type[E]) -> list[E]:
        """Return what was known of a list that was not read to its end, as far as there is room for it."""
        room, part, kept = self.room(kind), self._parts[kind], []
        size, count = room.size, room.entries
        for entry in getattr(self._before, kind):
            size -= len(bytes(entry.definition))
            if count <= 0 or size < 0:
                break
            if isinstance(entry, of) and key_of(entry) not in part.entries:
                kept.append(entry)
                count -= 1
        return kept

    def _note(self, problem: str) -> None:
        if len(self._problems) < MAX_PROBLEMS:
            self._problems.append(problem)


def _with_tools(capabilities: msgspec.Raw) -> msgspec.Raw:
    """Return the capabilities of a server that has tools; some do not announce them."""
    declared = capability_names(capabilities)
    if "tools" in declared:
        return capabilities
    members = json.members(capabilities) if declared else {}
    return msgspec.Raw(msgspec.json.encode({**members, "tools": {}}))
