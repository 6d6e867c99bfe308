"""The index: immutable, replaced server by server, searched without locks.

Whoever changes it makes a new value and publishes it; a search runs on the value it got. Building and replacing never
touch an older value, so they may run in a worker thread. The same documents give the same answers whatever the order
in which their servers came.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from actors.search import tuning
from actors.search.document import NOTHING, TOOLS, Found, Hit
from actors.search.documents.corpus import Corpus
from actors.search.documents.embedding import Embedder, Levels
from actors.search.documents.postings import Bools
from actors.search.documents.segment import Segment
from actors.search.language.spans import without_escapes
from actors.search.language.text import clean
from actors.search.ranking.fusion import fuse
from actors.search.ranking.page import exact_matches, page
from actors.search.ranking.rank import score

EVERYTHING = "*"
"""The query that lists all documents in path order."""

_CLEANED_CHARS = 200  # at a time, as the compatibility form of a text can be eighteen times as long


class Index:
    """Documents of any number of servers, ready to be searched. Immutable; `replace` and `remove` return a new one."""

    __slots__ = ("corpus",)

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus

    @classmethod
    def empty(cls) -> Index:
        return cls(Corpus.empty())

    @classmethod
    def build(cls, segments: Iterable[Segment]) -> Index:
        """Return an index of these segments; of two of the same server the later one counts."""
        return cls.empty().rebuild(segments)

    def replace(self, segment: Segment) -> Index:
        return Index(self.corpus.with_segment(segment.server, segment))

    def rebuild(self, segments: Iterable[Segment]) -> Index:
        """Return an index of these segments, as `build` does, that compares what this one compares."""
        return Index(self.corpus.rebuild(list({segment.server: segment for segment in segments}.values())))

    def with_meanings(self, embedder: Embedder, made: Mapping[str, Levels], world: Levels | None = None) -> Index:
        """Return an index that compares meanings, with these vectors: for each server a row for
        each document of its segment, and for `WORLD` a row each. Words are found as before; older vectors of the same
        embedder are kept. As long as those of the world are not there, words alone say how sure a hit is.
        """
        return Index(self.corpus.with_meanings(embedder, made, world))

    def remove(self, server: str) -> Index:
        """Return an index without this server; the same index if it has none of that name."""
        changed = self.corpus.with_segment(server, None)
        return self if changed is self.corpus else Index(changed)

    def __len__(self) -> int:
        return len(self.corpus.documents)

    @property
    def embedder(self) -> Embedder | None:
        return self.corpus.embedder

    @property
    def segments(self) -> tuple[Segment, ...]:
        return self.corpus.segments

    @property
    def servers(self) -> tuple[str, ...]:
        return tuple(segment.server for segment in self.corpus.segments)

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        kinds: frozenset[str] = TOOLS,
        servers: frozenset[str] | None = None,
    ) -> Found:
        """Return the documents that fit a query, best first. Never raises, whatever the text; never waits.

        Only documents of these `kinds` and `servers` (None: all) take part: filters come before ranking, limit and
        total. `*` lists everything in path order; a query of no or one character finds nothing.
        """
        text = _clip(query, tuning.MAX_QUERY_CHARS)
        mask = self.corpus.mask(kinds, servers)
        if text.strip() == EVERYTHING:
            return self._listing(mask, limit)
        if len("".join(clean(text).split())) < 2:
            return NOTHING
        exact = exact_matches(self.corpus, text, mask)
        scores = score(self.corpus, text, mask)
        if not exact:  # who writes a name or a path means that one, and need not wait for the meaning
            scores = fuse(self.corpus, text, scores, mask)
        return page(self.corpus, text, scores, exact, limit)

    def _listing(self, mask: Bools | None, limit: int) -> Found:
        documents = self.corpus.documents
        numbers = range(len(documents)) if mask is None else np.flatnonzero(mask).tolist()
        shown = (documents[number] for number in numbers[: max(0, limit)])
        hits = tuple(Hit(document=document, score=0.0, distance=0.0, exact=False) for document in shown)
        return Found(hits=hits, total=len(numbers))


def _clip(query: str, most: int) -> str:
    """Return at most so many characters of a query; of a ligature that stands for eighteen, all eighteen count."""
    text = without_escapes(query[:most])
    if text.isascii():
        return text
    plain = ""
    for start in range(0, len(text), _CLEANED_CHARS):
        plain += clean(text[start : start + _CLEANED_CHARS])
        if len(plain) > most:
            return plain[:most]
    return text
