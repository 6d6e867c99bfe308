"""The catalogue: one immutable value with everything that can be found and called, and the index that belongs to it.

Readers hold a snapshot for as long as they work on one request; the registry publishes the next one beside it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cached_property, partial

import msgspec
from msgspec.structs import force_setattr, replace

from actors.catalogue.diff import OfferChange, Revisions, compare, find_renames, merge_renames
from actors.catalogue.documents import Phrases, documents, no_phrases
from actors.catalogue.lists import root_of
from actors.catalogue.names import (
    MOST_NEAREST,
    Resolution,
    Resolved,
    ServerNames,
    Spellings,
    namespaced_name,
    nearest,
    resolve,
    tool_path,
)
from actors.catalogue.offer import EventType, Offer, Skill, Tool
from actors.catalogue.tool_rules import NO_CHANGES, NO_RULES, ToolChanges, ToolRules
from actors.catalogue.trust import TRUSTED, Reason, Standing
from actors.kit.decoding import free_in_turns
from actors.launch import is_own
from actors.search.document import TOOLS
from actors.search.index import Index
from actors.search.postings import Bools
from actors.search.segment import Segment, analyse


class Entry(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One server in the catalogue. Not `available`: it failed; its tools are kept but hidden from search.

    `offer` is what clients see of its `own` by `changes` (of plugins) and `rules`. `renamed`: names that tools had
    before, or have at the server itself, and those of now. `revisions` are those of the catalogue at which each list of
    this server changed last. `narrowed`: it has some of its tools only, see `with_tools`; `hidden` are those of the
    others that are above the safety level that clients are shown, `concealed` those that plugins hide from whoever sees
    this, with the reason. `standing` says which tools wait for approval, by the
    server's own names; those that are `held` are not in `offer`, and here by the names that clients would see.
    `described`: what its operator says that it is for. `phrases` knows by which sentences people ask for its tools.
    """

    server: str
    transport: str = "stdio"
    offer: Offer = Offer()
    own: Offer = Offer()
    rules: ToolRules = NO_RULES
    changes: ToolChanges = NO_CHANGES
    available: bool = True
    tools: Mapping[str, Tool] = {}
    tool_names: Spellings = Spellings(())
    prompt_names: Spellings = Spellings(())
    renamed: Mapping[str, str] = {}
    revisions: Revisions = Revisions()
    narrowed: bool = False
    hidden: frozenset[str] = frozenset()
    concealed: Mapping[str, str] = {}
    standing: Standing = TRUSTED
    held: Mapping[str, Reason] = {}
    described: str = ""
    phrases: Phrases = no_phrases

    @classmethod
    def make(
        cls,
        server: str,
        transport: str,
        own: Offer,
        *,
        available: bool = True,
        rules: ToolRules = NO_RULES,
        standing: Standing = TRUSTED,
        changes: ToolChanges = NO_CHANGES,
        described: str = "",
        phrases: Phrases = no_phrases,
    ) -> Entry:
        offer, held = standing.apply(rules.apply(changes.apply(own)))
        tools = {tool.name: tool for tool in offer.tools}
        return cls(
            server=server,
            transport=transport,
            offer=offer,
            own=own,
            rules=rules,
            changes=changes,
            standing=standing,
            held=held,
            available=available,
            described=described,
            phrases=phrases,
            renamed={tool.own.name: name for name, tool in tools.items() if tool.own and tool.own.name != name},
            tools=tools,
            tool_names=Spellings(tools),
            prompt_names=Spellings(frozenset(prompt.name for prompt in offer.prompts)),
        )

    def with_rules(self, rules: ToolRules, standing: Standing | None = None, described: str | None = None) -> Entry:
        make = partial(
            Entry.make, self.server, self.transport, self.own, available=self.available, phrases=self.phrases
        )
        described = self.described if described is None else described
        return make(rules=rules, standing=standing or self.standing, changes=self.changes, described=described)

    def after(self, before: Entry | None) -> Entry:
        """Return the entry with what was known before of names that changed."""
        if before is None or (before.offer.tools == self.offer.tools and not before.renamed):
            return self
        fresh = {**find_renames(before.offer.tools, self.offer.tools), **self.renamed}
        return replace(self, renamed=merge_renames(before.renamed, fresh, self.tools))

    def with_tools(self, tools: tuple[Tool, ...]) -> Entry:
        """Return the entry with these of its tools alone, for whom there are no others."""
        named = {tool.name: tool for tool in tools}
        counts = {name: count for name, count in self.offer.token_counts.items() if name in named}
        return replace(
            self,
            offer=replace(self.offer, tools=tools, token_counts=counts, barred=()),
            tools=named,
            tool_names=Spellings(named),
            renamed={old: new for old, new in self.renamed.items() if new in named},
            narrowed=True,
        )

    @cached_property
    def segment(self) -> Segment:
        """What a search is to know of it; a while for many tools, and kept as long as the entry."""
        return segment_of(self.server, self.offer, self.described, self.phrases)

    @cached_property
    def by_own_name(self) -> Mapping[str, Tool]:
        """The tools that are seen, by the server's own names for them."""
        return {(tool.own or tool).name: tool for tool in self.tools.values()}

    @cached_property
    def event_types(self) -> Mapping[str, EventType]:
        """The event types that can be followed, by name: a server that only sends to addresses has none for us."""
        return {each.name: each for each in self.offer.events if {"poll", "push"}.intersection(each.delivery)}

    @cached_property
    def skills(self) -> Mapping[str, Skill]:
        """Its skills by their directories."""
        return {root_of(skill.uri) or skill.uri: skill for skill in self.offer.skills}

    def skills_with(self, uri: str) -> list[Skill]:
        """Return the skills in whose directories a URI is, from the outermost on: one may be inside another."""
        ends = (match.start() for match in _SLASH.finditer(uri)) if self.offer.skills else ()
        return [self.skills[root] for end in ends if (root := uri[:end]) in self.skills]

    @property
    def is_altered(self) -> bool:
        """Whether its tools are seen as the server itself would not list them."""
        return self.narrowed or bool(self.rules) or bool(self.changes) or self.standing.holds

    def has(self, tools: Collection[str]) -> bool:
        """Say whether the server has all these tools, by its own names, shown or not."""
        return not tools or {tool.name for tool in self.own.tools}.issuperset(tools)

    @property
    def hidden_tools(self) -> Mapping[str, str]:
        """The tools that the server has and nobody sees, by the server's own names, and those that whoever sees this
        does not, by the names that others see; each with the reason.
        """
        if not self.rules and not self.changes:
            return self.concealed
        seen = self.by_own_name.keys() | self.standing.hold.keys()
        unseen = (tool.name for tool in self.own.tools if tool.name not in seen)
        return {**dict.fromkeys(unseen, "hidden from clients"), **self.concealed}

    def with_counts(self, counts: dict[str, int], *, exact: bool) -> Entry:
        """Return the entry with its token counts; those of tools that are shown as they are hold for the server's."""
        own = {tool.name: counts[tool.name] for tool in self.offer.tools if tool.own is None and tool.name in counts}
        return replace(
            self,
            offer=replace(self.offer, token_counts=counts, tokens_exact=exact),
            own=replace(self.own, token_counts=own, tokens_exact=exact),
        )

    def with_problem(self, problem: str) -> Entry:
        return replace(self, offer=replace(self.offer, problems=(*self.offer.problems, problem)))

    def with_revisions(self, before: Entry | None, change: OfferChange, following: Catalogue) -> Entry:
        """Return the entry with its revisions: those of the catalogue that follows, or of the entry before."""
        newest = {
            kind: getattr((following if getattr(change, kind) else before or self).revisions, kind) for kind in KINDS
        }
        return replace(self, revisions=Revisions(**newest))


_SLASH = re.compile("/")
_MAX_RESOLVED = 1024
"""So many paths are remembered, and the tools that they mean."""
KINDS = ("tools", "resources", "prompts")


def segment_of(server: str, offer: Offer, described: str, phrases: Phrases) -> Segment:
    """Return what a search is to know of what a server offers; see `documents`. A while for many tools."""
    made = documents(server, offer, described, phrases)
    segment = analyse(server, made)
    free_in_turns(made)  # the texts of all parameters
    return segment


class Catalogue(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Everything there is, by server name in sorted order.

    `revision` grows with each change a client can see, `revisions` with those of one list. `indexed`: the index
    covers all entries (false only from the start on until what is known of earlier runs is in it). `names` are those of
    all configured servers, also of those that have no entry: they were never discovered, or cannot be started. `own`
    are the entries of launches that not all share, by launch, with the name of their server: nobody sees them but whom
    they are started for, and the index knows nothing of them.
    """

    revision: int = 0
    revisions: Revisions = Revisions()
    entries: Mapping[str, Entry] = {}
    index: Index
    indexed: bool = False
    names: ServerNames = ServerNames({})
    own: Mapping[str, Entry] = {}

    def __post_init__(self) -> None:
        """Whatever has an entry can be called by its name."""
        if any(server not in self.names for server in self.entries):
            force_setattr(self, "names", self.names.with_servers(self.entries))

    def of_launch(self, launch: str) -> Entry | None:
        """Return the entry of a launch, whether all share it or not."""
        return self.own.get(launch) if is_own(launch) else self.entries.get(launch)

    def searchable(self, kinds: frozenset[str]) -> bool:
        """Say whether all of these kinds can be searched: tools come into the index before what else servers have."""
        return self.indexed or (kinds <= TOOLS and self.entries.keys() <= self.index.servers)

    @cached_property
    def within(self) -> Bools | None:
        """Which documents of the index may be found, of those of its servers; None for all of them."""
        tools = {name: entry.tools.keys() for name, entry in self.entries.items() if entry.narrowed}
        return self.index.with_tools(tools) if tools else None

    @cached_property
    def visible(self) -> frozenset[str]:
        """The servers whose tools search may return."""
        return frozenset(name for name, entry in self.entries.items() if entry.available)

    @cached_property
    def tokens(self) -> int:
        """What all tools would cost a model, as far as they are counted."""
        return sum(sum(entry.offer.token_counts.values()) for entry in self.entries.values())

    def tool(self, path: str, *, server: str = "") -> Resolution:
        """Return which tool a path means; `server` is what a client wrote beside it."""
        if server:
            return resolve(path, self.names, self._tool_names, server=server)
        known = self._resolutions
        if path in known:
            return known[path]
        resolution = resolve(path, self.names, self._tool_names)
        if isinstance(resolution, Resolved) and len(known) < _MAX_RESOLVED:
            known[path] = resolution
        return resolution

    @cached_property
    def _resolutions(self) -> dict[str, Resolved]:
        """What paths were found to mean: clients call the same tools again and again, and a catalogue never changes."""
        return {}

    def prompt(self, path: str) -> Resolution:
        return resolve(path, self.names, self._prompt_names)

    def _tool_names(self, server: str) -> Spellings | None:
        entry = self.entries.get(server)
        return entry.tool_names if entry is not None else None

    def _prompt_names(self, server: str) -> Spellings | None:
        entry = self.entries.get(server)
        return entry.prompt_names if entry is not None else None

    def prompt_name(self, server: str, prompt: str) -> str:
        """Return the name a prompt is listed under: `server-prompt`, or its path where that could mean another."""
        name = namespaced_name(server, prompt)
        return name if self.prompt(name) == Resolved(server, prompt) else tool_path(server, prompt)

    def nearest(self, path: str, limit: int = MOST_NEAREST, *, server: str | None = None) -> list[str]:
        """Return the visible tool paths that may be meant, best first. `server`: of that one, which `path` names."""
        servers = sorted(self.visible if server is None else self.visible & {server})
        tools = [(name, tool) for name in servers for tool in self.entries[name].tools]
        return nearest(path, tools, limit, named=server is not None)

    def with_entries(
        self, changed: Mapping[str, Entry], index: Index, changes: Mapping[str, OfferChange]
    ) -> tuple[Catalogue, dict[str, OfferChange]]:
        """Return the next catalogue and what changed in it, by server; `changes` are those of `compare_entries`."""
        following = self._next(changes.values(), index)
        revised = {
            name: entry.after(self.entries.get(name)).with_revisions(
                self.entries.get(name), changes.get(name, OfferChange()), following
            )
            for name, entry in changed.items()
        }
        entries = dict(sorted({**self.entries, **revised}.items()))
        return replace(following, entries=entries), {name: c for name, c in changes.items() if c}

    def without(self, server: str, index: Index) -> tuple[Catalogue, OfferChange]:
        entries = {name: entry for name, entry in self.entries.items() if name != server}
        change = _change(self.entries.get(server), Entry(server=server))
        return replace(self._next([change], index), entries=entries, names=self.names.without(server)), change

    def with_own(self, changed: Mapping[str, Entry | None]) -> Catalogue:
        """Return the catalogue with the entries of launches that not all share; None for one that is no more."""
        own = {**self.own, **changed}
        return replace(self, own={launch: entry for launch, entry in own.items() if entry is not None})

    def with_counts(self, server: str, counts: dict[str, int], *, exact: bool) -> Catalogue:
        """Return the catalogue with the token counts of one server filled in; no revision changes."""
        return replace(self, entries={**self.entries, server: self.entries[server].with_counts(counts, exact=exact)})

    def with_problem(self, server: str, problem: str) -> Catalogue:
        entry = self.entries.get(server)
        if entry is None or problem in entry.offer.problems:
            return self
        return replace(self, entries={**self.entries, server: entry.with_problem(problem)})

    def _next(self, changes: Collection[OfferChange], index: Index) -> Catalogue:
        grown = {kind: any(getattr(change, kind) for change in changes) for kind in KINDS}
        revisions = Revisions(**{kind: getattr(self.revisions, kind) + grown[kind] for kind in KINDS})
        return replace(self, revision=self.revision + any(grown.values()), revisions=revisions, index=index)


def compare_entries(before: Mapping[str, Entry], after: Mapping[str, Entry]) -> dict[str, OfferChange]:
    """Return for each server of `after` what a client sees changed; milliseconds for a thousand tools."""
    return {name: _change(before.get(name), entry) for name, entry in after.items()}


def _change(before: Entry | None, after: Entry) -> OfferChange:
    """Compare what a client can see of a server: a server that is not available shows nothing."""
    old = before.offer if before is not None and before.available else Offer()
    return compare(old, after.offer if after.available else Offer())
