"""Documents of equal score in the order that somebody prefers. Pure.

Equal is the same score to the last bit: the ranking computes alike what is alike, so there is no error to allow for. A
difference, however small, says something about which document is meant (see `docs/background/search-ties.md`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from actors.search.document import Document
from actors.search.documents.postings import Floats, Ints

Prefer = Callable[[Document], int]
"""How much a document is preferred to its equals: those with more come first."""
DEPTH: Final = 256
"""So many places, from the first, can change: more than a page shows, and few enough to look at each."""


def order_ties(documents: Sequence[Document], ordered: Ints, values: Floats, ranks: Floats, prefer: Prefer) -> Ints:
    """Return documents in the same order, but for those side by side that have the same value and rank.

    `ordered` are numbers of `documents`; `values` and `ranks` have an element for each document. Of those equally
    preferred, too, the order stays.
    """
    top, rest = ordered[:DEPTH], ordered[DEPTH:]
    own, exact = values[top], ranks[top]
    same = (own[1:] == own[:-1]) & (exact[1:] == exact[:-1])
    if not same.any():
        return ordered
    tied = np.zeros(len(top), np.bool_)
    tied[1:] |= same
    tied[:-1] |= same
    merits = np.zeros(len(top), np.int64)
    merits[tied] = [prefer(documents[number]) for number in top[tied].tolist()]
    groups = np.concatenate(([0], np.cumsum(~same)))
    return np.concatenate((top[np.lexsort((-merits, groups))], rest))
