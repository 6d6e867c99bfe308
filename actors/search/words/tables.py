"""The lists of words that the search knows: what the files beside this one say, as values.

A file has sections, each below its `[name]`; a line that begins with `#` is a comment.
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Final, NamedTuple

_HEADING: Final = re.compile(r"^\[([a-z ]+)\]\n", re.MULTILINE)
_COMMENT: Final = re.compile(r"^#.*\n?", re.MULTILINE)


def _sections(name: str) -> dict[str, str]:
    text = files(__package__).joinpath(f"{name}.txt").read_text(encoding="utf-8")
    _, *parts = _HEADING.split(text)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _plain(name: str) -> dict[str, str]:
    return {heading: _COMMENT.sub("", text).strip() for heading, text in _sections(name).items()}


def _hints(text: str) -> tuple[tuple[str, float], ...]:
    return tuple((word, float(weight)) for word, _, weight in (hint.partition(":") for hint in text.split()))


class Shape(NamedTuple):
    """What is written so; `words/shapes.txt` says what each field is."""

    example: str
    pattern: str
    hints: tuple[tuple[str, float], ...]
    noun: str


def _shape(text: str) -> Shape:
    example, pattern, hints, noun = (line.partition(": ")[2] for line in text.splitlines())
    return Shape(example, pattern, _hints(hints), noun)


_common = _plain("common")
STOP_WORDS: Final = frozenset(_common["stop words"].split())
"""Words that say nothing about a tool. They count only in names of tools and servers."""
LOW_INFORMATION: Final = frozenset(_common["low information"].split())
"""Words that fit nearly every tool: they count a little less."""
VERB_CLASS: Final = {word: deed for deed in ("read", "create", "update", "delete") for word in _common[deed].split()}
"""Verb to what it does with a thing: read, create, update or delete."""
ACTIONS: Final = frozenset(_common["actions"].split()) | frozenset(VERB_CLASS)
QUESTIONS: Final = frozenset(_common["questions"].split())
FILLERS: Final = frozenset(_common["fillers"].split())
"""With what a wish begins, and what may stand before that."""
FILE_EXTENSIONS: Final = {
    extension: _hints(hints)
    for extension, _, hints in (line.partition("=") for line in _common["file extensions"].splitlines())
}
"""File extension to the (word, weight) pairs it hints at."""

_everyday = {heading: frozenset(text.split()) for heading, text in _plain("everyday").items()}
TIMES: Final = _everyday["times"]
"""Names of times: when something is wanted is rarely what is wanted."""
PEOPLE: Final = _everyday["people"]
"""Whom it is about; the words that name users of a system are not among them."""
WEAK: Final = (_everyday["weak"] | TIMES | PEOPLE) - _everyday["kept"]
"""Words that count little, and that are never misspelt words of the catalogue."""

_products = {heading: frozenset(text.split()) for heading, text in _plain("products").items()}
PRODUCTS: Final = (_products["services"] | _products["devices"] | _products["deeds"]) - _products["left out"]
"""What a tool names if it serves it, in lower case; names of two words are written as one."""

_synonyms = _plain("synonyms")
SYNONYMS: Final = tuple(_synonyms["synonyms"].splitlines())
"""Groups: each word of a line stands for each other one."""
ABBREVIATIONS: Final = tuple(_synonyms["abbreviations"].splitlines())
"""Directed: the word on the left of `=` is written, the words on the right are meant."""

PHRASES: Final = tuple(
    (phrase, tuple(meant.split()))
    for phrase, _, meant in (line.partition(" => ") for line in _synonyms["turns of phrase"].splitlines())
)
"""Turns of phrase, as regular expressions, with the words that they mean and do not contain."""

RULES: Final = tuple(_sections("intents")["rules"].replace("\n ", " ").splitlines())
"""Rules of paraphrase and comments, a line each; a line that begins with a space goes on with the one before."""

_world = _plain("world")
WORLD: Final = tuple(dict.fromkeys(f"{_world['deeds']}\n{_world['services']}".splitlines()))
"""What programs and services in the world do, each line once."""

SHAPES: Final = {name: _shape(text) for name, text in _plain("shapes").items()}
"""What is written in a way of its own, by name."""
