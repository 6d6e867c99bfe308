"""Named parts of the catalogue: what a client sees that asks for one. Pure.

Rules of this file:
- A profile is a view. It keeps nobody from anything: who leaves it out, or names another one, sees that.
- What is said in it is said by the names that clients see.
- A view keeps its own revisions, which grow when what it shows changes, and at nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

import msgspec
from msgspec.structs import replace

from actors.catalogue.diff import OfferChange, Revisions
from actors.catalogue.snapshot import KINDS, Catalogue, Entry, compare_entries
from actors.catalogue.tool_rules import Patterns, expression_of, fits


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
