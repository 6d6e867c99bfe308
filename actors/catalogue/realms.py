"""What some people have of the catalogue, as if there were nothing else. Pure.

Rules of this file:
- Nothing in a realm comes from a server that is not in it: its index is joined of the segments of its own servers, as
  ranks, spellings and copies of an index are of all that is in it, and no mask takes that out.
- A realm counts its own revisions by one: a gap would tell of what others see. Each begins elsewhere, as a session may
  come from one into another, whose revisions it must not take for those that it knows.
- A tool that plugins hide from somebody is as if there were none of its name: it is in no index of theirs either.
- An index is joined when it is searched first. Realms are many, and few are searched.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from actors.catalogue.diff import Revisions
from actors.catalogue.offer import LISTS, Offer, Tool
from actors.catalogue.snapshot import KINDS, Catalogue, Entry, compare_entries
from actors.search.index import Index
from actors.search.segment import Segment

Launches = Mapping[str, str]
"""The servers that are started for some people otherwise than for all, each with its launch; empty if it cannot be."""
NO_LAUNCHES: Final[Launches] = {}


_COMMON: Final = ("entries", "index", "indexed", "names")
"""What of a catalogue is not of launches that not all share; another revision is one of another of these."""


class Hidden(msgspec.Struct, frozen=True):
    """Which of the `tools` of a server plugins hide from somebody, by the names that clients see, and `why`.

    `failed`: a plugin gave no answer for some, which are hidden, so it is worth asking again.
    """

    tools: tuple[Tool, ...]
    why: Mapping[str, str]
    failed: bool = False

    def apply(self, entry: Entry) -> Entry:
        """Return an entry without what is hidden; also where nothing is, it shows what plugins were asked about."""
        shown = tuple(tool for tool in entry.offer.tools if tool.name not in self.why)
        return replace(entry.with_tools(shown), concealed=self.why)


class RealmView(msgspec.Struct, frozen=True):
    """What is seen of a catalogue, the `whole`, by those who have these servers. `joined`: it can be searched.

    `hidden` is what they do not see of servers, where plugins were asked.
    """

    servers: frozenset[str]
    whole: Catalogue
    seen: Catalogue
    joined: bool = False
    launches: Launches = {}
    hidden: Mapping[str, Hidden] = {}


def narrow(
    whole: Catalogue,
    servers: frozenset[str],
    before: RealmView | None = None,
    first: int = 0,
    launches: Launches = NO_LAUNCHES,
    hidden: Mapping[str, Hidden] = {},
) -> RealmView:
    """Return what is seen of a catalogue; `before` is what was seen last, maybe of other servers.

    Without one the revisions begin with `first`. An index that was joined is kept up with it, which may take long.
    """
    known = before.seen.entries if before is not None else {}
    entries = entries_of(whole, servers, launches)
    old = entries_of(before.whole, before.servers, before.launches) if before is not None else {}
    hid = before.hidden if before is not None else {}
    fresh = {
        name: hidden[name].apply(entry) if name in hidden else entry
        for name, entry in entries.items()
        if name not in known or old.get(name) is not entry or hid.get(name) is not hidden.get(name)
    }
    seen = replace(
        whole,
        entries={name: fresh.get(name) or known[name] for name in entries},
        own={},
        index=Index.empty(),
        indexed=False,
        names=whole.names.only(servers),
    )
    beginning = Catalogue(revision=first, revisions=Revisions(*(first for _ in KINDS)), index=Index.empty())
    seen = _count(seen, fresh, before.seen if before is not None else beginning)
    view = RealmView(servers, whole, seen, launches=launches, hidden=hidden)
    return join(view, before) if before is not None and before.joined else view


def entries_of(whole: Catalogue, servers: frozenset[str], launches: Launches) -> dict[str, Entry]:
    """Return the entries of these servers, of the launches that are theirs."""
    entries = ((name, entry_of(whole, name, launches)) for name in sorted(servers))
    return {name: entry for name, entry in entries if entry is not None}


def entry_of(whole: Catalogue, server: str, launches: Launches) -> Entry | None:
    launch = launches.get(server)
    return whole.entries.get(server) if launch is None else whole.own.get(launch)


def join(view: RealmView, before: RealmView | None = None) -> RealmView:
    """Return the realm with its index; one that was joined before is only changed where its servers have changed."""
    whole = view.whole
    segments = _segments(whole, view)
    index = before.seen.index if before is not None and before.joined and _comparable(before.whole, whole) else None
    if index is None:
        index = whole.index.rebuild(segments.values())
    else:
        have = {segment.server: segment for segment in index.segments}
        for server in have.keys() - segments.keys():
            index = index.remove(server)
        for server, segment in segments.items():
            if have.get(server) is not segment:
                index = index.replace(segment)
    return replace(view, seen=replace(view.seen, index=index, indexed=whole.indexed), joined=True)


def drop(view: RealmView) -> RealmView:
    """Return the realm without its index, and without what was made for it alone."""
    entries = {name: replace(entry) if entry.concealed else entry for name, entry in view.seen.entries.items()}
    return replace(view, seen=replace(view.seen, entries=entries, index=Index.empty(), indexed=False), joined=False)


def concerns(view: RealmView, now: Catalogue) -> bool:
    """Say whether a catalogue that follows differs in what a realm sees."""
    before, servers, launches = view.whole, view.servers, view.launches
    differs = (entry_of(before, one, launches) is not entry_of(now, one, launches) for one in servers)
    if before.indexed != now.indexed or any(differs):
        return True
    if view.joined and (not _comparable(before, now) or _identities(before, view) != _identities(now, view)):
        return True
    return before.names is not now.names and not view.seen.names.agrees(now.names.only(servers))


def launch_changes(before: Catalogue, now: Catalogue) -> frozenset[str] | None:
    """Return which launches differ that not all share, if nothing else does; None if anything else does."""
    if any(getattr(before, part) is not getattr(now, part) for part in _COMMON):
        return None
    old, new = before.own, now.own
    return frozenset(launch for launch in old.keys() | new.keys() if old.get(launch) is not new.get(launch))


def _comparable(before: Catalogue, now: Catalogue) -> bool:
    """Say whether vectors of the one may stand beside those of the other."""
    old, new = before.index, now.index
    return old.embedder is new.embedder and old.world.lines is new.world.lines


def _segments(whole: Catalogue, view: RealmView) -> dict[str, Segment]:
    """Return what the search knows of the servers of a realm: of an own launch that offers what all see, the same."""
    usual = {segment.server: segment for segment in whole.index.segments if segment.server in view.servers}
    for server, launch in view.launches.items():
        own, shared, segment = whole.own.get(launch), whole.entries.get(server), usual.pop(server, None)
        if own is not None:
            same = segment is not None and shared is not None and _says_the_same(own.offer, shared.offer)
            usual[server] = segment if segment is not None and same else own.segment
    concealing = {name: entry for name, entry in view.seen.entries.items() if entry.concealed}
    return {**usual, **{name: entry.segment for name, entry in concealing.items()}}


def _says_the_same(one: Offer, other: Offer) -> bool:
    """Say whether two offers are made of the same objects, for which it need not be looked into them."""
    kinds = (*LISTS, "instructions")
    return all(getattr(one, kind) is getattr(other, kind) for kind in kinds)


def _identities(catalogue: Catalogue, view: RealmView) -> list[int]:
    return [id(s) for s in catalogue.index.segments if s.server in view.servers and s.server not in view.launches]


def _count(seen: Catalogue, fresh: Mapping[str, Entry], old: Catalogue) -> Catalogue:
    """Return what is seen now with revisions that follow on the old ones."""
    gone = {name: Entry(server=name) for name in old.entries.keys() - seen.entries.keys()}
    changes = compare_entries(old.entries, {**fresh, **gone})
    grown = {kind: any(getattr(change, kind) for change in changes.values()) for kind in KINDS}
    now = Revisions(**{kind: getattr(old.revisions, kind) + grown[kind] for kind in KINDS})
    following = replace(seen, revision=old.revision + any(grown.values()), revisions=now)
    revised = {
        name: entry.with_revisions(old.entries.get(name) or Entry(server=name), changes[name], following)
        for name, entry in fresh.items()
    }
    return replace(following, entries={**seen.entries, **revised})
