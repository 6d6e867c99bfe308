"""Documents scored for a list of terms. Pure arithmetic on arrays of one number per document.

Of a term's alternatives the best counts (never their sum). A document gains by how much of the query it matches and by
how much of its own name the query says; it gains a little from its server's other documents, and more if the query
names its server; it loses a little when its name does the opposite of the query's verb.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from actors.search import tuning
from actors.search.certainty import Evidence, chances
from actors.search.index import Index
from actors.search.postings import Bools, Floats
from actors.search.query import clauses, is_courtesy, sentences
from actors.search.segment import VERB_CODES
from actors.search.terms import Reader, Term
from actors.search.text import is_cjk, stem
from actors.search.words.tables import VERB_CLASS

_FULLY_MATCHED = 1.3  # a term counts as matched in full from 1/1.3 of its best possible weight on
_SMALL_SERVER = 4
_NAME_GAIN = 1.2  # a lowered term explains a name a little better than its weight says
_TINY = 1e-6

_TALKED_ABOUT = 0.2
_VERBS_ALONE = 0.5
_SAME_THING = 0.74  # from this weight on an alternative is a spelling of the word; below, another word


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Per document its score, the share of the query (0..1) it matches, and the chance (0..1) that it is what is meant.

    `perfect` is the score of a document that matches everything; `evidence` has what each reading of the query found.

    Where meanings were compared, too, `values` holds both and `words` what the words alone give; `near` marks the
    nearest in meaning, which need not match a word.
    """

    values: Floats
    matched: Floats
    perfect: float
    chances: Floats
    evidence: tuple[Evidence, ...] = ()
    words: Floats | None = None
    near: Bools | None = None

    def matches_enough(self, least: float) -> Bools:
        """Return which documents match at least this share of the query, or are near in meaning."""
        out = (self.values > 0) & (self.matched >= least)
        return out if self.near is None else out | self.near


@dataclass(frozen=True, slots=True, eq=False)
class _Best:
    """Per document the weight of a term's best alternative, in texts and in the name; and the greatest possible one."""

    text: Floats
    name: Floats
    top: float


class Scorer:
    """Scores lists of terms for one query; what a term matches is remembered, as sentences share the whole's terms."""

    def __init__(self, index: Index, mask: Bools | None) -> None:
        self._index = index
        self._mask = mask
        self._known: dict[tuple[int, tuple[tuple[int, float], ...]], _Best] = {}

    def score(self, terms: Sequence[Term]) -> Scores:
        index = self._index
        size = len(index.documents)
        total, shares, named = np.zeros(size, np.float32), np.zeros(size, np.float32), np.zeros(size, np.float32)
        mass, asked, unknown = 0.0, 0.0, 0.0
        for term in terms:
            if not term.matches:
                mass += _missing_mass(index, term)
                unknown += _greatest_idf(index) * term.weight if term.thing and not term.proper else 0.0
                continue
            best = self._best(term)
            weight = term.weight * (tuning.VERB if term.verb else 1.0)
            own = max(best.top, float(index.idf[term.own]) if term.own >= 0 else 0.0) * weight
            mass += own
            total += best.text * np.float32(weight)
            named += best.name * np.float32(min(1.0, term.weight * _NAME_GAIN))
            shares += np.minimum(best.text * np.float32(own * _FULLY_MATCHED / max(best.top, _TINY)), np.float32(own))
            asked += own if term.thing else 0.0
        shares /= np.float32(max(mass, _TINY))
        values = total * (1 + tuning.NAME_COVERAGE * np.minimum(named / index.name_mass, 1.0))
        values *= 1 - tuning.QUERY_COVERAGE + tuning.QUERY_COVERAGE * shares
        if self._mask is not None:
            values *= self._mask
        values = _with_verbs(index, terms, _with_servers(index, _with_named(index, terms, values)))
        elsewhere = _elsewhere(index, terms)
        perfect = mass * (1 + tuning.NAME_COVERAGE)
        evidence = Evidence(
            share=min(1.0, float(values.max(initial=0.0)) / max(perfect, _TINY)),
            terms=len(terms),
            # verbs alone are hardly a request: "create", "what did I do yesterday"
            unknown=unknown / (asked + unknown) if asked + unknown else _VERBS_ALONE,
            elsewhere=elsewhere,
            said=index.has_said,
        )
        return Scores(values, shares, perfect, chances(values, evidence), (evidence,))

    def _best(self, term: Term) -> _Best:
        key = (term.own, tuple(term.matches.items()))
        if key not in self._known:
            self._known[key] = _best(self._index, term)
        return self._known[key]


def _best(index: Index, term: Term) -> _Best:
    text, name = np.zeros(len(index.documents), np.float32), np.zeros(len(index.documents), np.float32)
    cap = float(index.idf[term.own]) * tuning.RARITY_CAP if term.own >= 0 else math.inf
    top = 0.0
    for place, (match, weight) in enumerate(term.matches.items()):
        rarity = float(index.idf[match])
        gain = weight * (min(rarity, cap) if weight < 1 else rarity)
        documents, impacts = index.postings.of(match)
        gained = impacts * np.float32(gain)
        if index.gain[match] > 1:
            gained[~index.has_said[documents]] *= index.gain[match]
        text[documents] = np.maximum(text[documents], gained) if place else gained
        top = max(top, gain)
        documents, _ = index.names.of(match)
        if len(documents):
            name[documents] = np.maximum(name[documents], np.float32(weight * rarity))
    return _Best(text, name, top)


def _elsewhere(index: Index, terms: Sequence[Term]) -> Floats:
    """Return per document which share (0..1) of the products that the query names it does not mention.

    What is mentioned in a text, but neither in the name nor in that of the server, is perhaps only talked about.
    """
    missing = np.zeros(len(index.documents), np.float32)
    named = [term for term in terms if term.product]
    for term in named:
        absent = np.ones(len(missing), np.float32)
        for match, weight in term.matches.items():
            if weight >= _SAME_THING:
                texts, _ = index.postings.of(match)
                absent[texts] = np.minimum(absent[texts], _TALKED_ABOUT)
                absent[index.names.of(match)[0]] = 0
        if term.own >= 0:
            absent[
                np.array([stem(term.word) in segment.server_words for segment in index.segments])[index.segment_of]
            ] = 0
        missing += absent
    return missing / np.float32(max(1, len(named)))


def _missing_mass(index: Index, term: Term) -> float:
    """Return the mass of a term that nothing matches: it lowers the share matched, as something was asked for."""
    if term.word.isdigit():
        return 0.0
    share = tuning.UNKNOWN_CJK if is_cjk(term.word) else tuning.UNKNOWN
    return term.weight * _greatest_idf(index) * share


def _greatest_idf(index: Index) -> float:
    return float(np.log1p((len(index.documents) + 0.5) / 0.5))


def _with_named(index: Index, terms: Sequence[Term], values: Floats) -> Floats:
    """Raise the documents of servers that the query names in full: who says "in redis" means redis."""
    said = {stem(term.word) for term in terms if term.own >= 0 and term.weight > tuning.IN_QUOTES} & index.server_words
    if not said:
        return values
    named = [bool(segment.server_words) and segment.server_words <= said for segment in index.segments]
    if not any(named):
        return values
    out: Floats = np.where(
        np.array(named, np.bool_)[index.segment_of], values * np.float32(1 + tuning.NAMED_SERVER), values
    )
    return out


def _with_servers(index: Index, values: Floats) -> Floats:
    """Add a share of the mean score of a server's documents to those that match themselves."""
    held = index.sizes > 0  # a server may have no documents at all
    sizes, firsts = index.sizes[held], np.array(index.firsts, np.intp)[held]
    sums = np.add.reduceat(values, firsts, dtype=np.float64) if len(firsts) else np.zeros(0)
    means = (sums / np.sqrt(sizes * np.maximum(sizes, _SMALL_SERVER))).astype(np.float32)
    gains = np.repeat(np.float32(tuning.SERVER_PRIOR) * means, sizes)
    gains += values
    gains *= values > 0
    out: Floats = gains
    return out


def _with_verbs(index: Index, terms: Sequence[Term], values: Floats) -> Floats:
    """Lower documents whose name says another verb than the query's only one."""
    asked = {VERB_CLASS[term.word] for term in terms if term.verb}
    if len(asked) != 1:
        return values
    code = VERB_CODES[asked.pop()]
    contradicts = (index.verbs != 0) & (index.verbs != code)
    out: Floats = np.where(contradicts, values * np.float32(1 - tuning.VERB_CONTRADICTION), values)
    return out


# A query read as a whole, as its sentences and as its wishes, and what documents score for these together.
#
# In a long query every sentence is scored on its own; in one of several wishes ("find it and tell them") every wish is.

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
