"""From scores to one page of hits: exact names first, not too many of one server, ties in path order. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from actors.search.corpus import Corpus
from actors.search.document import NOTHING, Found, Hit
from actors.search.postings import Bools, Ints
from actors.search.rank import Allowed, Scores
from actors.search.text import squash, stem, words

_FITS = 0.5  # another server's document fits a page if it scores this share of the one it displaces
_MAX_EXACT_CHARS = 300
_MCP_PREFIX = "mcp"
_BY_NAME, _BY_PATH = 1, 2


def exact_matches(corpus: Corpus, query: str, mask: Bools | None, allowed: Allowed | None) -> dict[int, int]:
    """Return the documents whose name (1) or path (2) is the query, punctuation and case aside.

    A path is server and name with anything between them, with or without the prefix `mcp` of some clients.
    """
    if len(query) > _MAX_EXACT_CHARS:
        return {}
    text = squash(query)
    out: dict[int, int] = {}
    for path in (text, text.removeprefix(_MCP_PREFIX)):
        for server in corpus.named.get(path, ()):
            place = corpus.place(server)
            if place is None:
                continue
            first, segment = corpus.firsts[place], corpus.segments[place]
            names = segment.by_name.get(text, ())
            out.update((first + number, _BY_NAME) for number in names)
            out.update((first + number, _BY_PATH) for number in segment.by_path.get(path, ()))
    visible = {number: level for number, level in out.items() if mask is None or mask[number]}
    return {n: level for n, level in visible.items() if allowed is None or allowed(corpus.documents[n])}


def page(corpus: Corpus, query: str, scores: Scores | None, exact: Mapping[int, int], limit: int) -> Found:
    """Return the best hits and how many documents match: exactly, or with enough of the query's weight."""
    if scores is None:
        matching: Ints = np.array(sorted(exact), np.int32)
        values = np.zeros(len(corpus.documents), np.float32)
        perfect = 1.0
    else:
        values, perfect = scores.values, scores.perfect
        enough = (values > 0) & (scores.matched >= corpus.tuning.min_matched)
        enough[list(exact)] = True
        matching = np.flatnonzero(enough).astype(np.int32)
    if not len(matching) or limit < 1:
        return Found(total=len(matching)) if len(matching) else NOTHING
    chosen = _chosen(corpus, query, _ordered(values, matching, exact, limit), values, exact, limit)
    hits: list[Hit] = []
    distance = 0.0
    for number in chosen:
        distance = 0.0 if number in exact else max(distance, _distance(float(values[number]) / max(perfect, 1e-6)))
        hits.append(
            Hit(
                document=corpus.documents[number],
                score=float(values[number]),
                distance=distance,
                exact=number in exact,
            )
        )
    return Found(hits=tuple(hits), total=len(matching))


def _ordered(values: np.ndarray, matching: Ints, exact: Mapping[int, int], limit: int) -> list[int]:
    """Return matching documents in order, as far down as another server's could still fit the page."""
    found = values[matching]
    if len(matching) > limit:
        least = np.partition(found, len(found) - limit)[len(found) - limit] * _FITS
        matching = matching[(found >= least) | np.isin(matching, list(exact))]
        found = values[matching]
    ordered = matching[np.lexsort((matching, -found))].tolist()
    return sorted(ordered, key=lambda number: -exact.get(number, 0))


def _chosen(
    corpus: Corpus, query: str, ordered: Sequence[int], values: np.ndarray, exact: Mapping[int, int], limit: int
) -> list[int]:
    """Return one page: of each server at most half, unless the query names it or nothing else fits."""
    most = (limit + 1) // 2
    asked = {stem(word) for word in words(query[:_MAX_EXACT_CHARS])}
    taken: Counter[int] = Counter()
    page_: list[int] = []
    held: list[int] = []
    for number in ordered:
        server = int(corpus.segment_of[number])
        if len(page_) == limit:
            break
        if number not in exact and taken[server] >= most and not _is_named(corpus, server, asked):
            held.append(number)
        elif not held or number in exact or values[number] >= _FITS * values[held[0]]:
            taken[server] += 1
            page_.append(number)
    page_ += held[: limit - len(page_)]
    place = {number: rank for rank, number in enumerate(ordered)}
    return sorted(page_, key=place.__getitem__)


def _is_named(corpus: Corpus, server: int, asked: set[str]) -> bool:
    own = corpus.segments[server].server_words
    return bool(own) and own <= asked


def _distance(share: float) -> float:
    """Return the distance (0 best, 1 worst) of a document with this share of a perfect document's score."""
    return min(1.0, max(0.0, 1.0 - share))
