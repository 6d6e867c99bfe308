"""Embedders whose meanings a test decides."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from actors.search.document import Document
from actors.search.meanings import Embedder, Levels, levels, text_of


class FakeEmbedder:
    """A text means the sum of its words; words of one meaning get the same vector, others unrelated ones."""

    def __init__(self, meanings: Mapping[str, str] | None = None, *, name: str = "fake", dimensions: int = 64) -> None:
        self.name = name
        self.dimensions = dimensions
        self.texts: list[str] = []
        self.queries: list[str] = []
        self._meanings = dict(meanings or {})

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.texts += texts
        return np.array([self._vector(text) for text in texts], np.float32).reshape(len(texts), self.dimensions)

    def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        self.queries.append(text)
        return np.array(self._vector(text), np.float32)

    def _vector(self, text: str) -> npt.NDArray[np.float64]:
        out = np.zeros(self.dimensions)
        for word in re.findall(r"\w+", text.lower()):
            seed = zlib.crc32(self._meanings.get(word, word).encode("utf-8", "surrogatepass"))
            out += np.random.default_rng(seed).standard_normal(self.dimensions)
        return out


def document_levels(embedder: Embedder, documents: Sequence[Document]) -> Levels:
    """The vectors of documents, a row each."""
    return levels(embedder.embed([text_of(document) for document in documents]))
