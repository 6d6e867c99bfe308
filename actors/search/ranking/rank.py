"""A query read as a whole, as its sentences and as its wishes, and what documents score for these together. Pure.

In a long query every sentence is scored on its own; in one of several wishes ("find it and tell them") every wish is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from actors.search import tuning
from actors.search.documents.index import Index
from actors.search.documents.postings import Bools
from actors.search.language.clauses import clauses, is_courtesy, sentences
from actors.search.ranking.scoring import Scorer, Scores
from actors.search.ranking.terms import Reader, Term

_MAX_SENTENCES = 12


def score(index: Index, query: str, mask: Bools | None) -> Scores | None:
    """Return the scores of all documents, 0 outside the mask; None if no document has any word of the query."""
    reader = Reader(index)
    terms = reader.terms(query)
    if not _asks(terms):
        return None
    sentences = _sentences(reader, query, terms)
    wishes = [] if sentences else _wishes(reader, query)
    scorer = Scorer(index, mask)
    whole = scorer.score(_rarest(index, terms))
    if sentences:
        weighted = [(weight, scorer.score(sentence)) for weight, sentence in sentences]
        return _together(tuning.WHOLE_QUERY, whole, weighted)
    if not wishes:
        return whole
    parts = [part for part in map(scorer.score, wishes) if part.values.max(initial=0.0) > 0]
    if len(parts) < 2:
        return whole
    greatest = max(float(part.values.max()) for part in parts)
    return _together(1.0, whole, [(greatest / float(part.values.max()), part) for part in parts])


def _together(share: float, whole: Scores, parts: Sequence[tuple[float, Scores]]) -> Scores:
    """Return a share of the whole query's scores and the best of its parts', each times its weight."""
    every = [whole, *(part for _, part in parts)]
    return Scores(
        values=share * whole.values + np.maximum.reduce([part.values * np.float32(weight) for weight, part in parts]),
        matched=np.maximum.reduce([part.matched for part in every]),
        perfect=share * whole.perfect + max(weight * part.perfect for weight, part in parts),
        chances=np.maximum.reduce([part.chances for part in every]),
        evidence=tuple(evidence for part in every for evidence in part.evidence),
    )


def _asks(terms: Sequence[Term]) -> bool:
    """Say whether anything is asked that a document could have; a number beside unknown words alone is noise."""
    is_all_known = bool(terms)
    for term in terms:
        if not term.matches:
            is_all_known = False
        elif not term.word.isdigit():
            return True
    return is_all_known


def _sentences(reader: Reader, query: str, terms: Sequence[Term]) -> list[tuple[float, list[Term]]]:
    """Return weight and terms of each sentence of a long query, or nothing if it is to be read as one."""
    if len(terms) < tuning.SENTENCES_FROM / 2 or len(query.split()) < tuning.SENTENCES_FROM:
        return []
    texts = sentences(query)
    if not 1 < len(texts) <= _MAX_SENTENCES:
        return []
    read = [
        (tuning.COURTESY if is_courtesy(text) else 1.0, _rarest(reader.index, reader.terms(text))) for text in texts
    ]
    read = [(weight, part) for weight, part in read if any(term.matches for term in part)]
    return read if len(read) > 1 else []


def _wishes(reader: Reader, query: str) -> list[list[Term]]:
    """Return the terms of each wish of a query that has several; one that refers to another takes from that, too."""
    out: list[list[Term]] = []
    before: list[Term] = []
    for clause in clauses(query):
        terms = reader.terms(clause.text)
        if clause.refers:
            said = {term.word for term in terms}
            terms += [
                replace(term, weight=term.weight * tuning.REFERRED)
                for term in before
                if not term.verb and term.word not in said
            ]
        before = terms
        terms = _rarest(reader.index, terms)
        if _asks(terms):
            out.append(terms)
    return out


def _rarest(index: Index, terms: list[Term]) -> list[Term]:
    if len(terms) <= tuning.MAX_QUERY_TERMS:
        return terms
    idf = index.idf
    return sorted(terms, key=lambda t: -max((w * float(idf[m]) for m, w in t.matches.items()), default=0.0))[
        : tuning.MAX_QUERY_TERMS
    ]
