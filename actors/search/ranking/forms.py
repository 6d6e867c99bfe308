"""What a word of a query can stand for in one index: itself, its other forms, what it may be short or a mistake for.

Pure. Whatever is found is a term of the index with a weight below that of the word itself. Corrections are remembered,
as the sentences of a query share its words.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from operator import itemgetter

from actors.search import tuning
from actors.search.documents.index import Index
from actors.search.language.lexicon import REAL_WORDS, alternatives
from actors.search.language.spans import Weighted
from actors.search.language.text import as_written, stem
from actors.search.words.tables import PRODUCTS, WEAK

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
