"""Which words stand for which: the word lists as a map of stems, weighted by a `Tuning`.

Alternatives of one word are combined by their maximum, never their sum, so a generous list cannot outweigh a match of
the word itself; their weight stays below that of the word typed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from actors.search.language.text import stem
from actors.search.words.phrases import OPENINGS, PHRASES
from actors.search.words.tables import ABBREVIATIONS, RULES, SYNONYMS, WEAK

_SEVERAL_MEANINGS = 0.85
_MAX_ALTERNATIVE = 0.9

PHRASE_PATTERNS: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (re.compile(pattern), meant) for pattern, meant in PHRASES
)
"""Compiled turns of phrase and the words they mean."""
_ANY_PHRASE = re.compile("|".join(f"(?:{pattern})" for pattern, _ in PHRASES))

OPENING_PATTERNS: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (re.compile(pattern), meant) for pattern, meant in OPENINGS
)
"""The same for the beginning of a text."""

REAL_WORDS: frozenset[str] = frozenset(re.findall(r"[a-z]{2,}", " ".join((*SYNONYMS, *ABBREVIATIONS, *RULES)))) | WEAK
"""Words of our own lists. Who writes one of them means it: it is no misspelling of a word that a catalogue has."""


Phrases = Sequence[tuple[re.Pattern[str], tuple[str, ...]]]


def phrases_in(text: str, among: Phrases = PHRASE_PATTERNS) -> Phrases:
    """Return the turns of phrase that a lower-case text has; few texts have any, which one look tells."""
    if among is PHRASE_PATTERNS and not _ANY_PHRASE.search(text):
        return ()
    return [pair for pair in among if pair[0].search(text)]


@lru_cache(maxsize=16)
def alternatives(synonym: float, abbreviation: float) -> Mapping[str, Mapping[str, float]]:
    """Return stem -> {stem of an alternative: weight below 1}; a weight of 0 leaves that list out."""
    out: dict[str, dict[str, float]] = {}

    def add(written: str, meant: str, weight: float) -> None:
        one, other = stem(written), stem(meant)
        if one != other and weight > 0:
            known = out.setdefault(one, {})
            known[other] = min(_MAX_ALTERNATIVE, max(known.get(other, 0.0), weight))

    for line in SYNONYMS:
        group = line.split()
        for written in group:
            for meant in group:
                add(written, meant, synonym)
    for line in ABBREVIATIONS:
        written, _, text = line.partition("=")
        meanings = text.split()
        for meant in meanings:
            add(written, meant, abbreviation * (1.0 if len(meanings) == 1 else _SEVERAL_MEANINGS))
    return out
