"""Finding the right tool for a sentence. Pure: no trio, no clock, no files."""

from actors.search.document import KINDS, TOOLS, Document, Found, Hit, Kind
from actors.search.documents.embedding import MAX_DIMENSIONS, Embedder, Levels, digest_of, levels, text_of
from actors.search.documents.index import Index
from actors.search.documents.segment import Segment, analyse
from actors.search.ranking.search import EVERYTHING, find
from actors.search.words.tables import WORLD

__all__ = [
    "EVERYTHING",
    "KINDS",
    "MAX_DIMENSIONS",
    "TOOLS",
    "WORLD",
    "Document",
    "Embedder",
    "Found",
    "Hit",
    "Index",
    "Kind",
    "Levels",
    "Segment",
    "analyse",
    "digest_of",
    "find",
    "levels",
    "text_of",
]
