"""Parts of the catalogue: what clients see by a profile, what some people have at all, and what a safety level leaves.
Pure.

Rules of this file:
- A profile is a view. It keeps nobody from anything: who leaves it out, or names another one, sees that. What is said
  in it is said by the names that clients see.
- A realm is what some people have, as if there were nothing else. Nothing in it comes from a server that is not in it:
  its index is joined of the segments of its own servers, as ranks, spellings and copies of an index are of all that is
  in it, and no mask takes that out.
- A tool that plugins hide from somebody is as if there were none of its name: it is in no index of theirs either.
- An index is joined when it is searched first. Realms are many, and few are searched.
- A view keeps its own revisions, which grow when what it shows changes, and at nothing else: what an operator takes
  away or gives back changes the list of a server for its clients as a change of its own would. An entry of which
  nothing changed stays the same object.
- A realm counts its own revisions by one: a gap would tell of what others see. Each begins elsewhere, as a session may
  come from one into another, whose revisions it must not take for those that it knows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Final

import msgspec
from msgspec.structs import replace

from actors.catalogue.diff import OfferChange, Revisions
from actors.catalogue.metadata import SAFETY, Safety, judge
from actors.catalogue.offer import LISTS, Offer, Tool
from actors.catalogue.snapshot import KINDS, Catalogue, Entry, compare_entries
from actors.catalogue.tool_rules import Patterns, expression_of, fits
from actors.search.index import Index
from actors.search.segment import Segment


class ViewProfile(msgspec.Struct, frozen=True, kw_only=True):
    """Servers, and tools of servers. Without `servers` and `tools` it is everything but what is denied."""

    servers: Patterns | None = None
    """Servers that the profile has with all that is theirs; `*` for any rest."""
    tools: Patterns | None = None
    """Tools that the profile has, by their paths, `server:tool`; `*` for any rest of either half. Resources and prompts
    of their servers are in it, too."""
    deny: Patterns = ()
    """Tools by their paths, or whole servers, that the profile does not have; it wins over the other two."""

    def may_have(self, server: str) -> bool:
        """Say whether a server can be in it, as far as its name tells."""
        if fits(server, tuple(pattern for pattern in self.deny if ":" not in pattern)):
            return False
        return self._has_all_of(server) or bool(_tools_of(server, self.tools or ()))

    def narrow(self, entry: Entry) -> Entry | None:
        """Return what is in it of a server; None for nothing, the entry itself for everything."""
        server = entry.server
        if not self.may_have(server):
            return None
        tools, whole = entry.offer.tools, self._has_all_of(server)
        if not whole:
            allowed = expression_of(_tools_of(server, self.tools or ())).match
            tools = tuple(tool for tool in tools if allowed(tool.name))
        if patterns := _tools_of(server, self.deny):
            denied = expression_of(patterns).match
            tools = tuple(tool for tool in tools if not denied(tool.name))
        if not whole and not tools:
            return None
        return entry if len(tools) == len(entry.offer.tools) else entry.with_tools(tools)

    def _has_all_of(self, server: str) -> bool:
        if self.servers is None:
            return self.tools is None
        return fits(server, self.servers)


NO_PROFILE = ViewProfile(servers=())
"""Nothing is in it."""


def _tools_of(server: str, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return the second halves of the patterns whose first half is that of a server."""
    halves = (path.partition(":") for path in paths)
    return tuple(tool for own, colon, tool in halves if colon and fnmatchcase(server, own))


class ProfileView(msgspec.Struct, frozen=True):
    """What is seen of a catalogue, the `whole`, by a profile."""

    profile: ViewProfile
    whole: Catalogue
    seen: Catalogue


def view(whole: Catalogue, profile: ViewProfile, before: ProfileView | None = None) -> ProfileView:
    """Return what is seen of a catalogue by a profile; `before` is what was seen last, maybe by what it was then.

    Only servers that changed are looked at, where the profile is the same.
    """
    known = before.whole.entries if before is not None and before.profile == profile else {}
    narrowed: dict[str, Entry | None] = {}
    fresh: dict[str, Entry] = {}
    for name, entry in whole.entries.items():
        if before is not None and known.get(name) is entry:
            narrowed[name] = before.seen.entries.get(name)
        elif (shown := profile.narrow(entry)) is not None:
            narrowed[name] = fresh[name] = shown
    entries = {name: entry for name, entry in narrowed.items() if entry is not None}
    unread = {name for name in whole.names.servers - whole.entries.keys() if profile.may_have(name)}
    seen = replace(whole, entries=entries, names=whole.names.only(entries.keys() | unread))
    if before is not None:
        seen = _with_revisions(seen, fresh, before.seen)
    return ProfileView(profile, whole, seen)


def _with_revisions(seen: Catalogue, fresh: Mapping[str, Entry], before: Catalogue) -> Catalogue:
    """Return what is seen now with revisions that follow on those before."""
    gone = {name: Entry(server=name) for name in before.entries.keys() - seen.entries.keys()}
    changes = compare_entries(before.entries, {**fresh, **gone})
    grown = {kind: any(getattr(change, kind) for change in changes.values()) for kind in KINDS}
    now = {
        kind: max(getattr(before.revisions, kind) + 1, getattr(seen.revisions, kind))
        if grown[kind]
        else getattr(before.revisions, kind)
        for kind in KINDS
    }
    revision = max(before.revision + 1, seen.revision) if any(grown.values()) else before.revision
    following = replace(seen, revision=revision, revisions=Revisions(**now))
    revised = {
        name: entry.with_revisions(before.entries.get(name), changes.get(name, OfferChange()), following)
        for name, entry in fresh.items()
    }
    return replace(following, entries={**seen.entries, **revised})


Launches = Mapping[str, str]
"""The servers that are started for some people otherwise than for all, each with its launch; empty if it cannot be."""
_NO_LAUNCHES: Final[Launches] = {}


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
    launches: Launches = _NO_LAUNCHES,
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
    entries = ((name, _entry_of(whole, name, launches)) for name in sorted(servers))
    return {name: entry for name, entry in entries if entry is not None}


def _entry_of(whole: Catalogue, server: str, launches: Launches) -> Entry | None:
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
    differs = (_entry_of(before, one, launches) is not _entry_of(now, one, launches) for one in servers)
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


Highest = Mapping[str, Safety]
"""The highest level that is shown, by server; of others everything is."""
_ALL: Safety = SAFETY[-1]


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
        self._shown = {name: _Shown(entry, _ALL, entry) for name, entry in catalogue.entries.items()}

    def of(self, catalogue: Catalogue, highest: Highest) -> Catalogue:
        """Return what is shown of a catalogue: itself, if that is all, and always was."""
        self._shown = {name: self._of(entry, highest.get(name, _ALL)) for name, entry in catalogue.entries.items()}
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
            level, shown = highest.get(entry.server, _ALL), alike.get(id(entry))
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
