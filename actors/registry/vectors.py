"""Vectors for the documents of an index, made in the background: the search goes by words alone until they are there.

- What was embedded before, by this daemon or an earlier one, is taken from where it is kept, by its text.
- The rest is embedded a few texts at a time in one thread, with rests between them, so that queries and servers go
  before. The thread has the priority of the others: one that the system puts off while it holds Python's lock would put
  off the loop, too.
- A step ends after a moment, so that servers are found by meaning one after the other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import trio

from actors.kit import is_want
from actors.search.document import Document
from actors.search.documents.embedding import Embedder, Levels, digest_of, levels, text_of
from actors.search.documents.index import Index
from actors.search.documents.segment import Segment
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


class Vectors(Protocol):
    """Where vectors are kept. Neither fails: what cannot be read is made again."""

    async def load_vectors(self, digests: Sequence[bytes]) -> Mapping[bytes, bytes]:
        """Return what is kept under these digests."""

    def save_vectors(self, vectors: Mapping[bytes, bytes]) -> None: ...


Documents = tuple[Document, ...]
Text = tuple[bytes, str]
"""A text that is embedded, after its digest."""


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
    """Makes vectors. For one task. `load` blocks and is called once it can be."""

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
