"""The phrase book: for tools of published servers, sentences by which people ask for them; a file a server in `book/`.

A tool is looked up by its definition, so it does not matter what its server is called here. A definition that changed
since it was read has the sentences of the same tool before: one of the same name and nearly the same parameters, of a
server that is called alike.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from actors.catalogue.offer import Tool
from actors.catalogue.phrases import digest_of, parameter_names
from actors.search.language.text import words

log = logging.getLogger(__name__)

FOLDER: Final = Path(__file__).with_name("book")
MAX_FILES: Final = 1000
MAX_FILE_BYTES: Final = 256 * 1024
NEARLY: Final = 0.8
"""So great a share of all parameters of two definitions is in both, if they are of the same tool."""
_NOISE: Final = frozenset({"mcp", "server", "npm", "pypi", "com", "io"})


class KnownTool(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A tool of the book. `digest` is that of its definition, in hex, and `parameters` are the names of them."""

    name: str
    digest: str
    parameters: tuple[str, ...]
    said: tuple[str, ...]


class Page(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the book has of one server. `made` says how its sentences came to be."""

    server: str
    package: str
    made: str
    tools: tuple[KnownTool, ...]


class PhraseBook:
    """Pages by the names of their tools. Immutable, so that it may be asked in any thread."""

    def __init__(self, pages: Iterable[Page]) -> None:
        self._by_name: dict[str, list[tuple[frozenset[str], KnownTool]]] = defaultdict(list)
        for page in pages:
            called = _called(page.server, page.package)
            for tool in page.tools:
                self._by_name[tool.name].append((called, tool))

    def said(self, server: str, tool: Tool) -> tuple[str, ...]:
        """Return the sentences by which people ask for a tool of a server, none if it is not in the book.

        Where several tools are defined alike, those of a server that is called alike go before.
        """
        known = self._by_name.get(tool.name, ())
        if not known:
            return ()
        own, digest, parameters = _called(server), digest_of(tool).hex(), parameter_names(tool)
        best: tuple[tuple[bool, bool, float], tuple[str, ...]] = (False, False, 0.0), ()
        for called, row in known:
            same, alike, share = row.digest == digest, not own.isdisjoint(called), _share(parameters, row.parameters)
            if same or (alike and share >= NEARLY):
                best = max(best, ((same, alike, share), row.said))
        return best[1]


def read_book(folder: Path = FOLDER) -> PhraseBook:
    """Return the book in a folder; a file that cannot be read is left out, and logged. Blocks for some milliseconds."""
    decoder = msgspec.json.Decoder(Page)
    pages: list[Page] = []
    for path in islice(sorted(folder.glob("*.json")), MAX_FILES):
        try:
            with path.open("rb") as file:
                pages.append(decoder.decode(file.read(MAX_FILE_BYTES)))
        except (OSError, msgspec.MsgspecError) as error:
            log.warning("no sentences from %s: %s", path.name, error)
    return PhraseBook(pages)


def _called(*names: str) -> frozenset[str]:
    return frozenset(word for name in names for word in words(name) if not word.isdigit()) - _NOISE


def _share(one: frozenset[str], other: Collection[str]) -> float:
    every = one.union(other)
    return len(one.intersection(other)) / len(every) if every else 1.0
