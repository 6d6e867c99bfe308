"""The sentence model as the search uses it: texts in, vectors out, recent queries remembered."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from actors.search.postings import Floats
from actors.search.query import is_courtesy, sentences
from supervisor.neural.transformer import Transformer
from supervisor.neural.wordpiece import WordPieces

MAX_PIECES = 96
"""Of a document that are read; its name and two or three sentences."""
MAX_QUERY_PIECES = 16
"""Of a query that are read: as many as a register of the processor holds, so one more would take a fifth longer."""

_REMEMBERED_QUERIES = 256


class SentenceModel:
    """Implements `actors.search.Embedder`. Safe in several threads at once; each call uses one processor."""

    def __init__(self, name: str, transformer: Transformer, pieces: WordPieces) -> None:
        self.name = name
        self.dimensions = transformer.width
        self._transformer = transformer
        self._pieces = pieces
        self.embed_query = lru_cache(_REMEMBERED_QUERIES)(self._query)

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return a row for each text, not normalised; zeros for a text without words. Some 20 ms a text."""
        out = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in enumerate(texts):
            out[row] = self._vector(text, MAX_PIECES)
        return out

    def _query(self, text: str) -> Floats:
        """Return the vector of a query, which nobody may change: it is remembered. Some 10 ms."""
        out = self._vector(self._last_sentences(text), MAX_QUERY_PIECES)
        out.flags.writeable = False
        return out

    def _last_sentences(self, text: str) -> str:
        """Return the last sentences of a query that are read whole, without those that greet or tell the circumstances.

        Who writes much begins with these, and ends with what is to be done. If the last one is too long, it is alone.
        """
        out: list[str] = []
        left = MAX_QUERY_PIECES - 2
        for sentence in reversed([part for part in sentences(text) if not is_courtesy(part)] or [text]):
            size = len(self._pieces.cut(sentence, MAX_QUERY_PIECES)) - 2
            if out and size > left:
                break
            out.append(sentence)
            left -= max(0, size)
        return " ".join(reversed(out))

    def _vector(self, text: str, most: int) -> Floats:
        numbers = self._pieces.cut(text, most)
        return self._transformer.encode(numbers) if numbers else np.zeros(self.dimensions, np.float32)
