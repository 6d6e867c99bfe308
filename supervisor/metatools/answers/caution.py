"""Hits in a harmless order: what destroys is first only for a need that names its deed and its object. Pure.

"Delete a directory" asks for destruction, but not for that of the files a version control does not know, though both
are about directories; "what changed" asks for none. A tool destroys if it is declared to (MCP 2025-03-26 server/tools,
`destructiveHint`), or if its name or description says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace
from rapidfuzz import fuzz

from actors.catalogue.lists import inference
from actors.catalogue.metadata import successors
from actors.catalogue.offer import Tool
from actors.catalogue.snapshot import Catalogue
from actors.search.document import Found, Hit
from actors.search.paraphrase import REAL_WORDS, alternatives, interpret, phrases_in
from actors.search.query import without_quotes
from actors.search.text import stem, words
from actors.search.words.tables import LOW_INFORMATION, STOP_WORDS, VERB_CLASS, WEAK
from supervisor.metatools.answers.rows import declared_hints
from supervisor.metatools.servers.unavailable import FITS

_MAX_CHARS = 1000
"""Of a query; a longer one has named what it wants by then."""
_UNDOING = frozenset(word for word, deed in VERB_CLASS.items() if deed == "delete") | {*inference.WORDS["destroy"]}
_UNDOING_STEMS = frozenset(map(stem, _UNDOING))
_NO_THINGS = STOP_WORDS | LOW_INFORMATION | WEAK | VERB_CLASS.keys() | _UNDOING
_PREPOSITIONS = "at by for from in inside into of on out over through to under using via when which with"
_BORDERS = frozenset(_PREPOSITIONS.split())
"""Before these the object of a sentence ends: "remove untracked files from the working directory"."""
_LIKE = 75
"""So similar (0..100) are a word and its misspelling, or its beginning."""
_LEAST_CHARS = 4


class Need:
    """What a query names, in stems and what these may stand for; rules of paraphrase are asked if its words do not."""

    def __init__(self, query: str) -> None:
        self._text = without_quotes(query[:_MAX_CHARS])
        self._read(words(self._text))
        self._is_paraphrased = False

    def names(self, tool: Tool) -> bool:
        """Say whether it names the deed and the object of a tool that destroys."""
        if self._things and self._says(tool):
            return True
        if not self._is_paraphrased:
            meant = [word for need in interpret(self._text).needs for word in need]
            meant += [word for said in phrases_in(self._text.lower()) for word in said]
            self._read([*words(self._text), *meant])
            self._is_paraphrased = True
        return self._says(tool)

    def _read(self, said: Sequence[str]) -> None:
        self._said = frozenset(map(stem, said))
        self._things = frozenset(stem(word) for word in said if word not in _NO_THINGS)
        self._misspelt = [stem(word) for word in said if word not in REAL_WORDS and len(word) >= _LEAST_CHARS]
        self._destroys = self._means(self._said, _UNDOING_STEMS)

    def _says(self, tool: Tool) -> bool:
        named = frozenset(map(stem, words(tool.name)))
        deed = self._destroys or (named.isdisjoint(_UNDOING_STEMS) and not named.isdisjoint(self._said))
        return deed and (not self._things or self._means(self._things, (named | _object(tool)) - _UNDOING_STEMS))

    def _means(self, said: frozenset[str], stems: frozenset[str]) -> bool:
        """Say whether any of these stems is said, by a synonym, or misspelt."""
        known = alternatives()
        if not stems.isdisjoint(said.union(*(known.get(word, {}) for word in said))):
            return True
        return any(fuzz.ratio(word, other) >= _LIKE for word in self._misspelt for other in stems)


def _object(tool: Tool) -> frozenset[str]:
    """Return the stems of what a tool's title, and its first sentence up to the first border, are about."""
    said = words(inference.first_sentence(tool.description))
    end = next((at for at, word in enumerate(said) if word in _BORDERS), len(said))
    return frozenset(map(stem, (*words(tool.title), *said[:end])))


def likely_server(ranking: Found) -> str:
    """Return the server of the first tool that was found, if that is good enough to be called; else nothing."""
    hit = ranking.hits[0] if ranking.hits else None
    return hit.document.server if hit is not None and hit.document.kind == "tool" and hit.distance < FITS else ""


def careful(seen: Catalogue, query: str, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the hits, of which the first destroys nothing that the query does not name; exact ones are left alone.

    Where the best has to give way, or there is no other, no hit fits: what is meant is none of what there is, or it is
    what must not come first.
    """
    tools = [_tool(seen, hit) for hit in hits]
    if not hits or hits[0].exact or not _destroys(tools[0]):
        return tuple(hits)
    need = Need(query)
    harmless = (at for at, tool in enumerate(tools) if tool is None or not _destroys(tool) or need.names(tool))
    place = next(harmless, None)
    if place == 0:
        return tuple(hits)
    ordered = hits if place is None else (hits[place], *hits[:place], *hits[place + 1 :])
    return tuple(replace(hit, distance=max(FITS, before.distance)) for hit, before in zip(ordered, hits, strict=True))


def after_successors(seen: Catalogue, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the hits, a tool that its server advises against right behind the best of those that it names instead.

    One that was asked for by its name stays where it is.
    """
    ordered = [*hits]
    for hit in hits:
        tool, server = _tool(seen, hit), hit.document.server
        if tool is None or hit.exact or not (names := successors(tool, seen.entries[server].tools)):
            continue
        named = (each for each in ordered if each.document.server == server and each.document.name in names)
        better = next(named, None)
        if better is not None and ordered.index(better) > (place := ordered.index(hit)):
            ordered.insert(ordered.index(better), ordered.pop(place))
    return tuple(replace(hit, distance=before.distance) for hit, before in zip(ordered, hits, strict=True))


def _tool(seen: Catalogue, hit: Hit) -> Tool | None:
    return seen.entries[hit.document.server].tools.get(hit.document.name) if hit.document.kind == "tool" else None


def _destroys(tool: Tool | None) -> bool:
    """Say whether a tool is declared to destroy, or seems to; what is declared to read only does not."""
    if tool is None:
        return False
    tool = tool.own or tool  # a name that an operator gave it makes nothing harmless
    hints = declared_hints(tool)
    if hints.get("readOnlyHint"):
        return False
    return hints.get("destructiveHint", False) or bool(inference.effects(tool.name, tool.description).destructive)
