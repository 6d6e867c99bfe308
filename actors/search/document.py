"""What is searched and what is found. Immutable values; every other module of this package speaks in these.

A document is one thing a client could call, read or fill in. It carries texts only: whether its server runs, and who
may see it, are filters of a search and no part of the document. No value here can be part of a cycle, so the search
for garbage passes them over (`gc=False`): it would stop the loop for the longer, the more tools there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from actors.protocol.wire import json

Kind = Literal["tool", "resource", "template", "prompt", "skill"]
"""What MCP lets a server offer: tools, resources, resource templates and prompts; and skills (SEP-2640)."""

KINDS: tuple[Kind, ...] = ("tool", "resource", "template", "prompt", "skill")
"""All kinds; the place of a kind in this tuple is its code inside an index."""

TOOLS: frozenset[str] = frozenset({"tool"})
"""The kinds a search looks at unless told otherwise."""

MAX_SENTENCES, MAX_SENTENCE_CHARS = 8, 160
"""So many sentences of a document are read, and so much of each."""


class Document(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One thing that can be found.

    `key` is its path and unique in an index (`server:tool`). `parameters` are (name, description) pairs in the order
    of the schema, properties of nested objects included one level deep. `instructions` are those of its server.
    `described` is its description, as a text, or in JSON, as which it costs nothing where the definition is kept.
    `said` are sentences by which people ask for it, most telling first: it is found by them, and they are never shown.
    `deprecated`: its server says that something else is to be used instead.
    """

    key: str
    kind: Kind
    server: str
    name: str
    title: str = ""
    described: str | msgspec.Raw = ""
    parameters: tuple[tuple[str, str], ...] = ()
    instructions: str = ""
    said: tuple[str, ...] = ()
    deprecated: bool = False

    @property
    def description(self) -> str:
        return self.described if isinstance(self.described, str) else json.read_or(json.STRING, self.described, "")


def sentences_of(document: Document) -> Iterator[str]:
    """Yield the sentences by which people ask for a document, as far as they are read."""
    return (text[:MAX_SENTENCE_CHARS] for text in document.said[:MAX_SENTENCES])


class Hit(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One document of an answer.

    `score` is comparable within one answer only, higher is better, but exact hits come first whatever their score.
    `distance` is in 0..1, 0 is best: about the chance that this is not what was meant. It is comparable between answers
    and never falls from one hit to the next. `exact` says that the query is the document's name or path.
    """

    document: Document
    score: float
    distance: float
    exact: bool


class Found(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An answer: the best hits, best first, and how many documents matched before the limit was applied."""

    hits: tuple[Hit, ...] = ()
    total: int = 0
