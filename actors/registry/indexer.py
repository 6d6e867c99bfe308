"""What the registry knows of its search index: entries in, the next index out. The work runs in worker threads.

Much that is new at once, as at the start of the daemon, comes in pieces, so that what is ready is found meanwhile: the
tools of all servers first, then the rest. A piece has as many documents as the index, within `PIECE` and `LARGE_PIECE`:
with pieces of one size the cost of joining each to the index would grow with the square of their number.

Want of resources leaves everything as it was, so that the same step can be taken again. A bug with the texts of one
server leaves that server out of the index, with a problem that an operator can read; its tools can still be called.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar, TypeVarTuple, Unpack

import msgspec
import trio

from actors.catalogue.diff import OfferChange
from actors.catalogue.offer import Offer
from actors.catalogue.snapshot import Entry, compare_entries, segment_of
from actors.kit import is_want
from actors.registry.vectors import Embedded
from actors.search.documents.index import Index
from actors.search.documents.segment import Segment
from actors.search.ranking.search import find

log = logging.getLogger(__name__)

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

PIECE, LARGE_PIECE = 2_000, 50_000
"""Documents that are taken in at once: 0.1 and 3 seconds of work."""
MANY_OTHERS = 200
"""A server with more resources and prompts than that has its tools taken in before them."""
MANY_SERVERS = 8
"""Replacing so many servers one by one costs more than joining all segments anew."""
UNSEARCHABLE = "it cannot be searched, only called by name: a bug of this daemon, whose log says more"


class Indexed(msgspec.Struct, frozen=True):
    """The index covers these entries now; `removed` are gone from it. `changes`: what differs from those before.

    `tools_only`: those of which only the tools are in the index. `versions`: see `Publication`.
    """

    index: Index
    entries: dict[str, Entry]
    removed: frozenset[str]
    changes: dict[str, OfferChange]
    tools_only: frozenset[str] = frozenset()
    versions: dict[str, int] = {}


class Piece(msgspec.Struct, frozen=True):
    """What is taken in next: entries, of some their tools only, and servers that are gone."""

    entries: dict[str, Entry]
    removed: frozenset[str]
    tools_only: frozenset[str]

    @property
    def complete(self) -> frozenset[str]:
        """The servers of which nothing is left to be taken in."""
        return (self.removed | self.entries.keys()) - self.tools_only


class Indexer:
    """Holds the newest index and what it was made of. For one task; `put` may be called by another.

    `published` are the entries that everybody sees already, though nothing of them can be searched.

    Vectors come from elsewhere, later: a server is found by its words as soon as it can be.
    """

    def __init__(self, published: Mapping[str, Entry]) -> None:
        self._index = Index.empty()
        self._embedded: Embedded | None = None
        self._published: dict[str, Entry] = dict(published)
        self._searched: dict[str, Offer] = {}
        self._with_tools: set[str] = set()
        self._broken: frozenset[str] = frozenset()

    def put(self, made: Embedded) -> None:
        """Give vectors, to be part of the index after the next `take`, for the documents that are still there then."""
        self._embedded = made.after(self._embedded)

    def piece(self, waiting: Mapping[str, Entry | None]) -> Piece:
        """Return what is to be taken in next of what waits, the least first; None for a server that is gone."""
        removed = frozenset(name for name, entry in waiting.items() if entry is None)
        costs = {name: self._cost(entry) for name, entry in waiting.items() if entry is not None}
        room = min(max(PIECE, len(self._index)), LARGE_PIECE)
        chosen: list[str] = []
        for name in sorted(costs, key=lambda name: (costs[name], name)):
            room -= costs[name][0]
            if chosen and room < 0:
                break
            chosen.append(name)
        entries = {name: entry for name in sorted(chosen) if (entry := waiting[name]) is not None}
        return Piece(entries, removed, frozenset(name for name in entries if costs[name][1]))

    def _cost(self, entry: Entry) -> tuple[int, bool]:
        """Return how many documents of an entry are taken in next, and whether these are its tools only."""
        offer = entry.offer
        if self._searched.get(entry.server) is offer:
            return 0, False
        others = len(offer.resources) + len(offer.templates) + len(offer.prompts) + len(offer.skills)
        tools_only = others > MANY_OTHERS and entry.server not in self._with_tools
        return len(offer.tools) + (0 if tools_only else others), tools_only

    async def take(self, piece: Piece) -> Indexed:
        """Replace servers and remove others. Raises only what `is_want` tells, and then nothing has changed."""
        entries, removed, tools_only = piece.entries, piece.removed, piece.tools_only
        before = self._published
        fresh = {name: e for name, e in entries.items() if self._searched.get(name) is not e.offer}
        index, broken = self._index, self._broken - fresh.keys() - removed
        if fresh or removed:
            index, left_out = await trio.to_thread.run_sync(_reindex, index, fresh, removed, tools_only)
            broken |= left_out
        embedded = self._embedded
        if embedded is not None:
            index = await trio.to_thread.run_sync(_with_meanings, index, embedded)
        changes = await trio.to_thread.run_sync(_changes, before, entries)  # with what was published before
        self._embedded = None if self._embedded is embedded else self._embedded
        self._index, self._broken = index, broken
        self._published = {name: entry for name, entry in {**before, **entries}.items() if name not in removed}
        self._with_tools = (self._with_tools | entries.keys()) - removed
        for name in entries.keys() | removed:
            self._searched.pop(name, None)
        self._searched.update({name: entry.offer for name, entry in entries.items() if name not in tools_only})
        shown = {name: e.with_problem(UNSEARCHABLE) if name in broken else e for name, e in entries.items()}
        return Indexed(index, shown, removed, changes, tools_only)


def _reindex(
    index: Index, entries: Mapping[str, Entry], removed: frozenset[str], tools_only: frozenset[str]
) -> tuple[Index, frozenset[str]]:
    """Return the index with these servers replaced, and those that a bug left out. Runs in a worker thread."""
    for server in sorted(removed):
        index = index.remove(server)
    made = {name: _try(name, _analyse, entry, name in tools_only) for name, entry in entries.items()}
    segments = {name: segment for name, segment in made.items() if segment is not None}
    broken = made.keys() - segments.keys()
    if len(index) == 0 or len(made) > MANY_SERVERS:
        others = [segment for segment in index.segments if segment.server not in made]
        built = _try("all servers at once", _built, [*others, *segments.values()], index)
        if built is not None:
            return built, frozenset(broken)
    for name in sorted(made):
        following = _try(name, index.replace, segments[name]) if name in segments else None
        if following is None:
            broken.add(name)
            following = index.remove(name)
        index = following
    return index, frozenset(broken)


def _with_meanings(index: Index, made: Embedded) -> Index:
    """Return the index with the vectors of documents that are still the same. Runs in a worker thread."""
    now = {segment.server: segment.documents for segment in index.segments}
    rows = {name: rows for name, (documents, rows) in made.servers.items() if now.get(name) is documents}
    return index.with_meanings(made.embedder, rows, made.world)


def _analyse(entry: Entry, tools_only: bool) -> Segment:
    offer = entry.offer
    offer = Offer(tools=offer.tools, instructions=offer.instructions) if tools_only else offer
    return segment_of(entry.server, offer, entry.described, entry.phrases)


def _built(segments: Collection[Segment], before: Index) -> Index:
    index = before.rebuild(segments)
    find(index, "what a first search costs")  # expressions and word lists are made ready here, not on the loop
    return index


def _changes(before: Mapping[str, Entry], entries: Mapping[str, Entry]) -> dict[str, OfferChange]:
    by_server = {name: _try(name, compare_entries, before, {name: entry}) for name, entry in entries.items()}
    return {name: changes[name] for name, changes in by_server.items() if changes is not None}


def _try(server: str, work: Callable[[Unpack[Ts]], T], *args: *Ts) -> T | None:
    """Return what `work` returns, or None for a bug, which is logged. Raises what `is_want` tells."""
    try:
        return work(*args)
    except Exception as error:
        if is_want(error):
            raise
        log.exception("a bug while indexing %s", server)
        return None
