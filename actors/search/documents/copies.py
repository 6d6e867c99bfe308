"""Which documents are copies, and whose they are more likely to be. Pure.

Whoever wants to be taken for an honest tool copies its name or its text; both copies match a query equally well, and
many of them would crowd out the original. Copies therefore only share places: among those that are told apart by
nothing but their server, the one whose server copies least comes first. A server copies as much as the share of its
documents whose name, or longest sentence, another server has, too. Where that says nothing - two accounts of one
service, say - the order stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from actors.search.document import Document
from actors.search.documents.postings import Floats, Ints
from actors.search.language.text import SENTENCE_END, squash

Prints = npt.NDArray[np.int64]
"""Per document the fingerprint of its name and that of its longest sentence; 0 stands for none."""

NAME, TEXT = 0, 1

_MAX_TEXT_CHARS = 3000
_MAX_NAME_CHARS = 300
_MIN_TEXT_CHARS = 12  # squashed: shorter sentences are said by honest servers of different things


def prints_of(documents: Sequence[Document]) -> Prints:
    """Return the fingerprints of documents, a row each; the same on every machine."""
    rows = [
        (_hash(document.name[:_MAX_NAME_CHARS], 1), _hash(_longest(document), _MIN_TEXT_CHARS))
        for document in documents
    ]
    return np.array(rows, np.int64).reshape(len(rows), 2)


def _longest(document: Document) -> str:
    return max(SENTENCE_END.split(document.description[:_MAX_TEXT_CHARS]), key=len)


def _hash(text: str, least_chars: int) -> int:
    squashed = squash(text)
    if len(squashed) < least_chars:
        return 0
    return int.from_bytes(blake2b(squashed.encode(errors="replace"), digest_size=8).digest(), "big", signed=True)


def copied_shares(prints: Prints, segment_of: Ints, sizes: Ints) -> Floats:
    """Return per server the share of its documents (0..1) that have a name or a text of another server."""
    copied = np.zeros(len(prints), np.bool_)
    for column in (NAME, TEXT):
        copied |= _held_by_several(prints[:, column], segment_of)
    shares: Floats = (np.bincount(segment_of, weights=copied, minlength=len(sizes)) / np.maximum(sizes, 1)).astype(
        np.float32
    )
    return shares


def _held_by_several(column: npt.NDArray[np.int64], segment_of: Ints) -> npt.NDArray[np.bool_]:
    order = np.lexsort((segment_of, column))
    prints, servers = column[order], segment_of[order]
    begins = np.ones(len(prints), np.bool_)
    begins[1:] = prints[1:] != prints[:-1]
    run = np.cumsum(begins) - 1
    moves = np.zeros(len(prints), np.int64)
    moves[1:] = (servers[1:] != servers[:-1]) & ~begins[1:]
    out = np.zeros(len(prints), np.bool_)
    out[order] = (np.bincount(run, weights=moves)[run] > 0) & (prints != 0)
    return out
