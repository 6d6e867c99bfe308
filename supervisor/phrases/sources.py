"""Where the sentences come from by which people ask for tools.

Of a tool all are of one source, the first that has some: a file of the operator's, then the phrase book.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from actors.catalogue.documents import NOTHING_SAID, Said
from actors.catalogue.offer import Tool
from supervisor.config import Settings
from supervisor.phrases.phrase_book import PhraseBook, read_book, read_own


class Sources:
    """Knows all sentences. May be asked in any thread."""

    def __init__(self, books: Sequence[PhraseBook] = ()) -> None:
        self._books = tuple(books)

    def said(self, server: str, tool: Tool) -> Said:
        """Return the sentences by which people ask for a tool, as its server declares it."""
        for book in self._books:
            if (said := book.said(server, tool)).sentences:
                return said
        return NOTHING_SAID


def read_sources(settings: Settings) -> Sources:
    """Return what the configuration wants to be known. Blocks for some milliseconds."""
    own = [read_own(Path(settings.phrases_file))] if settings.phrases_file else []
    return Sources([*own, read_book()] if settings.phrases else own)
