"""From scores to one page of hits: exact names first, not too many of one server, ties in path order. Pure.

What a server writes about itself earns it no more than half a page, and one place among the exact names: however many
spellings of a name it offers, those of the others stay in sight.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from actors.search.corpus import Corpus
from actors.search.document import NOTHING, Document, Found, Hit
from actors.search.postings import Bools, Floats, Ints
from actors.search.rank import Allowed, Scores
from actors.search.text import squash, stem, words

_FITS = 0.5  # another server's document fits a page if it scores this share of the one it displaces
_MAX_EXACT_CHARS = 300
_MCP_PREFIX = "mcp"
_BY_NAME, _BY_PATH, _AS_WRITTEN = 1, 2, 3

# The chance that the first hit is right, as a logistic function of its share of a perfect document's score, and how
# it falls for the others with their share of the first one's score; fitted to judged queries.
_CHANCE_AT_ZERO = -0.25
_CHANCE_PER_SHARE = 3.0
_CHANCE_FALLS = 10

Exact = Mapping[int, float]
"""Number of a document whose name or path is the query to how exactly it is: by name 1, by path 2, as written 3."""


def exact_matches(corpus: Corpus, query: str, mask: Bools | None, allowed: Allowed | None) -> Exact:
    """Return the documents whose name or path is the query, punctuation and case aside; by name one of each server.

    A path is server and name with anything between them, with or without the prefix `mcp` of some clients.
    """
    text = squash(query) if len(query) <= _MAX_EXACT_CHARS else ""
    out: dict[int, float] = {}
    for path in (text, text.removeprefix(_MCP_PREFIX)) if text else ():
        for server in corpus.named.get(path, ()):
            place = corpus.place(server)
            first, segment = corpus.firsts[place], corpus.segments[place]
            named = [first + number for number in segment.by_name.get(text, ())]
            whole = [first + number for number in segment.by_path.get(path, ())]
            for level, numbers in ((_BY_NAME, named), (_BY_PATH, whole)):
                visible = [number for number in numbers if _is_visible(corpus, number, mask, allowed)]
                if visible:
                    number = max(visible, key=lambda n: _level(corpus.documents[n], query, level))
                    out[number] = max(out.get(number, 0), _level(corpus.documents[number], query, level))
    return out


def _is_visible(corpus: Corpus, number: int, mask: Bools | None, allowed: Allowed | None) -> bool:
    if mask is not None and not mask[number]:
        return False
    return allowed is None or allowed(corpus.documents[number])


def _level(document: Document, query: str, level: int) -> float:
    """Return how exact a match is; half a step more for a name written as the document writes it."""
    asked = query.strip().casefold()
    if level == _BY_PATH:
        written = {document.key.casefold(), f"mcp__{document.server}__{document.name}".casefold()}
        return _AS_WRITTEN if asked in written else _BY_PATH
    return level + 0.5 if query.strip() == document.name else level


def page(corpus: Corpus, query: str, scores: Scores | None, exact: Exact, limit: int) -> Found:
    """Return the best hits and how many documents match: exactly, or with enough of the query's weight."""
    if scores is None:
        scores = Scores(np.zeros(len(corpus.documents), np.float32), np.zeros(len(corpus.documents), np.float32), 1.0)
    enough = scores.matching(corpus.tuning.min_matched)
    enough[list(exact)] = True
    matching: Ints = np.flatnonzero(enough).astype(np.int32)
    if not len(matching):
        return NOTHING
    if limit < 1:
        return Found(total=len(matching))
    ordered = _ordered(scores, matching, exact, limit)
    chosen = _chosen(corpus, query, ordered, _by_words(scores), exact, limit)
    return Found(hits=_hits(corpus, chosen, scores, exact), total=len(matching))


def _by_words(scores: Scores) -> Floats:
    """Return the scores by words alone: they decide who fits, as nearness in meaning is never far from the next."""
    return scores.values if scores.words is None else scores.words


def _ordered(scores: Scores, matching: Ints, exact: Exact, limit: int) -> list[int]:
    """Return matching documents in order, as far down as another server's could still fit the page."""
    found = _by_words(scores)[matching]
    if len(matching) > limit:
        least = np.partition(found, len(found) - limit)[len(found) - limit] * _FITS
        kept = (found >= least) | np.isin(matching, list(exact))
        matching = matching[kept if scores.near is None else kept | scores.near[matching]]
    numbers: list[int] = matching[np.lexsort((matching, -scores.values[matching]))].tolist()
    return sorted(numbers, key=lambda number: -exact.get(number, 0))


def _chosen(
    corpus: Corpus, query: str, ordered: Sequence[int], values: Floats, exact: Exact, limit: int
) -> Sequence[int]:
    """Return one page: of each server at most half, unless the query names it or nothing else fits."""
    most = (limit + 1) // 2
    asked = {stem(word) for word in words(query[:_MAX_EXACT_CHARS])}
    taken: Counter[int] = Counter()
    placed: list[int] = []
    held: list[int] = []
    for rank, number in enumerate(ordered):
        if len(placed) == limit:
            break
        server = int(corpus.segment_of[number])
        if number not in exact and taken[server] >= most and not _is_named(corpus, server, asked):
            held.append(rank)
        elif not held or number in exact or values[number] >= _FITS * values[ordered[held[0]]]:
            taken[server] += 1
            placed.append(rank)
    return [ordered[rank] for rank in sorted(placed + held[: limit - len(placed)])]


def _is_named(corpus: Corpus, server: int, asked: set[str]) -> bool:
    own = corpus.segments[server].server_words
    return bool(own) and own <= asked


def _hits(corpus: Corpus, chosen: Sequence[int], scores: Scores, exact: Exact) -> tuple[Hit, ...]:
    first = max(float(scores.values[number]) for number in chosen)
    chance = 1 / (1 + math.exp(-_CHANCE_AT_ZERO - _CHANCE_PER_SHARE * min(1.0, first / max(scores.perfect, 1e-6))))
    hits: list[Hit] = []
    distance = 0.0
    for number in chosen:
        value = float(scores.values[number])
        if number not in exact:
            distance = max(distance, 1 - chance * (value / first if first > 0 else 0.0) ** _CHANCE_FALLS)
        found = corpus.documents[number]
        hits.append(Hit(document=found, score=value, distance=distance, exact=number in exact))
    return tuple(hits)
