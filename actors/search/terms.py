"""A query's words to terms: each with its alternatives and its weight. Pure; one `Reader` reads one query.

A term is one need of the query. It is matched by the word typed or by an alternative - a synonym, an abbreviation, a
completion, a correction, a glued or broken form - whichever scores best: the maximum, never the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter

from actors.search import tuning
from actors.search.index import Index
from actors.search.paraphrase import REAL_WORDS, alternatives, interpret, phrases_in
from actors.search.query import Weighted, named_words, topic_words, weighted_words, without_quotes
from actors.search.text import as_written, is_cjk, stem
from actors.search.words.tables import LOW_INFORMATION, PRODUCTS, STOP_WORDS, VERB_CLASS, WEAK

# What a word of a query can stand for in one index: itself, its other forms, what it may be short or a mistake for.
#
# Whatever is found is a term of the index with a weight below that of the word itself. Corrections are remembered,
# as the sentences of a query share its words.


Weights = dict[int, float]
"""Number of a term of the index to the weight of a match, 1 for the word as typed."""

NO_TERM = -1
"""The number of a word that no document has."""

_MAX_COMPLETIONS = 16
_MAX_CORRECTIONS = 4
_CLOSE_TO_BEST = 0.8
_SURE_CORRECTION = 0.7
_SAME_FORM = 0.999  # below 1, so that a form may be rarer than its word but not without limit
_SURE_MEANING = 0.5  # a correction below does not stand for its synonyms, too
_MIN_HEADED_CHARS = 7
_SHORT_TAILS = frozenset(("db", "id", "ai", "ui", "js"))


class Forms:
    """The forms of words, as the documents of one index have them."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._vocabulary = index.vocabulary
        self.written = index.vocabulary.holders
        """The words of the index, each as it is written there."""
        self._alternatives = alternatives()
        self._corrected: dict[str, list[Weighted]] = {}

    def number(self, word: str) -> int:
        """Return the number of a word's term, `NO_TERM` if no document has it."""
        return self._index.term_of.get(stem(word), NO_TERM)

    def is_in_a_name(self, term: int) -> bool:
        return term >= 0 and self._index.names.has(term)

    def of(self, word: str, *, completing: bool = False) -> Weights:
        """Return what a word matches. `completing`: it may be unfinished, so names that begin with it match too."""
        term_of, own = self._index.term_of, stem(word)
        forms: list[Weighted] = [(own, 1.0 if own == word else tuning.OTHER_FORM)]
        if own != word:
            forms.append((as_written(word), _SAME_FORM))
        forms += self._alternatives.get(own, {}).items()
        if word not in self.written and own not in term_of:
            if word not in WEAK and word not in PRODUCTS:
                forms += self._completions(word, names_only=False)
                forms += () if word in REAL_WORDS else self._corrected_forms(word)
        elif completing:
            forms += self._completions(word, names_only=True)
        out: Weights = {}
        for form, weight in forms:
            term = term_of.get(form, NO_TERM)
            if term >= 0 and out.get(term, 0.0) < weight:
                out[term] = weight
        return out

    def pieces(self, word: str) -> Sequence[str]:
        """Return the words glued together in an unknown one, unless it is more likely a typing error."""
        pieces = self._vocabulary.pieces(word)
        if pieces and min(map(len, pieces)) < 4:
            corrected = self._corrections(word)
            if corrected and corrected[0][1] > _SURE_CORRECTION:
                return ()
        return pieces

    def meant(self, word: str) -> str:
        """Return the word of the index that an unknown one is surely a misspelling of; the word itself if none is."""
        if word in self.written or word in REAL_WORDS or word in PRODUCTS or self.number(word) >= 0:
            return word
        corrected = () if self._vocabulary.pieces(word) else self._corrections(word)
        return corrected[0][0] if corrected and corrected[0][1] > _SURE_CORRECTION else word

    def head(self, word: str, own: int) -> int:
        """Return the first half of a known glued word that is in no name, if that half is in one: "postgresdb"."""
        if len(word) < _MIN_HEADED_CHARS or (own < 0 and word not in self.written) or self.is_in_a_name(own):
            return NO_TERM
        for cut in range(4, len(word) - 1):
            tail = word[cut:]
            head = self.number(word[:cut])
            if self.is_in_a_name(head) and tail in self.written and (len(tail) >= 3 or tail in _SHORT_TAILS):
                return head
        return NO_TERM

    def compounds(self, words: Sequence[Weighted]) -> list[int]:
        """Return of each two neighbours the term they are as one word, if that is known: "event hubs", "eventhubs"."""
        out: list[int] = []
        for (one, _), (other, _) in pairwise(words):
            both = one + other
            term = self._index.term_of.get(stem(both), NO_TERM)
            is_word = term >= 0 and (both in self.written or self._index.names.has(term))
            out.append(term if is_word else NO_TERM)
        return out

    def _corrected_forms(self, word: str) -> list[Weighted]:
        """Return the stems of what a word may be a misspelling of, and of what that may stand for."""
        out: list[Weighted] = []
        for other, weight in self._corrections(word):
            own = stem(other)
            out.append((own, weight))
            if weight > _SURE_MEANING:
                out += [(meant, share * weight) for meant, share in self._alternatives.get(own, {}).items()]
        return out

    def _completions(self, word: str, *, names_only: bool) -> list[Weighted]:
        """Return the stems of longer words that begin with this one, the least longer first."""
        out = [
            (stem(other), tuning.PREFIX * (0.55 + 0.45 * len(word) / len(other)))
            for other in self._vocabulary.completions(word)
            if not names_only or self.is_in_a_name(self.number(other))
        ]
        return sorted(out, key=itemgetter(1), reverse=True)[:_MAX_COMPLETIONS]

    def _corrections(self, word: str) -> list[Weighted]:
        """Return known words this one may be a misspelling of, best first, all nearly as good as the best."""
        if word not in self._corrected:
            weight = {1: tuning.TYPO_ONE, 2: tuning.TYPO_TWO}
            near = self._vocabulary.corrections(word)
            similar = [(other, weight[edits] * (1 - edits / len(word))) for other, edits in near]
            similar.sort(key=lambda pair: (-pair[1], -self._frequency(pair[0]), pair[0]))
            self._corrected[word] = [p for p in similar if p[1] >= similar[0][1] * _CLOSE_TO_BEST][:_MAX_CORRECTIONS]
        return self._corrected[word]

    def _frequency(self, word: str) -> int:
        term = self.number(word)
        return int(self._index.counts[term]) if term >= 0 else 0


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
