"""Meanings beside words: what turns a text into a vector, and how vectors are kept and compared. Pure.

Vectors are kept as whole numbers from -127 to 127. A dot product of two of them is then exact in 32-bit floats, in any
order of adding: the same index gives the same answers, to the last bit, whatever the machine's linear algebra does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

import numpy as np
import numpy.typing as npt

from actors.search.document import Document, sentences_of
from actors.search.postings import Bools, Floats
from actors.search.text import with_spaces

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


# What is done in the world and by nobody here: what speaks against a hit by its meaning.
#
# How near the nearest document is says little by itself, as some requests are near to everything. One that is nearer to
# things which no document here does is most likely one of these. What some document here comes near to is left out: a
# mail program beside the hundred that the world has is no reason to doubt that it sends mail.

DONE_HERE = 0.6
"""What a document comes nearer to than this cosine is done here."""

_NEAREST = 3
_AT_ONCE = 1000  # documents: three megabytes of cosines


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """The vectors of `WORLD`, none until they are made, and per server which of these lines it does."""

    lines: Meanings
    done: Mapping[str, Bools]
    elsewhere: Bools  # per line: no server does it

    @staticmethod
    def of(rows: Levels) -> World:
        """Return a world in which nothing is done here; `rows` are the vectors of its lines."""
        lines = Meanings.empty(rows.shape[1]).splice(0, 0, [rows])
        return World(lines, {}, np.ones(len(rows), np.bool_))

    @staticmethod
    def empty(dimensions: int) -> World:
        return World.of(np.zeros((0, dimensions), np.int8))

    def replace(self, gone: Iterable[str], new: Mapping[str, Levels]) -> World:
        if not len(self.elsewhere):
            return self
        out = {*gone, *new}
        done = {server: lines for server, lines in self.done.items() if server not in out}
        done |= {server: self._done_by(rows) for server, rows in new.items()}
        elsewhere: Bools = ~np.logical_or.reduce([np.zeros_like(self.elsewhere), *done.values()])
        return World(self.lines, done, elsewhere)

    def nearness(self, vector: Floats) -> tuple[float, float] | None:
        """Return the mean cosine of the three lines nearest to this one that are done elsewhere, and that of all these.

        Zeros if fewer than three are done elsewhere; None if no line is known.
        """
        if not len(self.elsewhere):
            return None
        cosines = self.lines.cosines(vector)[self.elsewhere]
        if len(cosines) < _NEAREST:
            return 0.0, 0.0
        return float(np.partition(cosines, -_NEAREST)[-_NEAREST:].mean()), float(cosines.mean())

    def _done_by(self, rows: Levels) -> Bools:
        out = np.zeros(len(self.elsewhere), np.bool_)
        if rows.shape[1] != self.lines.rows.shape[1]:
            return out
        documents = Meanings.empty(rows.shape[1]).splice(0, 0, [rows])
        for first in range(0, len(rows), _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            cosines = self.lines.rows @ documents.rows[some].T * documents.scales[some]
            out |= cosines.max(axis=1) * self.lines.scales > DONE_HERE
        return out
