"""A query's sentences, and its wishes: "find the venue and tell the team" asks for two tools. Pure.

A query is divided where a sentence ends, and where "and", "then" or a comma is followed by another request: a verb of
doing something, or a question. What a wish leaves to a pronoun ("send it to them") it takes from the one before.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from actors.search.words.tables import ACTIONS, FILLERS, QUESTIONS, STOP_WORDS

_MAX_CLAUSES = 6
_MAX_CHARS = 1000
_MIN_WORDS = 2
_ALSO = r"(?:then|also|if so|if it is|if yes|afterwards|please|finally)"
_BORDER = re.compile(
    rf"[.;!?]\s+|\n+|\s*,?\s+(?:and|then|but|so|plus)\s+(?:{_ALSO}\s*,?\s+){{0,3}}|,\s+(?:then\s+)?", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"(?<=[.!?;:\n])\s+|\n+")
_COURTESY = re.compile(
    r"\W{0,8}("
    r"hi|hey|hello|dear|good (morning|afternoon|evening|day)|greetings|thanks?|many thanks|cheers|sorry|apologies"
    r"|let me know|feel free|looking forward|no (rush|hurry|worries)|please (keep|be|feel|note)"
    r"|i(('d| would) (really )?(be|appreciate)|('m| am|'ve| have| was)\b)|we('re| are|'ve| have)\b|my\b|the team\b"
    r"|as (we|i|you|discussed)\b|so,? (i|we|my|our)\b|if (there|you|any|that|it|this)\b|it('s| is| was)\b|this is\b"
    r"|just so\b|btw\b|by the way\b|not sure\b|honestly\b|basically,? (i|we)\b"
    r")",
    re.IGNORECASE,
)
"""How a sentence begins that greets, thanks, or tells the circumstances of what is asked."""
_QUOTE = re.compile(r"\"[^\"]{1,300}\"|\u201c[^\u201d]{1,300}\u201d")
_PRONOUNS = re.compile(r"\b(it|its|them|they|there|those|these|this|that|one|ones|each|both|him|her)\b", re.IGNORECASE)
_WORD = re.compile(r"[a-z]+")


@dataclass(frozen=True, slots=True)
class Clause:
    """One wish; `refers` says that it leaves something to what was said before."""

    text: str
    refers: bool


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, without empty ones; a colon and a semicolon end one, too."""
    return [part for part in _SENTENCE_END.split(text) if part.strip()]


def is_courtesy(sentence: str) -> bool:
    return _COURTESY.match(sentence) is not None


def clauses(query: str) -> Sequence[Clause]:
    """Return the wishes of a query, at most six; nothing if it has but one, or is too long to be divided."""
    if len(query) > _MAX_CHARS or not _BORDER.search(query):
        return ()
    parts: list[str] = []
    start = 0
    quoted = [quote.span() for quote in _QUOTE.finditer(query)]
    for border in _BORDER.finditer(query):
        if any(low < border.start() < high for low, high in quoted):
            continue
        if _asks(query[border.end() :]) and _says_enough(query[start : border.start()]):
            parts.append(query[start : border.start()])
            start = border.end()
    parts.append(query[start:])
    wishes = [part for part in parts if _says_enough(part)]
    if not 1 < len(wishes) <= _MAX_CLAUSES:
        return ()
    return [Clause(part, number > 0 and _PRONOUNS.search(part) is not None) for number, part in enumerate(wishes)]


def _asks(text: str) -> bool:
    for word in _WORD.findall(text[:60].lower())[:4]:
        if word in ACTIONS or word in QUESTIONS:
            return True
        if word not in FILLERS:
            return False
    return False


def _says_enough(text: str) -> bool:
    words = _WORD.findall(text.lower())
    return len(words) >= _MIN_WORDS and any(word not in STOP_WORDS for word in words)
