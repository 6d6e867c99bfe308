"""Where the sentences come from by which people ask for tools.

Of a tool all are of one source, the first that has some: a file of the operator's, the phrase book, and what is kept of
a model of the operator's, or of clients'.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from actors.catalogue.documents import NOTHING_SAID, Said, Source, digest_of
from actors.catalogue.offer import Tool
from actors.protocol.wire import json
from supervisor.config import Settings
from supervisor.phrases.phrase_book import PhraseBook, read_book, read_own
from supervisor.store.records import MAX_PHRASES, SavedPhrases


class Kept(msgspec.Struct, frozen=True, array_like=True):
    """What a model said of a definition when it was asked: nothing usable, or sentences. `model` is what it is called.

    `asked_at`: when, in unix seconds. `source` says whose model it was.
    """

    sentences: tuple[str, ...]
    model: str
    asked_at: float
    source: Source = "model"


_KEPT: Final = msgspec.json.Decoder(Kept)


class Sources:
    """Knows all sentences. May be asked in any thread."""

    def __init__(self, books: Sequence[PhraseBook] = ()) -> None:
        self._books = tuple(books)
        self._kept: dict[bytes, Kept] = {}
        self.is_recalled = False
        """Whether what earlier runs kept is known."""

    def said(self, server: str, tool: Tool) -> Said:
        """Return the sentences by which people ask for a tool, as its server declares it."""
        if (said := self.said_in_books(server, tool)).sentences or not self._kept:
            return said
        kept = self._kept.get(digest_of(tool))
        return Said(kept.sentences, kept.source) if kept is not None and kept.sentences else NOTHING_SAID

    def said_in_books(self, server: str, tool: Tool) -> Said:
        """Return those that no model has to be asked for."""
        for book in self._books:
            if (said := book.said(server, tool)).sentences:
                return said
        return NOTHING_SAID

    def kept(self, digest: bytes) -> Kept | None:
        """Return what a model said of a definition; None if it was not asked."""
        return self._kept.get(digest)

    def keep(self, answers: Mapping[bytes, Kept]) -> list[SavedPhrases]:
        """Take what a model said, by the digests of definitions, and return it as it is kept on the disk."""
        self._kept.update(answers)
        if (more := len(self._kept) - MAX_PHRASES) > 0:  # what nothing usable was said of goes first
            oldest = sorted(self._kept, key=lambda digest: bool(self._kept[digest].sentences))
            for digest in oldest[:more]:
                del self._kept[digest]
        return [SavedPhrases(digest, msgspec.json.encode(kept)) for digest, kept in answers.items()]

    def recall(self, saved: Iterable[SavedPhrases]) -> None:
        """Take what was kept by earlier runs. What cannot be read is asked for again."""
        read = {row.digest: json.read_or(_KEPT, row.payload, None) for row in saved}
        self._kept = {digest: kept for digest, kept in read.items() if kept is not None} | self._kept
        self.is_recalled = True

    def asked(self) -> Iterable[float]:
        """Return when a model was asked, in unix seconds, once for each definition of which that is known."""
        return (kept.asked_at for kept in self._kept.values())


def read_sources(settings: Settings) -> Sources:
    """Return what the configuration wants to be known. Blocks for some milliseconds."""
    own = [read_own(Path(settings.phrases_file))] if settings.phrases_file else []
    return Sources([*own, read_book()] if settings.phrases else own)
