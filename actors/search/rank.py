"""Documents scored for a query. Pure arithmetic on arrays of one number per document.

Of a term's alternatives the best counts (never their sum). A document gains by how much of the query it matches and by
how much of its own name the query says; it gains a little from its server's other documents, and loses a little when
its name does the opposite of the query's verb. In a long query every sentence is scored on its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from actors.search.corpus import Corpus
from actors.search.document import Document
from actors.search.postings import Bools, Floats
from actors.search.segment import VERB_CODES
from actors.search.terms import Reader, Term, is_verb
from actors.search.text import is_cjk
from actors.search.words_common import VERB_CLASS
from actors.search.words_phrases import COURTESY

Allowed = Callable[[Document], bool]
"""A filter on single documents."""

_SENTENCE_END = re.compile(r"(?<=[.!?;:\n])\s+|\n+")
_MAX_SENTENCES = 12
_COURTESY = re.compile(COURTESY, re.IGNORECASE)
_FULLY_MATCHED = 1.3  # a term counts as matched in full from 1/1.3 of its best possible weight on
_SMALL_SERVER = 4
_NAME_GAIN = 1.2  # a lowered term explains a name a little better than its weight says
_TINY = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Per document its score and the share of the query (0..1) it matches; and the score of a perfect document.

    Where meanings were compared, too, `values` holds both and `words` what the words alone give; `near` marks the
    nearest in meaning, which need not match a word; `cosines` are those of documents and query, 0 without a vector.
    """

    values: Floats
    matched: Floats
    perfect: float
    words: Floats | None = None
    near: Bools | None = None
    cosines: Floats | None = None

    def matching(self, least: float) -> Bools:
        """Return which documents match at least this share of the query, or are near in meaning."""
        out = (self.values > 0) & (self.matched >= least)
        return out if self.near is None else out | self.near


def score(corpus: Corpus, query: str, mask: Bools | None, allowed: Allowed | None = None) -> Scores | None:
    """Return the scores of all documents; those outside the mask, or not allowed, get 0.

    Return None if no document has any word of the query.
    """
    reader = Reader(corpus)
    terms = reader.terms(query, wordy=0 < corpus.tuning.sentences_from <= len(query.split()))
    if not _asks(terms):
        return None
    sentences = _sentences(reader, query, terms)
    if allowed is not None:
        mask = _narrowed(corpus, [terms, *[sentence for _, sentence in sentences]], mask, allowed)
    scorer = _Scorer(corpus, mask)
    whole = scorer.score(_rarest(corpus, terms))
    if not sentences:
        return whole
    parts = [(weight, scorer.score(sentence)) for weight, sentence in sentences]
    share = corpus.tuning.whole_query
    values, matched = share * whole.values, whole.matched
    values += np.maximum.reduce([part.values * np.float32(weight) for weight, part in parts])
    for _, part in parts:
        matched = np.maximum(matched, part.matched)
    return Scores(values, matched, share * whole.perfect + max(weight * part.perfect for weight, part in parts))


def _asks(terms: Sequence[Term]) -> bool:
    """Say whether anything is asked that a document could have; a number beside unknown words alone is noise."""
    matched = [term for term in terms if term.matches]
    return any(not term.word.isdigit() for term in matched) or len(matched) == len(terms) > 0


def _narrowed(corpus: Corpus, parts: Sequence[Sequence[Term]], mask: Bools | None, allowed: Allowed) -> Bools:
    """Return the mask of those documents with a word of the query that are allowed: it is asked about no others."""
    out: Bools = np.zeros(len(corpus.documents), np.bool_)
    for match in {match for part in parts for term in part for match in term.matches}:
        out[corpus.postings.of(match)[0]] = True
    if mask is not None:
        out &= mask
    for number in np.flatnonzero(out).tolist():
        out[number] = allowed(corpus.documents[number])
    return out


def _sentences(reader: Reader, query: str, terms: Sequence[Term]) -> list[tuple[float, list[Term]]]:
    """Return weight and terms of each sentence of a long query, or nothing if it is to be read as one."""
    least = reader.tuning.sentences_from
    if not least or len(terms) < least / 2 or len(query.split()) < least:
        return []
    texts = [text for text in _SENTENCE_END.split(query) if text.strip()]
    if not 1 < len(texts) <= _MAX_SENTENCES:
        return []
    courtesy = reader.tuning.courtesy
    read = [
        (courtesy if _COURTESY.match(text) else 1.0, _rarest(reader.corpus, reader.terms(text, wordy=True)))
        for text in texts
    ]
    read = [(weight, part) for weight, part in read if any(term.matches for term in part)]
    return read if len(read) > 1 else []


def _rarest(corpus: Corpus, terms: list[Term]) -> list[Term]:
    """Return at most so many terms, those with the most weight."""
    most = corpus.tuning.max_query_terms
    if len(terms) <= most:
        return terms
    idf = corpus.idf
    return sorted(terms, key=lambda t: -max((w * float(idf[m]) for m, w in t.matches.items()), default=0.0))[:most]


@dataclass(frozen=True, slots=True, eq=False)
class _Best:
    """Per document the weight of a term's best alternative, in texts and in the name; and the greatest possible one."""

    text: Floats
    name: Floats
    top: float


class _Scorer:
    """Scores lists of terms for one query; what a term matches is remembered, as sentences share the whole's terms."""

    def __init__(self, corpus: Corpus, mask: Bools | None) -> None:
        self._corpus = corpus
        self._mask = mask
        self._known: dict[tuple[int, tuple[tuple[int, float], ...]], _Best] = {}

    def score(self, terms: Sequence[Term]) -> Scores:
        """Return the scores of all documents for these terms."""
        corpus, tuning = self._corpus, self._corpus.tuning
        size = len(corpus.documents)
        total, shares, named = np.zeros(size, np.float32), np.zeros(size, np.float32), np.zeros(size, np.float32)
        mass = 0.0
        for term in terms:
            if not term.matches:
                mass += _missed(corpus, term)
                continue
            best = self._best(term)
            weight = term.weight * (tuning.verb if is_verb(term) else 1.0)
            own = max(best.top, float(corpus.idf[term.own]) if term.own >= 0 else 0.0) * weight
            mass += own
            total += best.text * np.float32(weight)
            named += best.name * np.float32(min(1.0, term.weight * _NAME_GAIN))
            shares += np.minimum(best.text * np.float32(own * _FULLY_MATCHED / max(best.top, _TINY)), np.float32(own))
        shares /= np.float32(max(mass, _TINY))
        values = total * (1 + tuning.name_coverage * np.minimum(named / corpus.name_mass, 1.0))
        values *= 1 - tuning.query_coverage + tuning.query_coverage * shares
        if self._mask is not None:
            values *= self._mask
        values = _with_verbs(corpus, terms, _with_servers(corpus, values))
        return Scores(values, shares, mass * (1 + tuning.name_coverage))

    def _best(self, term: Term) -> _Best:
        key = (term.own, tuple(term.matches.items()))
        if key not in self._known:
            self._known[key] = _best(self._corpus, term)
        return self._known[key]


def _best(corpus: Corpus, term: Term) -> _Best:
    text, name = np.zeros(len(corpus.documents), np.float32), np.zeros(len(corpus.documents), np.float32)
    cap = float(corpus.idf[term.own]) * corpus.tuning.rarity_cap if term.own >= 0 else math.inf
    top = 0.0
    for match, weight in term.matches.items():
        rarity = float(corpus.idf[match])
        gain = weight * (min(rarity, cap) if weight < 1 else rarity)
        documents, impacts = corpus.postings.of(match)
        text[documents] = np.maximum(text[documents], impacts * np.float32(gain))
        top = max(top, gain)
        documents, _ = corpus.names.of(match)
        if len(documents):
            name[documents] = np.maximum(name[documents], np.float32(weight * rarity))
    return _Best(text, name, top)


def _missed(corpus: Corpus, term: Term) -> float:
    """Return the mass of a term that nothing matches: it lowers the share matched, as something was asked for."""
    if term.word.isdigit():
        return 0.0
    total = len(corpus.documents)
    greatest = float(np.log1p((total + 0.5) / 0.5))
    share = corpus.tuning.unknown_cjk if is_cjk(term.word) else corpus.tuning.unknown
    return term.weight * greatest * share


def _with_servers(corpus: Corpus, values: Floats) -> Floats:
    """Add a share of the mean score of a server's documents to those that match themselves."""
    if not corpus.tuning.server_prior:
        return values
    sizes = corpus.sizes
    sums = np.bincount(corpus.segment_of, weights=values, minlength=len(sizes))
    # A server may have no documents at all.
    means = (sums / np.sqrt(np.maximum(sizes, 1) * np.maximum(sizes, _SMALL_SERVER))).astype(np.float32)
    out: Floats = np.where(values > 0, values + np.float32(corpus.tuning.server_prior) * means[corpus.segment_of], 0)
    return out


def _with_verbs(corpus: Corpus, terms: Sequence[Term], values: Floats) -> Floats:
    """Lower documents whose name says another verb than the query's only one."""
    asked = {VERB_CLASS[term.word] for term in terms if is_verb(term)}
    if len(asked) != 1 or not corpus.tuning.verb_contradiction:
        return values
    code = VERB_CODES[asked.pop()]
    contradicts = (corpus.verbs != 0) & (corpus.verbs != code)
    out: Floats = np.where(contradicts, values * np.float32(1 - corpus.tuning.verb_contradiction), values)
    return out
