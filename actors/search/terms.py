"""A query's words to terms: each with its alternatives and its weight. Pure; one `Reader` reads one query.

A term is one need of the query. It is matched by the word typed or by an alternative - a synonym, an abbreviation, a
completion, a correction, a glued or broken form - whichever scores best: the maximum, never the sum.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from actors.search.corpus import Corpus
from actors.search.intents import understood
from actors.search.lexicon import (
    IDIOM_PATTERN,
    OPENING_PATTERNS,
    PHRASE_PATTERNS,
    REAL_WORDS,
    TARGET_PATTERN,
    alternatives,
)
from actors.search.spans import Weighted, argument_words, weighted_words
from actors.search.text import as_written, is_cjk, stem
from actors.search.words.common import CHATTER, LOW_INFORMATION, STOP_WORDS, VERB_CLASS
from actors.search.words.everyday import WEAK
from actors.search.words.products import PRODUCTS

Adder = Callable[[str, float], None]
Weights = dict[int, float]
"""Number of a term of the corpus to the weight of a match, 1 for the word as typed."""

_FEW_WORDS = 4
_MAX_PHRASE_CHARS = 4000
_MAX_COMPLETIONS = 16
_MAX_CORRECTIONS = 4
_WRONG_FIRST_LETTER = 0.75
_CLOSE_TO_BEST = 0.8
_SURE_CORRECTION = 0.7
_HALF_OF_GLUED = 0.7
_PHRASE_MATCH = 2.0
_SAME_FORM = 0.999  # below 1, so that a form may be rarer than its word but not without limit
_SHORT_TAILS = frozenset(("db", "id", "ai", "ui", "js"))


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """One need: the word (empty for a turn of phrase), its own number or -1, alternatives and weight in the query.

    `product`: it is the name of a service, a program or a device. `proper`: it is written as a name is, within a
    sentence.
    """

    word: str
    own: int
    matches: Weights
    weight: float
    product: bool = False
    proper: bool = False


class Reader:
    """Reads one query against one corpus: first the whole, then its sentences, for which it remembers what it found."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self.tuning = corpus.tuning
        self._known = corpus.vocabulary
        self._reduce = stem if self.tuning.stemming else str
        self._alternatives = alternatives(self.tuning.synonym, self.tuning.abbreviation, self.tuning.stemming)
        self._possible: Sequence[tuple[re.Pattern[str], tuple[str, ...]]] = PHRASE_PATTERNS
        self._corrected: dict[str, list[Weighted]] = {}
        self._proper: frozenset[str] = frozenset()

    def terms(self, text: str, *, wordy: bool = False) -> list[Term]:
        """Return the terms of a text; one without matches says that something was asked which nothing here has.

        `wordy`: it is part of a long query, in which words of courtesy count less.
        """
        lowered = text.lower()
        self._proper = argument_words(text)
        text = IDIOM_PATTERN.sub(" ", text)
        pairs = weighted_words(text, self._known, self.tuning)[: self.tuning.max_query_words]
        used = [pair for pair in pairs if pair[0] not in STOP_WORDS] or [p for p in pairs if p[0] in self._known]
        out = self._hyphenated(pairs, lowered) + self._products(pairs)
        meant = self._meant(text, out)
        used = [(word, weight * self.tuning.explained if word in meant else weight) for word, weight in used]
        seen = {term.word for term in out}
        out += self._phrases(lowered)
        target = self._target(lowered)
        for place, (word, weight) in enumerate(used):
            if word not in seen:
                seen.add(word)
                weight *= self._role(word, wordy) * (self.tuning.target if word == target else 1.0)
                out += self._read(word, weight, place, used, seen)
        return out

    def _target(self, lowered: str) -> str:
        """Return the word for what something is to be turned into, or an empty string."""
        found = TARGET_PATTERN.search(lowered) if len(lowered) < _MAX_PHRASE_CHARS else None
        return found.group(1) if found else ""

    def _number(self, word: str) -> int:
        return self.corpus.term_of.get(self._reduce(word), -1)

    def _in_a_name(self, term: int) -> bool:
        return term >= 0 and self.corpus.names.has(term)

    def _names_something(self, word: str) -> bool:
        """Say whether a server, a tool or a product is called that; else what is written as a name is an argument."""
        return word in PRODUCTS or self._in_a_name(self._number(word)) or self._reduce(word) in self.corpus.server_words

    def _is_known(self, word: str) -> bool:
        return word in self._known or self._number(word) >= 0

    def _role(self, word: str, wordy: bool) -> float:
        if word.isdigit():
            return self.tuning.number
        if wordy and word in CHATTER:
            return self.tuning.chatter
        if word in WEAK:
            return self.tuning.weak
        if word in self._proper and not self._names_something(word):
            return self.tuning.argument
        return self.tuning.low_information if word in LOW_INFORMATION else 1.0

    def _term(self, word: str, matches: Weights, weight: float) -> Term:
        return Term(word, self._number(word), matches, weight, word in PRODUCTS, word in self._proper)

    def _products(self, pairs: list[Weighted]) -> list[Term]:
        """Return the products whose names are two words, such as "power bi"."""
        glued = (one + other for (one, _), (other, _) in pairwise(pairs))
        return [self._term(name, self._expanded(name, completing=False), 1.0) for name in glued if name in PRODUCTS]

    def _hyphenated(self, pairs: list[Weighted], lowered: str) -> list[Term]:
        """Return words written with a hyphen whose one half is a stop word, such as "sign-up"."""
        out: list[Term] = []
        if not self.tuning.joining:
            return out
        for (one, _), (other, _) in pairwise(pairs):
            glued = one + other
            stopped = one in STOP_WORDS or other in STOP_WORDS
            if stopped and len(glued) >= 4 and glued in self._known and f"{one}-{other}" in lowered:
                out.append(self._term(glued, self._expanded(glued, completing=False), 1.0))
        return out

    def _meant(self, text: str, out: list[Term]) -> frozenset[str]:
        """Add the needs that turns of phrase stand for, and return the words that these explain."""
        if not self.tuning.intents or len(text) >= _MAX_PHRASE_CHARS:
            return frozenset()
        found = understood(text)
        for need in found.needs:
            matches: Weights = {}
            for word in need:
                for term, weight in self._expanded(word, completing=False).items():
                    matches[term] = max(matches.get(term, 0.0), weight)
            if matches:
                word = need[0] if need[0] in VERB_CLASS else ""
                out.append(Term(word, -1, matches, self.tuning.intents))
        return found.taken

    def _phrases(self, lowered: str) -> list[Term]:
        weight = self.tuning.phrases
        if not weight or len(lowered) >= _MAX_PHRASE_CHARS:
            return []
        out: list[Term] = []
        present = [pair for pair in self._possible if pair[0].search(lowered)]
        if self._possible is PHRASE_PATTERNS:  # the first text read is the whole query: its sentences hold no others
            self._possible = present
        for _, meant in [pair for pair in OPENING_PATTERNS if pair[0].match(lowered)] + present:
            matches = {term: weight * _PHRASE_MATCH for word in meant if (term := self._number(word)) >= 0}
            if matches:
                out.append(Term("", -1, matches, weight))
        return out

    def _read(self, word: str, weight: float, place: int, used: list[Weighted], seen: set[str]) -> list[Term]:
        """Return the term of one word, or those of its pieces if it is several words glued together."""
        if len(word) == 1 and not is_cjk(word) and self._number(word) < 0:
            return []
        if self.tuning.joining and word not in PRODUCTS and not self._is_known(word) and (pieces := self._pieces(word)):
            new = [piece for piece in pieces if piece not in STOP_WORDS and piece not in seen]
            seen.update(new)
            return [self._term(piece, self._piece(piece), weight) for piece in new]
        completing = place == len(used) - 1 and len(used) <= _FEW_WORDS
        matches = self._expanded(word, completing=completing)
        if self.tuning.joining:
            self._add_head(word, matches)
            self._add_neighbours(place, used, matches)
        return [self._term(word, matches, weight)]

    def _piece(self, piece: str) -> Weights:
        found = self._expanded(piece, completing=False)
        return {term: weight * self.tuning.word_break for term, weight in found.items()}

    def _pieces(self, word: str) -> tuple[str, ...]:
        """Return the words glued together in an unknown one, unless it is more likely a typing error."""
        pieces = self._known.pieces(word)
        if pieces and min(map(len, pieces)) < 4:
            corrected = self._corrections(word)
            if corrected and corrected[0][1] > _SURE_CORRECTION:
                return ()
        return pieces

    def _add_head(self, word: str, matches: Weights) -> None:
        """Let a known glued word that is in no name match the name with its first half: "postgresdb"."""
        if len(word) < 7 or not self._is_known(word) or self._in_a_name(self._number(word)):
            return
        for cut in range(4, len(word) - 1):
            tail = word[cut:]
            head = self._number(word[:cut])
            if self._in_a_name(head) and tail in self._known and (len(tail) >= 3 or tail in _SHORT_TAILS):
                matches[head] = max(matches.get(head, 0.0), _HALF_OF_GLUED)
                return

    def _add_neighbours(self, place: int, used: list[Weighted], matches: Weights) -> None:
        """Let a word match the form glued to its neighbour: "event hubs" and "eventhubs"."""
        word = used[place][0]
        glued = [word + used[place + 1][0]] if place + 1 < len(used) else []
        glued += [used[place - 1][0] + word] if place else []
        for both in glued:
            term = self._number(both)
            if term >= 0 and (both in self._known or self._in_a_name(term)):
                matches[term] = max(matches.get(term, 0.0), self.tuning.glued_neighbours)

    def _expanded(self, word: str, *, completing: bool) -> Weights:
        """Return what a word matches. `completing`: it may be unfinished, so names that begin with it match too."""
        out: Weights = {}

        def add(stemmed: str, weight: float) -> None:
            term = self.corpus.term_of.get(stemmed, -1)
            if term >= 0 and out.get(term, 0.0) < weight:
                out[term] = weight

        own = self._reduce(word)
        add(own, 1.0 if own == word else self.tuning.other_form)
        if own != word and self.tuning.other_form < 1:
            add(as_written(word), _SAME_FORM)
        for other, weight in self._alternatives.get(own, {}).items():
            add(other, weight)
        if not self._is_known(word):
            if word not in WEAK and word not in PRODUCTS:
                self._add_unknown(word, add)
        elif completing:
            for other, weight in self._completions(word, names_only=True):
                add(self._reduce(other), weight * self.tuning.prefix_last)
        return out

    def _add_unknown(self, word: str, add: Adder) -> None:
        for other, weight in self._completions(word, names_only=False):
            add(self._reduce(other), weight)
        for other, weight in () if word in REAL_WORDS else self._corrections(word):
            add(self._reduce(other), weight)
            if weight > 0.5:
                for meant, share in self._alternatives.get(self._reduce(other), {}).items():
                    add(meant, share * weight)

    def _completions(self, word: str, *, names_only: bool) -> list[Weighted]:
        """Return longer words that begin with this one, words of names before others, the least longer first."""
        if not self.tuning.prefix:
            return []
        found: list[Weighted] = []
        for other in self._known.completions(word):
            named = self._in_a_name(self._number(other))
            if named or not names_only:
                weight = self.tuning.prefix * (0.55 + 0.45 * len(word) / len(other))
                found.append((other, weight if named else weight * self.tuning.prefix_unnamed))
        return sorted(found, key=lambda pair: -pair[1])[:_MAX_COMPLETIONS]

    def _corrections(self, word: str) -> list[Weighted]:
        """Return known words this one may be a misspelling of, best first, all nearly as good as the best."""
        if word not in self._corrected:
            found = [(other, self._similarity(word, other, edits)) for other, edits in self._known.corrections(word)]
            found = [pair for pair in found if pair[1] > 0]
            found.sort(key=lambda pair: (-pair[1], -self._frequency(pair[0]), pair[0]))
            self._corrected[word] = [p for p in found if p[1] >= found[0][1] * _CLOSE_TO_BEST][:_MAX_CORRECTIONS]
        return self._corrected[word]

    def _similarity(self, word: str, other: str, edits: int) -> float:
        """Return the weight of a correction: the first letter is rarely wrong."""
        weight = self.tuning.typo_one if edits == 1 else self.tuning.typo_two
        if other[0] != word[0]:
            weight *= _WRONG_FIRST_LETTER
        return weight * (1 - edits / len(word))

    def _frequency(self, word: str) -> int:
        term = self._number(word)
        return int(self.corpus.counts[term]) if term >= 0 else 0


def is_object(term: Term) -> bool:
    """Say whether a term is a thing that something is to be done with, and no verb, number or word of little weight."""
    word = term.word
    return not (is_verb(term) or word.isdigit() or word in WEAK or word in LOW_INFORMATION)


def is_verb(term: Term) -> bool:
    """Say whether a term is a verb of doing something with a thing; names agree on those less than on nouns."""
    return term.word in VERB_CLASS
