"""One search: from a query to the documents that fit it, best first."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from actors.search import tuning
from actors.search.certainty import Nearness, with_meanings
from actors.search.document import TOOLS, Found, Hit
from actors.search.index import Index
from actors.search.meanings import Embedder, query_levels
from actors.search.page import Prefer, exact_matches, page
from actors.search.paraphrase import interpret
from actors.search.postings import Bools, Floats
from actors.search.query import with_nouns, without_escapes
from actors.search.scoring import Scores, score
from actors.search.terms import Forms
from actors.search.text import clean, words

# Words and meanings in one score. One matrix product and a few passes over arrays of one number per document.
#
# What the words say stays the greater part, and the better they match, the less meanings count: who writes the words of
# a tool means that tool. They count less, too, the more words of the query are in no document: these are misspelt, or
# names. A query none of whose words is known finds nothing, whatever its meaning: everything is near to
# something, so nearness alone says nothing. The few documents nearest in meaning take part without a matching word.


_LEAST_NEAREST = 0.2
"""If even the nearest document is farther away than this cosine, meanings count less for all of them."""

_WORD = re.compile(r"\b[a-z]{4,}\b")
"""What may be misspelt; what is written as a name is one."""

_LEAST_LETTERS = 3  # of a word that is looked up: shorter ones say nothing
_MAX_WORDS = 60
_TINY = 1e-6


def fuse(index: Index, query: str, scores: Scores | None, mask: Bools | None) -> Scores | None:
    """Return the scores with the meanings' part; as they are without an embedder, or if no document matches.

    The greatest possible score stays the same: a document that is first by words and by meaning keeps its score.
    """
    if scores is None or index.embedder is None:
        return scores
    matching = scores.matches_enough(tuning.MIN_MATCHED)
    known = index.meanings.present
    if not matching.any() or not known.any():
        return scores
    asked = query_vector(index, index.embedder, query)
    cosines = index.meanings.cosines(asked)
    near = _nearest(index, cosines, mask)
    taking_part = matching | near
    greatest = max(_LEAST_NEAREST, float(cosines[taking_part].max()))
    top = float(scores.values[matching].max())
    weight = np.float32(_weight(index, query, top / max(scores.perfect, _TINY)))
    nearness = np.square(np.maximum(cosines, 0) / np.float32(greatest))
    if not known.all():
        having = nearness[matching & known]  # for a document whose vector is still to be made that of the others stands
        nearness[~known] = having.mean() if len(having) else 0
    values = (scores.values + nearness * weight * np.float32(top)) / (1 + weight)
    fused: Floats = np.where(taking_part, values, 0).astype(np.float32)
    visible = cosines if mask is None else cosines[mask]
    elsewhere = index.world.nearness(asked)
    near_to = None if elsewhere is None else Nearness(float(visible.max(initial=0.0)), *elsewhere)
    chances = with_meanings(fused, scores.evidence, near_to)
    return replace(scores, values=fused, chances=chances, words=scores.values, near=near)


def _weight(index: Index, query: str, share: float) -> float:
    """Return how much nearness counts for a query whose best document has this share of a perfect score.

    Where the words say it all, there is less to add. A misspelt word falls into pieces that mean something else, so the
    words, which are read as what they should be, go before. So do the rules of paraphrase, whose needs are in the words
    of tools. Of a long query, only some sentences are embedded.
    """
    asked = [word for word in words(query) if len(word) >= _LEAST_LETTERS][:_MAX_WORDS]
    unknown = sum(word not in index.vocabulary for word in asked) / max(1, len(asked))
    explained = len(interpret(query).taken.intersection(asked)) / max(1, len(asked))
    unsure = (1 - tuning.SEMANTIC_SURE * min(1.0, share)) * (1 - tuning.SEMANTIC_EXPLAINED * explained)
    read = min(1.0, tuning.SEMANTIC_WORDS / max(1, len(query.split())))
    return tuning.SEMANTIC * unsure * (1 - unknown) ** 2 * read


def query_vector(index: Index, embedder: Embedder, query: str) -> Floats:
    """Return the vector of a query, in which what a model of sentences cannot read is said in words it can.

    A misspelt word, which would fall into pieces that mean something else, is put right by the words of the index, but
    in long queries, of which little is embedded; what is written in a way of its own, such as a ticket's key, is called
    what it is.
    """
    if len(query.split()) <= tuning.SEMANTIC_WORDS:
        forms = Forms(index)
        query = _WORD.sub(lambda word: forms.meant(word[0]), query)
    return query_levels(embedder, with_nouns(query))


def _nearest(index: Index, cosines: Floats, mask: Bools | None) -> Bools:
    visible = cosines if mask is None else np.where(mask, cosines, np.float32(0))
    most = tuning.SEMANTIC_NEAREST
    least = np.partition(visible, -most)[-most] if most < len(visible) else np.float32(0)
    candidates = np.flatnonzero(visible >= max(least, np.finfo(np.float32).tiny))
    near: Bools = np.zeros(len(visible), np.bool_)
    near[candidates[np.argsort(-visible[candidates], kind="stable")[:most]]] = True  # ties fall in path order
    return near


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
