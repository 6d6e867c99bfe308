"""What the registry knows of its search index: entries in, the next index out. The work runs in worker threads.

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
from actors.catalogue.snapshot import Entry, compared, documents
from actors.kit import is_want
from actors.registry.vectors import Embedded
from actors.search import Index, Segment, analyse

log = logging.getLogger(__name__)

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

UNSEARCHABLE = "it cannot be searched, only called by name: a bug of this daemon, whose log says more"


class Indexed(msgspec.Struct, frozen=True):
    """The index covers these entries now; `removed` are gone from it. `changes`: what differs from those before."""

    index: Index
    entries: dict[str, Entry]
    removed: frozenset[str]
    changes: dict[str, OfferChange] | None = None


class Indexer:
    """Holds the newest index and what it was made of. For one task; `put` may be called by another.

    Vectors come from elsewhere, later: a server is found by its words as soon as it can be.
    """

    def __init__(self) -> None:
        self._index = Index.empty()
        self._embedded: Embedded | None = None
        self._indexed: dict[str, Entry] = {}
        self._broken: frozenset[str] = frozenset()

    def put(self, made: Embedded) -> None:
        """Give vectors, to be part of the index after the next `take`, for the documents that are still there then."""
        self._embedded = made.after(self._embedded)

    async def take(self, entries: Mapping[str, Entry], removed: frozenset[str]) -> Indexed:
        """Replace servers and remove others. Raises only what `is_want` tells, and then nothing has changed."""
        before = self._indexed
        fresh = {name: e for name, e in entries.items() if name not in before or before[name].offer is not e.offer}
        index, broken = self._index, self._broken - fresh.keys() - removed
        if fresh or removed:
            index, left_out = await trio.to_thread.run_sync(_reindex, index, fresh, removed)
            broken |= left_out
        embedded = self._embedded
        if embedded is not None:
            index = await trio.to_thread.run_sync(_with_meanings, index, embedded)
        changes = await trio.to_thread.run_sync(_changes, before, entries)  # with what was published before
        self._embedded = None if self._embedded is embedded else self._embedded
        self._index, self._broken = index, broken
        self._indexed = {name: entry for name, entry in {**before, **entries}.items() if name not in removed}
        shown = {name: e.with_problem(UNSEARCHABLE) if name in broken else e for name, e in entries.items()}
        return Indexed(index, shown, removed, changes)


def _reindex(index: Index, entries: Mapping[str, Entry], removed: frozenset[str]) -> tuple[Index, frozenset[str]]:
    """Return the index with these servers replaced, and those that a bug left out. Runs in a worker thread."""
    for server in sorted(removed):
        index = index.remove(server)
    made = {name: _tried(name, _analysed, entry) for name, entry in entries.items()}
    segments = {name: segment for name, segment in made.items() if segment is not None}
    broken = made.keys() - segments.keys()
    if len(index) == 0:
        built = _tried("all servers at once", _built, segments.values())
        if built is not None:
            return built, frozenset(broken)
    for name in sorted(made):
        following = _tried(name, index.replace, segments[name]) if name in segments else None
        if following is None:
            broken.add(name)
            following = index.remove(name)
        index = following
    return index, frozenset(broken)


def _with_meanings(index: Index, made: Embedded) -> Index:
    """Return the index with the vectors of documents that are still the same. Runs in a worker thread."""
    now = {segment.server: segment.documents for segment in index.segments}
    rows = {name: rows for name, (documents, rows) in made.servers.items() if now.get(name) is documents}
    return index.with_meanings(made.embedder, rows)


def _analysed(entry: Entry) -> Segment:
    return analyse(entry.server, documents(entry.server, entry.offer))


def _built(segments: Collection[Segment]) -> Index:
    index = Index.build(segments)
    index.search("what a first search costs")  # expressions and word lists are made ready here, not on the loop
    return index


def _changes(before: Mapping[str, Entry], entries: Mapping[str, Entry]) -> dict[str, OfferChange]:
    """Return what differs, by server. Runs in a worker thread."""
    by_server = {name: _tried(name, compared, before, {name: entry}) for name, entry in entries.items()}
    return {name: changes[name] for name, changes in by_server.items() if changes is not None}


def _tried(server: str, work: Callable[[Unpack[Ts]], T], *args: *Ts) -> T | None:
    """Return what `work` returns, or None for a bug, which is logged. Raises what `is_want` tells."""
    try:
        return work(*args)
    except Exception as error:
        if is_want(error):
            raise
        log.exception("a bug while indexing %s", server)
        return None
