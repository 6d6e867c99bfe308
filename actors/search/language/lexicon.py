"""Which words stand for which: the word lists as a map of stems.

Alternatives of one word are combined by their maximum, never their sum, so a generous list cannot outweigh a match of
the word itself; their weight stays below that of the word typed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from actors.search import tuning
from actors.search.language.text import stem
from actors.search.words.tables import ABBREVIATIONS, PHRASES, RULES, SYNONYMS, WEAK

_SEVERAL_MEANINGS = 0.85
_MAX_ALTERNATIVE = 0.9

_PHRASES = tuple((re.compile(phrase), meant) for phrase, meant in PHRASES)
_ANY_PHRASE = re.compile("|".join(f"(?:{phrase})" for phrase, _ in PHRASES))

REAL_WORDS: frozenset[str] = frozenset(re.findall(r"[a-z]{2,}", " ".join((*SYNONYMS, *ABBREVIATIONS, *RULES)))) | WEAK
"""Words of our own lists. Who writes one of them means it: it is no misspelling of a word that a catalogue has."""


def phrases_in(text: str) -> list[tuple[str, ...]]:
    """Return what the turns of phrase of a lower-case text mean; few texts have any, which one look tells."""
    return [meant for pattern, meant in _PHRASES if pattern.search(text)] if _ANY_PHRASE.search(text) else []


@cache
def alternatives() -> Mapping[str, Mapping[str, float]]:
    """Return stem -> {stem of an alternative: weight below 1}."""
    out: dict[str, dict[str, float]] = {}

    def add(written: str, meant: str, weight: float) -> None:
        one, other = stem(written), stem(meant)
        if one != other:
            known = out.setdefault(one, {})
            known[other] = min(_MAX_ALTERNATIVE, max(known.get(other, 0.0), weight))

    for line in SYNONYMS:
        group = line.split()
        for written in group:
            for meant in group:
                add(written, meant, tuning.SYNONYM)
    for line in ABBREVIATIONS:
        written, _, text = line.partition("=")
        meanings = text.split()
        for meant in meanings:
            add(written, meant, tuning.ABBREVIATION * (1.0 if len(meanings) == 1 else _SEVERAL_MEANINGS))
    return out
