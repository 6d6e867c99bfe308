"""Postings: for each term, which documents hold it and how much it weighs there. Immutable arrays.

All postings lie in two arrays sorted by (term, document), with the start of each term in a third. Documents are
numbered by path, so replacing one server means: cut its range of documents out, move the later numbers, merge the new
ones in. All of it is a few passes over the arrays in C; a reader of the older value keeps the older arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.integer]
"""Whole numbers of any type, for example of the least that holds them: see `narrow`."""
Bools = npt.NDArray[np.bool_]

_SHIFT = 32


def narrow(numbers: Sequence[int]) -> Numbers:
    """Return numbers, none of which is negative, in the least type that holds them.

    What is kept of each server is many small numbers: mostly one byte is enough where four are usual.
    """
    wide = np.array(numbers, np.int32)
    return wide.astype(np.min_scalar_type(int(wide.max(initial=0))))


@dataclass(frozen=True, slots=True, eq=False)
class Triples:
    """Postings in any order: the n-th says that `documents[n]` holds `terms[n]` with `weights[n]`."""

    terms: Numbers
    documents: Numbers
    weights: Floats

    def move(self, names: Ints, first: int) -> Triples:
        """Return the same postings with term t called `names[t]` and documents counted from `first`."""
        return Triples(names[self.terms], self.documents.astype(np.int32) + np.int32(first), self.weights)

    @staticmethod
    def join(parts: list[Triples]) -> Triples:
        every = [NO_TRIPLES, *parts]
        return Triples(
            np.concatenate([part.terms for part in every]),
            np.concatenate([part.documents for part in every]),
            np.concatenate([part.weights for part in every]),
        )


NO_TRIPLES = Triples(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.float32))
"""No postings at all."""


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """Postings sorted by (term, document); those of term t are at `starts[t]` up to `starts[t + 1]`."""

    starts: npt.NDArray[np.int64]
    documents: Ints
    weights: Floats

    @staticmethod
    def empty() -> Postings:
        return Postings(np.zeros(1, np.int64), np.zeros(0, np.int32), NO_TRIPLES.weights)

    def has(self, term: int) -> bool:
        return bool(self.starts[term + 1] > self.starts[term])

    def of(self, term: int) -> tuple[Ints, Floats]:
        """Return the documents that hold a term, ascending, and its weight in each."""
        low, high = self.starts[term], self.starts[term + 1]
        return self.documents[low:high], self.weights[low:high]

    def terms(self) -> Ints:
        return np.repeat(np.arange(len(self.starts) - 1, dtype=np.int32), np.diff(self.starts))

    def splice(self, low: int, high: int, new: Triples, grown_by: int, term_count: int) -> Postings:
        """Return postings without documents `low` up to `high`, later ones moved by `grown_by`, and `new` merged in.

        `new` uses the numbers after the move; `term_count` is the number of terms afterwards, at least as many as now.
        """
        terms, documents, weights = self.terms(), self.documents, self.weights
        if high > low:
            keep = (documents < low) | (documents >= high)
            terms, documents, weights = terms[keep], documents[keep], weights[keep]
        if grown_by:
            documents = np.where(documents >= high, documents + np.int32(grown_by), documents)
        new_keys = _keys(new.terms, new.documents)
        order = np.argsort(new_keys)
        at = np.searchsorted(_keys(terms, documents), new_keys[order])
        merged = np.insert(terms, at, new.terms[order])
        starts = np.zeros(term_count + 1, np.int64)
        np.cumsum(np.bincount(merged, minlength=term_count), out=starts[1:])
        documents = np.insert(documents, at, new.documents[order])
        return Postings(starts, documents, np.insert(weights, at, new.weights[order]))


def _keys(terms: Numbers, documents: Numbers) -> npt.NDArray[np.int64]:
    return (terms.astype(np.int64) << _SHIFT) | documents
