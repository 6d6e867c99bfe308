"""The words that occur in a catalogue, as they are written: known or not, completed, corrected, taken apart. Immutable.

A word is known as long as any server uses it. Everything here is sorted, so that the same catalogue gives the same
corrections whatever the order in which its servers came and went.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from rapidfuzz import process
from rapidfuzz.distance import OSA

from actors.search.text import is_cjk

_MIN_CORRECTED_CHARS = 4
_ONE_EDIT_CHARS = 6
_MIN_WRONG_FIRST_CHARS = 6
_LAST_CHAR = "\U0010ffff"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MIN_BROKEN_CHARS = 6
_MAX_BROKEN_CHARS = 40
_MAX_PIECES = 5
_MAX_COMPLETIONS = 200
_SHORT_PIECES = frozenset(("id", "ip", "db", "ai", "pr", "to", "by", "in", "of", "url"))


Shape = tuple[int, str]
"""Length and first letter of a word."""


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """Words with the number of servers that use them; the same words sorted; and by shape, for corrections."""

    holders: Mapping[str, int] = field(default_factory=dict)
    ordered: Sequence[str] = ()
    by_shape: Mapping[Shape, Sequence[str]] = field(default_factory=dict)

    def __contains__(self, word: object) -> bool:
        return word in self.holders

    def replace(self, removed: Sequence[Collection[str]], added: Sequence[Collection[str]]) -> Vocabulary:
        holders = Counter(self.holders)
        for known in added:
            holders.update(known)
        for known in removed:
            holders.subtract(known)
        changed = set[str]().union(*added, *removed)
        fresh = changed - self.holders.keys()
        lost = {word for word in changed if not holders[word]}
        for word in lost:
            del holders[word]
        if not fresh and not lost:
            return Vocabulary(holders, self.ordered, self.by_shape)
        return Vocabulary(holders, _merge(self.ordered, lost, fresh), self._shapes(lost, fresh))

    def _shapes(self, lost: set[str], fresh: set[str]) -> Mapping[Shape, Sequence[str]]:
        by_shape = dict(self.by_shape)
        groups: dict[Shape, tuple[set[str], set[str]]] = {}
        for place, changes in enumerate((lost, fresh)):
            for word in changes:
                if len(word) >= _MIN_CORRECTED_CHARS - 1 and not word.isdigit() and not is_cjk(word):
                    groups.setdefault((len(word), word[0]), (set(), set()))[place].add(word)
        for shape, (out, come) in groups.items():
            by_shape[shape] = _merge(by_shape.get(shape, ()), out, come)
        return by_shape

    def completions(self, word: str) -> list[str]:
        """Return longer words that begin with this one, at most 200, in alphabetical order."""
        if len(word) < 3:
            return []
        low = bisect_right(self.ordered, word)
        high = bisect_right(self.ordered, word + _LAST_CHAR, low)
        return list(self.ordered[low : min(high, low + _MAX_COMPLETIONS)])

    def corrections(self, word: str) -> list[tuple[str, int]]:
        """Return words at most one edit away (two from seven letters on) with their distance, nearest first.

        An edit is a letter too many, missing, wrong, or two neighbours swapped (optimal string alignment). A wrong
        first letter is rare: it is tried in words of six letters on, as the only edit.
        """
        length = len(word)
        if length < _MIN_CORRECTED_CHARS:
            return []
        edits = 1 if length <= _ONE_EDIT_CHARS else 2
        candidates: list[str] = []
        for other in range(length - edits, length + edits + 1):
            candidates += self.by_shape.get((other, word[0]), ())
        near = process.extract(word, candidates, scorer=OSA.distance, score_cutoff=edits, limit=8)
        corrections = [(other, int(distance)) for other, distance, _ in near]
        if length >= _MIN_WRONG_FIRST_CHARS and not any(distance == 1 for _, distance in corrections):
            corrections = [(other, 1) for other in self._wrong_first_letter(word)] + corrections
        return corrections

    def _wrong_first_letter(self, word: str) -> list[str]:
        swapped = word[1] + word[0] + word[2:]
        forms = [word[1:], swapped, *(c + word for c in _LETTERS), *(c + word[1:] for c in _LETTERS)]
        return sorted({form for form in forms if form in self.holders and form != word})

    def pieces(self, word: str) -> tuple[str, ...]:
        """Take a glued word apart into the fewest known words, two to five; return nothing if that is impossible."""
        length = len(word)
        if not _MIN_BROKEN_CHARS <= length <= _MAX_BROKEN_CHARS:
            return ()
        best: list[tuple[int, tuple[str, ...]] | None] = [(0, ()), *[None] * length]
        for start in range(length):
            here = best[start]
            if here is None:
                continue
            for end in range(start + 2, length + 1):
                piece = word[start:end]
                if piece not in self.holders or (len(piece) < 3 and piece not in _SHORT_PIECES):
                    continue
                cost = here[0] + (1 if len(piece) >= 3 else 3)
                known = best[end]
                if known is None or cost < known[0]:
                    best[end] = (cost, (*here[1], piece))
        whole = best[length]
        return whole[1] if whole and 1 < len(whole[1]) <= _MAX_PIECES else ()


def _merge(words: Sequence[str], lost: set[str], fresh: set[str]) -> Sequence[str]:
    """Return the sorted words without some and with others; sorting two sorted runs is one pass."""
    kept = [word for word in words if word not in lost] if lost else list(words)
    kept += sorted(fresh)
    kept.sort()
    return kept
