"""Meanings beside words: what turns a text into a vector, and how vectors are kept and compared. Pure.

Vectors are kept as whole numbers from -127 to 127. A dot product of two of them is then exact in 32-bit floats, in any
order of adding: the same index gives the same answers, to the last bit, whatever the machine's linear algebra does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

import numpy as np
import numpy.typing as npt

from actors.search.document import Document, sentences_of
from actors.search.documents.postings import Bools, Floats
from actors.search.language.text import with_spaces

Levels = npt.NDArray[np.int8]
"""Vectors as whole numbers, a row each; only their direction has a meaning."""

MAX_DIMENSIONS = 1024
"""More would make a dot product of two rows inexact: 127 * 127 * 1024 is just below 2 ** 24."""

_MAX_DESCRIPTION_CHARS = 300
_BESIDE_SENTENCES_CHARS = 100  # of a description: all that is read is a little more than these and five sentences
_MAX_NAME_CHARS = 300
_MAX_QUERY_CHARS = 2000
_FULL = 127
_TINY = 1e-30


class Embedder(Protocol):
    """Turns texts into vectors whose angle says how near their meanings are.

    Deterministic, free of side effects, safe in several threads at once. It blocks: texts are embedded in a worker
    thread, and so runs a search of an index that has an embedder.
    """

    @property
    def name(self) -> str:
        """What makes the vectors; vectors of different names are not compared."""

    @property
    def dimensions(self) -> int:
        """The length of every vector, at most `MAX_DIMENSIONS`."""

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return a float32 array of (texts, dimensions); a row of zeros for a text without meaning. Never raises."""

    def embed_query(self, text: str) -> Floats:
        """Return the float32 vector of one query, sooner if it was asked before. Never raises."""


def query_levels(embedder: Embedder, query: str) -> Floats:
    vector: Floats = levels(embedder.embed_query(query[:_MAX_QUERY_CHARS])[None])[0].astype(np.float32)
    return vector


def text_of(document: Document) -> str:
    """Return what stands for a document: what it is called, the begin of its description, and what people say."""
    most = _BESIDE_SENTENCES_CHARS if document.said else _MAX_DESCRIPTION_CHARS
    server, name = with_spaces(document.server[:_MAX_NAME_CHARS]), with_spaces(document.name[:_MAX_NAME_CHARS])
    description = " ".join(document.description[: 2 * most].split())[:most]
    told = f"{server} {name}: {document.title[:_MAX_NAME_CHARS]} {description}"
    return " ".join((told, ". ".join(sentences_of(document)))) if document.said else told


def digest_of(embedder: Embedder, text: str) -> bytes:
    """Return what a vector is kept under: 16 bytes that say which text it stands for, and what made it."""
    return blake2b(f"{embedder.name}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


def levels(vectors: Floats) -> Levels:
    """Return vectors as whole numbers, each stretched so that its greatest part is 127. Not finite is zero."""
    finite = np.nan_to_num(vectors, nan=0.0, posinf=0.0, neginf=0.0)
    greatest = np.abs(finite).max(axis=1, keepdims=True, initial=0.0)
    out: Levels = np.rint(finite * (_FULL / np.maximum(greatest, np.float32(_TINY)))).astype(np.int8)
    return out


@dataclass(frozen=True, slots=True, eq=False)
class Meanings:
    """The vectors of all documents of an index, or of other texts, as whole numbers; no columns without an embedder."""

    rows: Floats
    scales: Floats  # per document: one divided by the length of its vector, 0 for a vector of zeros

    @staticmethod
    def empty(dimensions: int) -> Meanings:
        return Meanings(np.zeros((0, dimensions), np.float32), np.zeros(0, np.float32))

    def splice(self, low: int, high: int, new: Sequence[Levels]) -> Meanings:
        """Return these with the rows from `low` to `high` replaced; vectors of another length count as none."""
        width = self.rows.shape[1]
        fresh = [
            (part if part.shape[1] == width else np.zeros((len(part), width), np.int8)).astype(np.float32)
            for part in new
        ]
        scales = [_scales(part) for part in fresh]
        return Meanings(
            np.concatenate([self.rows[:low], *fresh, self.rows[high:]]),
            np.concatenate([self.scales[:low], *scales, self.scales[high:]]),
        )

    @property
    def present(self) -> Bools:
        out: Bools = self.scales > 0
        return out

    def cosines(self, vector: Floats) -> Floats:
        """Return the cosine of the angle between each document's vector and this one; 0 where there is none."""
        # not `@`: it wakes the threads of the linear algebra library, and these fight for the cores with whatever else
        # runs: ten milliseconds instead of a fifth of one
        out: Floats = np.vecdot(self.rows, vector) * (self.scales * _scales(vector[None])[0])
        return out


def _scales(rows: Floats) -> Floats:
    squares = np.vecdot(rows, rows)
    out: Floats = np.where(squares > 0, 1 / np.sqrt(np.maximum(squares, 1)), 0).astype(np.float32)
    return out
