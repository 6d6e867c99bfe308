"""What of the catalogue is not in the index yet, and who waits for it: two tasks of the registry work on that.

Facts of a server come before the ask of whoever ordered something of it, in the same mailbox. So the ask knows which of
them it waits for: all that came until then.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, TypeVarTuple, Unpack

import msgspec
import numpy as np
import trio
from msgspec.structs import replace

from actors.catalogue.diff import OfferChange
from actors.catalogue.offer import Offer
from actors.catalogue.snapshot import Catalogue, Entry, compare_entries, segment_of
from actors.kit import Conditions, Latest, Reply, is_want, persist
from actors.search.document import Document
from actors.search.index import Index
from actors.search.meanings import Embedder, Levels, digest_of, levels, text_of
from actors.search.search import find
from actors.search.segment import Segment
from actors.search.words.tables import WORLD

log = logging.getLogger(__name__)

BATCH = 4
"""So many texts are embedded in one go: a tenth of a second."""
REST = 0.5
"""After each batch nothing is done for this share of the time it took."""
STEP_S = 2.0
"""After this time, what was made is handed over; a server that takes longer is finished first."""
LOOKED_UP = 5000
"""So many documents are looked up at once."""
Documents = tuple[Document, ...]
Text = tuple[bytes, str]
"""A text that is embedded, after its digest."""
T = TypeVar("T")
Ts = TypeVarTuple("Ts")
MANY_OTHERS = 200
"""A server with more resources and prompts than that has its tools taken in before them."""
MANY_SERVERS = 8
"""Replacing so many servers one by one costs more than joining all segments anew."""
UNSEARCHABLE = "it cannot be searched, only called by name: a bug of this daemon, whose log says more"


class Vectors(Protocol):
    """Where vectors are kept. Neither fails: what cannot be read is made again."""

    async def load_vectors(self, digests: Sequence[bytes]) -> Mapping[bytes, bytes]:
        """Return what is kept under these digests."""

    def save_vectors(self, vectors: Mapping[bytes, bytes]) -> None: ...


@dataclass(frozen=True, slots=True, eq=False)
class Embedded:
    """By server the vectors of exactly these documents, a row each; those of `WORLD`, once they are made."""

    embedder: Embedder
    servers: Mapping[str, tuple[Documents, Levels]]
    world: Levels | None = None

    def after(self, older: Embedded | None) -> Embedded:
        """Return these and the older ones; of a server's the newer count."""
        if older is None:
            return self
        world = older.world if self.world is None else self.world
        return Embedded(self.embedder, {**older.servers, **self.servers}, world)


class Embedding:
    """Makes vectors for the documents of an index, in the background: until they are there the search goes by words.

    - What was embedded before, by this daemon or an earlier one, is taken from where it is kept, by its text.
    - The rest is embedded a few texts at a time in one thread, with rests between them, so that queries and servers go
      before. The thread has the priority of the others: one that the system puts off while it holds Python's lock would
      put off the loop, too.
    - A step ends after a moment, so that servers are found by meaning one after the other.

    For one task. `load` blocks and is called once it can be.
    """

    def __init__(self, load: Callable[[], Embedder | None], kept: Vectors) -> None:
        self._load = load
        self._kept = kept
        self._broken: dict[str, Documents] = {}
        self._embedder: Embedder | None = None
        self._world_tried = False

    async def open(self) -> Embedded | None:
        """Load the embedder; return it without any vector, None if there is none. Raises only what `is_want` tells."""
        self._embedder = await trio.to_thread.run_sync(self._load)
        return None if self._embedder is None else Embedded(self._embedder, {})

    async def step(self, index: Index) -> Embedded | None:
        """Return vectors of servers without any in this index; None if all have. Raises only what `is_want` tells."""
        embedder = self._embedder
        if embedder is None:
            return None
        self._broken = {s.server: s.documents for s in index.segments if self._broken.get(s.server) is s.documents}
        waiting = [s for s in index.segments if s.embedder != embedder.name and s.server not in self._broken]
        begun = trio.current_time()
        made: dict[str, tuple[Documents, Levels]] = {}
        for some in _groups(waiting):
            texts = await trio.to_thread.run_sync(_texts, embedder, some)
            known = await self._kept.load_vectors([digest for own in texts for digest, _ in own])
            for segment, own in zip(some, texts, strict=True):
                rows = await self._rows(embedder, f"the tools of {segment.server}", own, known)
                if rows is None:
                    self._broken[segment.server] = segment.documents
                else:
                    made[segment.server] = segment.documents, rows
                if made and trio.current_time() - begun >= STEP_S:
                    return Embedded(embedder, made)
        return Embedded(embedder, made) if made else await self._world(embedder)

    async def _world(self, embedder: Embedder) -> Embedded | None:
        """Return the vectors of `WORLD`, once, when all else is done; None after that, and for a bug."""
        if self._world_tried:
            return None
        lines = [(digest_of(embedder, line), line) for line in WORLD]
        known = await self._kept.load_vectors([digest for digest, _ in lines])
        rows = await self._rows(embedder, "what else is done", lines, known)
        self._world_tried = True
        return None if rows is None else Embedded(embedder, {}, rows)

    async def _rows(
        self, embedder: Embedder, what: str, texts: Sequence[Text], known: Mapping[bytes, bytes]
    ) -> Levels | None:
        """Return the vectors of these texts, a row each; None for a bug, which is logged."""
        size = embedder.dimensions
        vectors = {digest: known[digest] for digest, _ in texts if len(known.get(digest, b"")) == size}
        waiting = list({digest: text for digest, text in texts if digest not in vectors}.items())
        for first in range(0, len(waiting), BATCH):
            batch = waiting[first : first + BATCH]
            begun = trio.current_time()
            try:
                rows = await trio.to_thread.run_sync(_embed, embedder, [text for _, text in batch])
            except Exception as error:
                if is_want(error):
                    raise
                log.exception("a bug while embedding %s", what)
                return None
            new = {digest: row.tobytes() for (digest, _), row in zip(batch, rows, strict=True)}
            self._kept.save_vectors(new)
            vectors |= new
            await trio.sleep(REST * (trio.current_time() - begun))
        joined = b"".join(vectors[digest] for digest, _ in texts)
        return np.frombuffer(joined, np.int8).reshape(len(texts), size) if texts else np.zeros((0, size), np.int8)


def _groups(segments: Sequence[Segment]) -> list[list[Segment]]:
    groups: list[list[Segment]] = [[]]
    size = 0
    for segment in segments:
        if size >= LOOKED_UP:
            groups.append([])
            size = 0
        groups[-1].append(segment)
        size += len(segment)
    return groups


def _texts(embedder: Embedder, segments: Sequence[Segment]) -> list[list[Text]]:
    """Return the texts that stand for the documents of each segment. Runs in a worker thread."""
    texts = [[text_of(document) for document in segment.documents] for segment in segments]
    return [[(digest_of(embedder, text), text) for text in own] for own in texts]


def _embed(embedder: Embedder, texts: Sequence[str]) -> Levels:
    """Return the vectors of some texts. Runs in a worker thread."""
    return levels(embedder.embed(texts))


PIECE, LARGE_PIECE = 2_000, 50_000
"""Documents that are taken in at once: 0.1 and 3 seconds of work."""


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
    """What the registry knows of its search index: entries in, the next index out. The work runs in worker threads.

    Much that is new at once, as at the start of the daemon, comes in pieces, so that what is ready is found meanwhile:
    the tools of all servers first, then the rest. A piece has as many documents as the index, within `PIECE` and
    `LARGE_PIECE`: with pieces of one size the cost of joining each to the index would grow with the square of their
    number.

    Want of resources leaves everything as it was, so that the same step can be taken again. A bug with the texts of one
    server leaves that server out of the index, with a problem that an operator can read; its tools can still be called.

    Holds the newest index and what it was made of. For one task; `put` may be called by another.

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


class Publication:
    """Counts, by server, what was told and what of that is published."""

    def __init__(self, servers: Iterable[str]) -> None:
        self._told = dict.fromkeys(servers, 1)
        self._published: dict[str, int] = {}
        self._waiting: dict[str, list[tuple[int, Reply[None]]]] = {}

    def tell(self, server: str) -> None:
        self._told[server] = self._told.get(server, 0) + 1

    def versions(self, servers: Iterable[str]) -> dict[str, int]:
        """Return what is told of these servers now, for `publish` once it is published."""
        return {server: self._told.get(server, 0) for server in servers}

    def publish(self, told: Mapping[str, int]) -> None:
        """So much is published; answer those who waited for that."""
        for server, count in told.items():
            self._published[server] = count
            for wanted, reply in self._waiting.pop(server, ()):
                if wanted <= count:
                    reply.answer(None)
                elif not reply.settled:
                    self._waiting.setdefault(server, []).append((wanted, reply))

    def forget(self, server: str) -> None:
        """Count no more of a server that is gone, if that is published and nobody waits for it."""
        if self._told.get(server) == self._published.get(server) and server not in self._waiting:
            self._told.pop(server, None)
            self._published.pop(server, None)

    def wait(self, server: str, reply: Reply[None]) -> None:
        """Answer when all that is told of a server so far is published."""
        wanted = self._told.get(server, 0)
        if self._published.get(server, 0) >= wanted:
            reply.answer(None)
        else:
            others = [each for each in self._waiting.get(server, ()) if not each[1].settled]
            self._waiting[server] = [*others, (wanted, reply)]


class Indexing:
    """Of the `entries` of the registry, by server; `index` and `embed` are tasks of it."""

    def __init__(self, entries: Mapping[str, Entry], catalogue: Latest[Catalogue], conditions: Conditions) -> None:
        self._entries = entries
        self._catalogue = catalogue
        self._conditions = conditions
        self._indexer = Indexer(catalogue.value.entries)
        self._publication = Publication(entries)
        self._dirty: set[str] = set(entries)
        self._work = trio.Event()
        self._work.set()
        self._unembedded = trio.Event()

    def mark(self, server: str) -> None:
        """Have what is new of a server indexed, and published with that."""
        self._dirty.add(server)
        self._publication.tell(server)
        self._work.set()

    def wait(self, server: str, reply: Reply[None]) -> None:
        """Answer when all that was marked of a server until now is published."""
        self._publication.wait(server, reply)

    def on_published(self, message: Indexed) -> None:
        self._publication.publish(message.versions)
        for server in message.removed - self._entries.keys():
            self._publication.forget(server)
        self._unembedded.set()

    async def index(self, tell: Callable[[Indexed], Awaitable[None]]) -> None:
        while True:
            await self._work.wait()
            self._work = trio.Event()
            piece = self._indexer.piece({name: self._entries.get(name) for name in self._dirty})
            self._dirty -= piece.complete
            versions = self._publication.versions(piece.complete)
            indexed = await persist(self._conditions, "search index", self._indexer.take, piece)
            await tell(replace(indexed, versions=versions))
            if self._dirty:
                self._work.set()

    async def embed(self, embedding: Embedding) -> None:
        made = await persist(self._conditions, "sentence model", embedding.open)
        if made is None:
            return
        while True:
            if made is not None:
                self._indexer.put(made)
                self._work.set()  # what it publishes leads back here, until there is nothing left to do
            await self._unembedded.wait()
            self._unembedded = trio.Event()
            made = await persist(self._conditions, "vectors", embedding.step, self._catalogue.value.index)
