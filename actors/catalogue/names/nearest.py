"""Tools that may be meant by a path that means none: misspelt, or the same deed on the same thing. Pure.

A suggestion is called: who asked to read is not shown what deletes, and who asked for something that is not here is
shown nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

from actors.catalogue.names.naming import tool_path
from actors.search.text import squash
from actors.search.words.tables import VERB_CLASS

MOST_NEAREST = 3

_CHARS = 100
_LOOKED_AT = 100
"""So many of the paths, and of the names, most like what was asked for are looked at word by word."""
_LETTERS_PER_SLIP = 5
_MISSPELT, _SAME_OBJECT, _SAME_VERB = 200.0, 60.0, 30.0
"""What each adds to the likeness of the names, of 100."""
_SEPARATORS = re.compile(r"[:/.|]|__")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_DEEDS = {**VERB_CLASS, **dict.fromkeys(("remember", "save", "store", "put"), "create"), "forget": "delete"}


def nearest(
    path: str, tools: Sequence[tuple[str, str]], limit: int = MOST_NEAREST, *, named: bool = False
) -> list[str]:
    """Return the paths of those (server, tool) that may be meant, best first.

    `named`: the tools are of the server that the path names, so another thing to do the same with may be meant. Else
    compared by path and by name alone: models leave servers out or invent them. 10 ms for 10,000 tools.
    """
    asked = path.strip()[:_CHARS]
    name = _SEPARATORS.split(asked)[-1]
    numbers = set[int]()
    for text, choices in ((asked, [tool_path(*pair) for pair in tools]), (name, [tool for _, tool in tools])):
        numbers.update(number for *_, number in process.extract(text, choices, scorer=fuzz.ratio, limit=_LOOKED_AT))
    scores = {number: _likelihood(asked, name, *tools[number], named=named) for number in numbers}
    best = sorted((number for number in numbers if scores[number]), key=lambda number: (-scores[number], number))
    return [tool_path(*tools[number]) for number in best[:limit]]


def _likelihood(path: str, name: str, server: str, tool: str, *, named: bool) -> float:
    """Return how likely a tool is meant; 0 if it hardly is."""
    verb, things = _parts(name)
    other, others = _parts(tool)
    deed, done = _DEEDS.get(verb, ""), _DEEDS.get(other, "")
    if deed and done and deed != done:
        return 0.0
    alike = fuzz.ratio(name, tool)
    if _is_slip(name, tool) or _is_slip(path, tool_path(server, tool)):
        return _MISSPELT + alike + fuzz.ratio(path, tool_path(server, tool)) / 10
    shared = bool(things & others)
    same = deed == done
    if done == "delete" != deed or not (same or named) or not (shared or (named and same and deed)):
        return 0.0
    return alike + _SAME_OBJECT * shared + _SAME_VERB * (verb == other)


def _is_slip(one: str, other: str) -> bool:
    """Say whether one is the other with a few letters wrong, whatever its case and separators."""
    a, b = squash(one), squash(other)
    most = max(1, min(len(a), len(b)) // _LETTERS_PER_SLIP)
    return min(len(a), len(b)) > most and OSA.distance(a, b, score_cutoff=most) <= most


def _parts(name: str) -> tuple[str, frozenset[str]]:
    """Return the first verb of a name, empty if it has none that is known, and its other words."""
    words = [word.lower() for word in _WORD.findall(name)]
    verb = next((word for word in words if word in _DEEDS), "")
    return verb, frozenset(word.removesuffix("s") for word in words if word != verb)
