"""A query's text to weighted words: what is quoted, a path or a URL counts less than what is said about it. Pure.

Blobs (base64, tokens) do not count at all, nor does a mark that is looked for ("containing TODO"). The extension of a
file name is a hint at what is to be done with it, and so is the shape of what is written in a way of its own: the key
of a ticket, the name of a channel.
Every pattern is bounded: a query is written by anybody.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from functools import lru_cache

from actors.search import tuning
from actors.search.text import clean, words
from actors.search.words.tables import ACTIONS, FILE_EXTENSIONS, FILLERS, QUESTIONS, SHAPES, STOP_WORDS

Weighted = tuple[str, float]

_PLAIN = re.compile(r"(?:[a-z ,?]|[A-Z](?![A-Z])|(?<!\s)')*+")
"""Words that no span is among, if none of them is long: most queries are no more than these."""
_LONG = re.compile(r"\w{17}")
_SHAPED = "|".join(f"(?P<{name}>{shape.pattern})" for name, shape in SHAPES.items())
_SPAN = re.compile(
    rf"(?<!\w)(?:{_SHAPED})|"  # most places are within words: one look passes over all shapes
    r"""(?P<blob>[A-Za-z0-9+/=_\-]{60,})
    |(?P<url>https?://\S+)
    |(?P<path>(?:(?<=\s)|^|(?<=['"`(]))(?:~|\.{1,2})?/[\w.~\-]+(?:/[\w.~\-]*)+
        |[A-Za-z]:\\[^\s"']+
        |(?<![\w@])[\w\-]{1,100}\.[A-Za-z][A-Za-z0-9]{1,4}(?![\w.@(]))
    |(?P<mail>[^\s@]{1,64}@[^\s@.]{1,255}\.\S+)
    |(?P<content>(?<=\bcontaining\s)[A-Z]{2,40}\b|(?<=\bcontain\s)[A-Z]{2,40}\b)
    |(?P<quote>"[^"]{3,200}"|(?<=\s)'[^']{3,200}'(?=[\s.,!?]|$)|\u201c[^\u201d]{3,200}\u201d)""",
    re.VERBOSE,
)
_READ_AGAIN = 32  # texts: a query and its sentences are read by each step
FILE_MARK = "xxfilexx"
"""The word that stands for a file for the rules of paraphrase."""
_EXTENSION = re.compile(r"\.([A-Za-z0-9]{2,5})\W{0,8}$")
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
_SCHEME = re.compile(r"^https?://(www\.)?")
_PROPER = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{1,40}")
_ABOUT = (
    "about|called|named|titled|entitled|regarding|concerning|mentioning|with (?:my|our|his|her|their)"
    r"|(?:search|searching|look|looking|google|hunt|browse)(?: [a-z]{1,20}){0,3} for"
)
_ENDS = "with|in|on|from|to|for|and|at|of|is"
_TOPIC = re.compile(rf"\b(?:{_ABOUT}) ((?:(?!(?:{_ENDS})\b)[^\s,.;:!?]{{1,40}} ?){{1,4}})", re.IGNORECASE)
_MAX_URL_WORDS = 8
_MAX_PATH_WORDS = 12
_URL_HINT: Weighted = ("url", 0.5)
_FILE_HINT: Weighted = ("file", 0.35)


def without_escapes(query: str) -> str:
    """Return the query with percent-encoded bytes as spaces: `create%20issue` is two words, `%ff%fe` none."""
    return _ESCAPE.sub(" ", query) if "%" in query else query


@lru_cache(maxsize=_READ_AGAIN)
def _spans(query: str) -> Sequence[re.Match[str]]:
    if _PLAIN.fullmatch(query) and not _LONG.search(query):
        return ()
    return tuple(_SPAN.finditer(query))


def _replace_spans(query: str, replacement: Callable[[re.Match[str]], str]) -> str:
    parts: list[str] = []
    end = 0
    for span in _spans(query):
        parts += (query[end : span.start()], replacement(span))
        end = span.end()
    return "".join((*parts, query[end:])) if parts else query


def with_nouns(query: str) -> str:
    """Return the query with what its shape says in the place of what is written so: "PLAT-2231" is a Jira issue."""
    return _replace_spans(query, lambda span: SHAPES[span.lastgroup].noun if span.lastgroup in SHAPES else span[0])


def with_marks(query: str) -> str:
    """Return the query with `FILE_MARK` for each path that has an extension, and without all other spans."""
    return _replace_spans(query, lambda span: f" {FILE_MARK} " if _is_file(span) else " ")


def _is_file(span: re.Match[str]) -> bool:
    return span.lastgroup == "path" and _EXTENSION.search(span[0][-16:]) is not None


def without_quotes(query: str) -> str:
    """Return the query without what is quoted, or to be contained in what is looked for: that is text, no request."""
    return _replace_spans(query, lambda span: " " if span.lastgroup in ("quote", "content") else span[0])


def named_words(query: str) -> frozenset[str]:
    return frozenset(map(str.lower, _PROPER.findall(query)))


def topic_words(query: str) -> frozenset[str]:
    topics = " ".join(_TOPIC.findall(query))
    return frozenset(words(topics) if topics else ())


def weighted_words(query: str, known: Container[str]) -> list[Weighted]:
    """Return the words of a query in order, each with its weight; hints from URLs and files come last."""
    out: list[Weighted] = []
    hints: list[Weighted] = []
    position = 0
    for span in _spans(query):
        out += [(word, 1.0) for word in query_words(query[position : span.start()], known)]
        inside, hinted = _span_words(span, known)
        out += inside
        hints += hinted
        position = span.end()
    out += [(word, 1.0) for word in query_words(query[position:], known)]
    if not hints:
        return out
    said = {word for word, _ in out}
    return out + [(word, weight) for word, weight in hints if word not in said]


def _span_words(span: re.Match[str], known: Container[str]) -> tuple[list[Weighted], list[Weighted]]:
    text = span.group(0)
    if span.lastgroup in ("blob", "content"):
        return [], []
    if span.lastgroup in SHAPES:
        inside = query_words(text, known)[:_MAX_PATH_WORDS]
        return [(word, tuning.IN_PATH) for word in inside], list(SHAPES[span.lastgroup].hints)
    if span.lastgroup == "quote":
        return [(word, tuning.IN_QUOTES) for word in query_words(text, known)], []
    match = _EXTENSION.search(text[-16:])
    extension = match.group(1).lower() if match else ""
    hints = list(FILE_EXTENSIONS.get(extension, ()))
    if span.lastgroup == "url":
        inside = query_words(_SCHEME.sub("", text), known)[:_MAX_URL_WORDS]
        return [(word, tuning.IN_PATH) for word in inside], [_URL_HINT, *hints]
    if span.lastgroup == "path":
        inside = query_words(text, known)[:_MAX_PATH_WORDS]
        return [(word, tuning.IN_PATH) for word in inside if word != extension], [_FILE_HINT, *hints]
    return [], hints


def query_words(text: str, known: Container[str]) -> list[str]:
    """Return the words of a text; a camelCase word the catalogue knows stays whole (`MySQL`, `GitHub`)."""
    out: list[str] = []
    for part in clean(text).split():
        if part.isascii() and part.isalpha() and part.islower():  # most of a query; nothing to take apart
            out.append(part)
            continue
        pieces = words(part)
        if len(pieces) > 1:
            whole = words(part, split=False)
            if any(word in known for word in whole):
                pieces = [piece for word in whole for piece in _keep_known(word, part, known)]
        out += pieces
    return out


def _keep_known(word: str, part: str, known: Container[str]) -> list[str]:
    """Return the word itself if it is known, else its pieces as its capitals show them."""
    if word in known:
        return [word]
    at = part.lower().find(word)
    return words(part[at : at + len(word)] if at >= 0 else word)


# A query's sentences, and its wishes: "find the venue and tell the team" asks for two tools.
#
# A query is divided where a sentence ends, and where "and", "then" or a comma is followed by another request: a verb of
# doing something, or a question. What a wish leaves to a pronoun ("send it to them") it takes from the one before.

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
