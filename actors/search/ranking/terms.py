"""A query's words to terms: each with its alternatives and its weight. Pure; one `Reader` reads one query.

A term is one need of the query. It is matched by the word typed or by an alternative - a synonym, an abbreviation, a
completion, a correction, a glued or broken form - whichever scores best: the maximum, never the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from actors.search import tuning
from actors.search.documents.index import Index
from actors.search.language.intents import interpret
from actors.search.language.lexicon import phrases_in
from actors.search.language.spans import Weighted, named_words, topic_words, weighted_words, without_quotes
from actors.search.language.text import is_cjk, stem
from actors.search.ranking.forms import NO_TERM, Forms, Weights
from actors.search.words.tables import LOW_INFORMATION, PRODUCTS, STOP_WORDS, VERB_CLASS, WEAK

_FEW_WORDS = 4
_MAX_PHRASE_CHARS = 4000
_HALF_OF_GLUED = 0.75
_PHRASE_MATCH = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """One need: the word (empty for a turn of phrase), its own number or -1, alternatives and weight in the query.

    `product`: it is the name of a service, a program or a device. `proper`: it is written as a name is, within a
    sentence. `verb`: of doing something with a thing; names agree on those less than on nouns. `thing`: something is to
    be done with it; it is no verb, number or word of little weight.
    """

    word: str
    own: int
    matches: Weights
    weight: float
    product: bool = False
    proper: bool = False
    verb: bool = False
    thing: bool = True


class Reader:
    """Reads one query against one index: first the whole, then its sentences, for which it remembers what it found."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._forms = Forms(index)
        self._proper: frozenset[str] = frozenset()
        self._topics: frozenset[str] = frozenset()

    def terms(self, text: str) -> list[Term]:
        """Return the terms of a text; one without matches says that something was asked which nothing here has."""
        unquoted, known = without_quotes(text).lower(), self._forms.written
        topics = topic_words(text)
        self._proper = topics | named_words(text)
        pairs = weighted_words(text, known)[: tuning.MAX_QUERY_WORDS]
        used = [pair for pair in pairs if pair[0] not in STOP_WORDS] or [pair for pair in pairs if pair[0] in known]
        out = self._products(pairs)
        meant = self._meant(text, out)
        has_object = any(not term.word and term.thing for term in out)
        self._topics = topics if "about" in meant and has_object else frozenset()
        seen = {term.word for term in out}
        out += self._phrases(unquoted)
        glued = [NO_TERM, *self._forms.compounds(used), NO_TERM]  # with the word before
        for place, (word, weight) in enumerate(used):
            if word not in seen:
                seen.add(word)
                if word in meant:
                    weight *= tuning.EXPLAINED
                weight *= self._role(word)
                last = place == len(used) - 1 and len(used) <= _FEW_WORDS
                out += self._read(word, weight, seen, completing=last, glued=glued[place : place + 2])
        return out

    def _names_something(self, word: str) -> bool:
        """Say whether a server, a tool or a product is called that; else what is written as a name is an argument.

        Of what is known, noted or said about something the words of tools are no names either.
        """
        forms = self._forms
        named = word in PRODUCTS or stem(word) in self.index.server_words
        return named or (word not in self._topics and forms.is_in_a_name(forms.number(word)))

    def _role(self, word: str) -> float:
        if word.isdigit():
            return tuning.NUMBER
        if word in WEAK:
            return tuning.WEAK
        if word in self._proper and not self._names_something(word):
            return tuning.ARGUMENT * (tuning.EXPLAINED if word in self._topics else 1.0)
        return tuning.LOW_INFORMATION if word in LOW_INFORMATION else 1.0

    def _term(self, word: str, own: int, matches: Weights, weight: float) -> Term:
        verb = word in VERB_CLASS
        light = verb or word.isdigit() or word in WEAK or word in LOW_INFORMATION
        named = word in PRODUCTS and weight > tuning.IN_QUOTES  # in an address or a title it asks for nothing
        return Term(word, own, matches, weight, named, word in self._proper, verb, not light)

    def _products(self, pairs: list[Weighted]) -> list[Term]:
        """Return the products whose names are two words, such as "power bi"."""
        named = [one + other for (one, _), (other, _) in pairwise(pairs) if one + other in PRODUCTS]
        return [self._term(name, self._forms.number(name), self._forms.of(name), 1.0) for name in named]

    def _meant(self, text: str, out: list[Term]) -> frozenset[str]:
        """Add the needs that turns of phrase stand for, and return the words that these explain."""
        if len(text) >= _MAX_PHRASE_CHARS:
            return frozenset()
        meaning = interpret(text)
        for need in meaning.needs:
            matches: Weights = {}
            for word in need:
                for term, weight in self._forms.of(word).items():
                    matches[term] = max(matches.get(term, 0.0), weight)
            if matches:
                verb = need[0] in VERB_CLASS
                word = need[0] if verb else ""
                out.append(Term(word, NO_TERM, matches, tuning.INTENTS, verb=verb, thing=not verb))
        return meaning.taken

    def _phrases(self, lowered: str) -> list[Term]:
        if len(lowered) >= _MAX_PHRASE_CHARS:
            return []
        out: list[Term] = []
        for meant in phrases_in(lowered):
            matches = {
                term: tuning.PHRASES * _PHRASE_MATCH for word in meant if (term := self._forms.number(word)) >= 0
            }
            if matches:
                out.append(Term("", NO_TERM, matches, tuning.PHRASES))
        return out

    def _read(self, word: str, weight: float, seen: set[str], *, completing: bool, glued: Sequence[int]) -> list[Term]:
        """Return the term of one word, or those of its pieces if it is several words glued together."""
        own = self._forms.number(word)
        if len(word) == 1 and own < 0 and not is_cjk(word):
            return []
        unknown = own < 0 and word not in self._forms.written and word not in PRODUCTS
        if unknown and (pieces := self._forms.pieces(word)):
            new = [piece for piece in pieces if piece not in STOP_WORDS and piece not in seen]
            seen.update(new)
            return [self._term(piece, self._forms.number(piece), self._forms.of(piece), weight) for piece in new]
        matches = self._forms.of(word, completing=completing)
        head = self._forms.head(word, own)
        if head >= 0:
            matches[head] = max(matches.get(head, 0.0), _HALF_OF_GLUED)
        for term in reversed(glued):
            if term >= 0:
                matches[term] = max(matches.get(term, 0.0), tuning.GLUED_NEIGHBOURS)
        return [self._term(word, own, matches, weight)]
