"""The index: all servers' segments joined, what a query is matched against. Immutable, searched without locks.

Whoever changes it makes a new value and publishes it; a search runs on the value it got. Building and replacing never
touch an older value, so they may run in a worker thread.

Documents are numbered by server and path, so that ties fall in path order and an index that was changed step by step
is the same, to the last bit of every score, as one built at once. Numbers of terms are the only thing that depends on
history, and nothing is ever ordered by them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from actors.search import tuning
from actors.search.document import KINDS, Document
from actors.search.meanings import Embedder, Levels, Meanings, World
from actors.search.postings import Bools, Floats, Ints, Postings, Triples
from actors.search.segment import Prints, Segment, copied_shares, prints_of
from actors.search.vocabulary import Vocabulary

_SPARE_TERMS = 4096

Floats64 = npt.NDArray[np.float64]


def _no_ints() -> Ints:
    return np.zeros(0, np.int32)


def _no_floats() -> Floats:
    return np.zeros(0, np.float32)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Index:
    """Segments sorted by server, and what follows from all of them together. Arrays are per document or per term."""

    embedder: Embedder | None
    meanings: Meanings
    world: World
    segments: tuple[Segment, ...] = ()
    firsts: tuple[int, ...] = ()  # per segment: the number of its first document
    documents: tuple[Document, ...] = ()
    term_of: dict[str, int] = field(default_factory=dict)
    counts: Ints = field(default_factory=_no_ints)  # per term: documents that hold it, but for a server's instructions
    holders: Ints = field(default_factory=_no_ints)  # per term: segments that hold it
    said: Ints = field(default_factory=_no_ints)  # per term: those of `counts` that hold it in sentences alone
    idf: Floats = field(default_factory=_no_floats)  # per term, as if sentences were known of every document
    gain: Floats = field(default_factory=_no_floats)  # per term: so many times as much it says of one without sentences
    has_said: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))  # per document: it has sentences
    postings: Postings = field(default_factory=Postings.empty)
    names: Postings = field(default_factory=Postings.empty)
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    named: dict[str, tuple[str, ...]] = field(default_factory=dict)  # squashed name or path -> its servers, sorted
    segment_of: Ints = field(default_factory=_no_ints)
    sizes: Ints = field(default_factory=_no_ints)  # per segment: its documents
    kinds: Ints = field(default_factory=_no_ints)
    all_kinds: frozenset[str] = frozenset()
    servers: frozenset[str] = frozenset()
    server_words: frozenset[str] = frozenset()  # stems of all servers' names
    verbs: Ints = field(default_factory=_no_ints)
    name_mass: Floats = field(default_factory=_no_floats)  # per document: the idf of all words of its name
    prints: Prints = field(default_factory=lambda: prints_of(()))
    copied: Floats = field(default_factory=_no_floats)  # per segment: the share of its documents that others have, too

    @staticmethod
    def empty(embedder: Embedder | None = None) -> Index:
        dimensions = embedder.dimensions if embedder is not None else 0
        meanings, world = Meanings.empty(dimensions), World.empty(dimensions)
        return Index(embedder=embedder, meanings=meanings, world=world)

    def __len__(self) -> int:
        return len(self.documents)

    def rebuild(self, segments: Iterable[Segment]) -> Index:
        """Return an index of these segments that compares what this one compares; the last of a server counts."""
        latest = {segment.server: segment for segment in segments}
        ordered = tuple(latest[server] for server in sorted(latest))
        nothing = replace(Index.empty(self.embedder), world=self.world.replace(self.servers, {}))
        return _replace_segments(nothing, ordered, (), ordered, 0)

    def replace(self, segment: Segment) -> Index:
        return self._with_segment(segment.server, (segment,))

    def remove(self, server: str) -> Index:
        """Return the index without this server; the same index if it has none of that name."""
        return self._with_segment(server, ())

    def _with_segment(self, server: str, new: tuple[Segment, ...]) -> Index:
        place = self.place(server)
        present = place < len(self.segments) and self.segments[place].server == server
        old = self.segments[place : place + 1] if present else ()
        if not old and not new:
            return self
        segments = self.segments[:place] + new + self.segments[place + len(old) :]
        if len(self.counts) > 2 * len(self.term_of) + _SPARE_TERMS:  # numbers of forgotten terms are never re-used
            return self.rebuild(segments)
        low = self.firsts[place] if place < len(self.firsts) else len(self.documents)
        return _replace_segments(self, segments, old, new, low)

    def with_meanings(self, embedder: Embedder, made: Mapping[str, Levels], world: Levels | None = None) -> Index:
        """Return an index that compares meanings, with these vectors: for each server a row for each document of its
        segment, and for `WORLD` a row each. Older vectors of the same embedder are kept, servers that are not there do
        not count. As long as the vectors of the world are not there, words alone say how sure a hit is.
        """
        segments = tuple(
            replace(segment, meanings=made[segment.server], embedder=embedder.name)
            if segment.server in made and len(made[segment.server]) == len(segment)
            else segment
            for segment in self.segments
        )
        rows = {segment.server: _comparable(segment, embedder) for segment in segments}
        meanings = Meanings.empty(embedder.dimensions).splice(0, 0, list(rows.values()))
        if world is not None:
            following = World.of(world).replace((), rows)
        elif self.embedder is not None and self.embedder.name == embedder.name:
            following = self.world.replace((), {server: rows[server] for server in made.keys() & rows.keys()})
        else:
            following = World.empty(embedder.dimensions)
        return replace(self, segments=segments, embedder=embedder, meanings=meanings, world=following)

    def place(self, server: str) -> int:
        """Return the number of a server's segment, or the one it would get."""
        return bisect_left(self.segments, server, key=lambda held: held.server)

    def with_tools(self, tools: Mapping[str, Collection[str]]) -> Bools:
        """Return which documents are left where of these servers only these tools are."""
        left = np.ones(len(self.documents), np.bool_)
        for server, names in tools.items():
            for number in self.numbers(server):
                document = self.documents[number]
                left[number] = document.kind != "tool" or document.name in names
        return left

    def numbers(self, server: str) -> range:
        """Return the numbers of a server's documents."""
        place = self.place(server)
        if place == len(self.segments) or self.segments[place].server != server:
            return range(0)
        return range(self.firsts[place], self.firsts[place] + len(self.segments[place]))

    def embedded(self, kinds: frozenset[str], servers: frozenset[str], within: Bools | None) -> tuple[int, int]:
        """Return how many of the documents that `mask` lets through have a vector, and how many these are."""
        mask, have = self.mask(kinds, servers, within), self.meanings.present
        if mask is None:
            return int(have.sum()), len(self)
        return int((mask & have).sum()), int(mask.sum())

    def mask(self, kinds: frozenset[str], servers: frozenset[str] | None, within: Bools | None = None) -> Bools | None:
        """Return which documents are of these kinds and servers (None: every server), and true `within`; None if that
        is all of them.
        """
        mask: Bools | None = None
        if not self.all_kinds <= kinds:
            mask = np.array([kind in kinds for kind in KINDS], np.bool_)[self.kinds]
        if servers is not None and not self.servers <= servers:
            visible = np.array([segment.server in servers for segment in self.segments], np.bool_)[self.segment_of]
            mask = visible if mask is None else mask & visible
        if within is not None:
            mask = within if mask is None else mask & within
        return mask


def _replace_segments(
    base: Index, segments: tuple[Segment, ...], old: tuple[Segment, ...], new: tuple[Segment, ...], low: int
) -> Index:
    """Return `base` with the documents of `old`, numbered from `low` on, replaced by those of `new`."""
    high = low + sum(map(len, old))
    term_of, counts, said, holders, numbers = _terms(base, old, new)
    sizes = [len(segment) for segment in segments]
    firsts = tuple(np.cumsum([0, *sizes])[:-1].tolist())
    placed = np.cumsum([low, *map(len, new)])[:-1].tolist()
    grown_by = sum(map(len, new)) - (high - low)

    def splice(postings: Postings, parts: list[Triples]) -> Postings:
        moved = [part.move(named, first) for part, named, first in zip(parts, numbers, placed, strict=True)]
        return postings.splice(low, high, Triples.join(moved), grown_by, len(counts))

    names = splice(base.names, [segment.names for segment in new])
    total = sum(sizes)
    segment_of = np.repeat(np.arange(len(segments), dtype=np.int32), sizes)
    prints = np.concatenate([base.prints[:low], *[s.prints for s in new], base.prints[high:]])
    kinds = np.concatenate([base.kinds[:low], *[s.kinds for s in new], base.kinds[high:]])
    has_said = np.concatenate([base.has_said[:low], *(segment.has_said for segment in new), base.has_said[high:]])
    idf = _rarity(_expected_counts(counts, said, int(has_said.sum()), total), total)
    vectors = {segment.server: _comparable(segment, base.embedder) for segment in new}
    return Index(
        segments=segments,
        firsts=firsts,
        documents=base.documents[:low] + tuple(d for s in new for d in s.documents) + base.documents[high:],
        term_of=term_of,
        counts=counts,
        holders=holders,
        said=said,
        idf=idf,
        gain=(_rarity(counts - said, total) / idf).astype(np.float32),
        has_said=has_said,
        postings=splice(base.postings, [segment.postings for segment in new]),
        names=names,
        vocabulary=base.vocabulary.replace([s.known for s in old], [s.known for s in new]),
        named=_servers_by_name(base.named, old, new),
        segment_of=segment_of,
        sizes=np.array(sizes, np.int32),
        kinds=kinds,
        all_kinds=frozenset(KINDS[code] for code in np.flatnonzero(np.bincount(kinds)).tolist()),
        servers=frozenset(segment.server for segment in segments),
        server_words=frozenset().union(*(segment.server_words for segment in segments)),
        verbs=np.concatenate([base.verbs[:low], *[s.verbs for s in new], base.verbs[high:]]),
        name_mass=_name_mass(names, idf, total),
        prints=prints,
        copied=copied_shares(prints, segment_of, np.array(sizes, np.int32)),
        embedder=base.embedder,
        meanings=base.meanings.splice(low, high, list(vectors.values())),
        world=base.world.replace([segment.server for segment in old], vectors),
    )


def _comparable(segment: Segment, embedder: Embedder | None) -> Levels:
    """Return a segment's vectors, or vectors without columns if they are not of this embedder."""
    made_here = embedder is not None and segment.embedder == embedder.name
    return segment.meanings if made_here else segment.meanings[:, :0]


def _terms(
    base: Index, old: Sequence[Segment], new: Sequence[Segment]
) -> tuple[dict[str, int], Ints, Ints, Ints, list[Ints]]:
    """Return the terms afterwards, their counts, those in sentences alone, their holders, and the number of each new
    segment's terms.
    """
    term_of = dict(base.term_of)
    next_term = len(base.counts)
    numbers: list[Ints] = []
    for segment in new:
        own: list[int] = []
        for stem in segment.stems:
            term = term_of.get(stem)
            if term is None:
                term = term_of[stem] = next_term
                next_term += 1
            own.append(term)
        numbers.append(np.array(own, np.int32))
    counts, said, holders = (np.zeros(next_term, np.int32) for _ in range(3))
    before = len(base.counts)
    counts[:before], said[:before], holders[:before] = base.counts, base.said, base.holders
    for segment, named in zip(new, numbers, strict=True):
        counts[named] += segment.counts
        said[named] += segment.said
        holders[named] += 1
    for segment in old:
        named = np.array([base.term_of[stem] for stem in segment.stems], np.int32)
        counts[named] -= segment.counts
        said[named] -= segment.said
        holders[named] -= 1
        for stem, term in zip(segment.stems, named.tolist(), strict=True):
            if not holders[term]:
                del term_of[stem]
    return term_of, counts, said, holders, numbers


def _servers_by_name(
    named: dict[str, tuple[str, ...]], old: Sequence[Segment], new: Sequence[Segment]
) -> dict[str, tuple[str, ...]]:
    out = dict(named)
    for segment in old:
        for text in segment.by_name.keys() | segment.by_path.keys():
            left = tuple(server for server in out[text] if server != segment.server)
            if left:
                out[text] = left
            else:
                del out[text]
    for segment in new:
        for text in segment.by_name.keys() | segment.by_path.keys():
            out[text] = tuple(sorted((*out.get(text, ()), segment.server)))
    return out


def _expected_counts(counts: Ints, said: Ints, having: int, total: int) -> Floats64:
    """Return how many documents would hold each term if sentences were known of all, as of `having` of them.

    Of more words more match by chance. A word that stands in sentences alone is as common as the documents that have
    some let expect; so it says less there than where a definition has it, of which all are known.
    """
    expected = counts + said * max(0.0, total / (having + tuning.SENTENCES_PRIOR) - 1)
    return np.minimum(expected, total)


def _rarity(held: Floats64 | Ints, total: int) -> Floats:
    """Return the inverse document frequency of each term, BM25's."""
    idf: Floats = np.maximum(tuning.IDF_FLOOR, np.log1p((total - held + 0.5) / (held + 0.5))).astype(np.float32)
    return idf


def _name_mass(names: Postings, idf: Floats, total: int) -> Floats:
    """Return per document the summed idf of its name's words, 1 where there is none; in path order, so reproducible."""
    mass = np.bincount(names.documents, weights=idf[names.terms()] * names.weights, minlength=total)
    out: Floats = np.where(mass > 0, mass, 1.0).astype(np.float32)
    return out
