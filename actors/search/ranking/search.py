"""One search: from a query to the documents that fit it, best first."""

from __future__ import annotations

import numpy as np

from actors.search import tuning
from actors.search.document import TOOLS, Found, Hit
from actors.search.documents.index import Index
from actors.search.documents.postings import Bools
from actors.search.language.spans import without_escapes
from actors.search.language.text import clean
from actors.search.ranking.fusion import fuse
from actors.search.ranking.page import exact_matches, page
from actors.search.ranking.rank import score
from actors.search.ranking.ties import Prefer

EVERYTHING = "*"
"""The query that lists all documents in path order."""

_CLEANED_CHARS = 200  # at a time, as the compatibility form of a text can be eighteen times as long


def find(
    index: Index,
    query: str,
    *,
    limit: int = 10,
    kinds: frozenset[str] = TOOLS,
    servers: frozenset[str] | None = None,
    within: Bools | None = None,
    prefer: Prefer | None = None,
) -> Found:
    """Return the documents that fit a query, best first. Never raises, whatever the text; never waits.

    Only documents of these `kinds` and `servers` (None: all), and among those that are true `within`, take part:
    filters come before ranking, limit and total.
    Those of equal score come in path order, but `prefer` goes before that.
    `*` lists everything in path order; a query of no or one character finds nothing.
    """
    text = _clip(query)
    mask = index.mask(kinds, servers, within)
    if text.strip() == EVERYTHING:
        return _listing(index, mask, limit)
    if len("".join(clean(text).split())) < 2:
        return Found()
    exact = exact_matches(index, text, mask)
    scores = score(index, text, mask)
    if not exact:  # who writes a name or a path means that one, and need not wait for the meaning
        scores = fuse(index, text, scores, mask)
    return page(index, text, scores, exact, limit, prefer)


def _listing(index: Index, mask: Bools | None, limit: int) -> Found:
    numbers = range(len(index)) if mask is None else np.flatnonzero(mask).tolist()
    shown = (index.documents[number] for number in numbers[: max(0, limit)])
    hits = tuple(Hit(document=document, score=0.0, distance=0.0, exact=False) for document in shown)
    return Found(hits=hits, total=len(numbers))


def _clip(query: str) -> str:
    """Return as much of a query as is read; of a ligature that stands for eighteen characters, all eighteen count."""
    most = tuning.MAX_QUERY_CHARS
    text = without_escapes(query[:most])
    if text.isascii():
        return text
    plain = ""
    for start in range(0, len(text), _CLEANED_CHARS):
        plain += clean(text[start : start + _CLEANED_CHARS])
        if len(plain) > most:
            return plain[:most]
    return text
