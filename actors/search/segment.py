"""The analysis of one server's documents: the expensive half of indexing, done per server, in a thread if wished.

A segment depends on its documents alone: never on other servers, so it is made once per change of that
server and joined to any index. Weights are BM25F: one saturation over all fields of a document. The sentences
by which people ask for it are one of these; of each word the best of them counts, so that many say no more than one.
"""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from actors.search import tuning
from actors.search.document import KINDS, Document, sentences_of
from actors.search.meanings import Levels
from actors.search.postings import Bools, Floats, Ints, Numbers, Triples, narrow
from actors.search.text import SENTENCE_END, as_written, camel_words, squash, stem, words
from actors.search.tuning import FieldName
from actors.search.words.tables import STOP_WORDS, VERB_CLASS

# Which documents are copies, and whose they are more likely to be.
#
# Whoever wants to be taken for an honest tool copies its name or its text; both copies match a query equally well, and
# many of them would crowd out the original. Copies therefore only share places: among those that are told apart by
# nothing but their server, the one whose server copies least comes first. A server copies as much as the share of its
# documents whose name, or longest sentence, another server has, too. Where that says nothing - two accounts of one
# service, say - the order stays as it is.

Prints = npt.NDArray[np.int64]
"""Per document the fingerprint of its name and that of its longest sentence; 0 stands for none."""

NAME, TEXT = 0, 1

_MAX_TEXT_CHARS = 3000
_MAX_NAME_CHARS = 300
_MIN_TEXT_CHARS = 12  # squashed: shorter sentences are said by honest servers of different things


def prints_of(documents: Sequence[Document]) -> Prints:
    """Return the fingerprints of documents, a row each; the same on every machine."""
    rows = [
        (_hash(document.name[:_MAX_NAME_CHARS], 1), _hash(_longest(document), _MIN_TEXT_CHARS))
        for document in documents
    ]
    return np.array(rows, np.int64).reshape(len(rows), 2)


def _longest(document: Document) -> str:
    return max(SENTENCE_END.split(document.description[:_MAX_TEXT_CHARS]), key=len)


def _hash(text: str, least_chars: int) -> int:
    squashed = squash(text)
    if len(squashed) < least_chars:
        return 0
    return int.from_bytes(blake2b(squashed.encode(errors="replace"), digest_size=8).digest(), "big", signed=True)


def copied_shares(prints: Prints, segment_of: Ints, sizes: Ints) -> Floats:
    """Return per server the share of its documents (0..1) that have a name or a text of another server."""
    copied = np.zeros(len(prints), np.bool_)
    for column in (NAME, TEXT):
        copied |= _held_by_several(prints[:, column], segment_of)
    shares: Floats = (np.bincount(segment_of, weights=copied, minlength=len(sizes)) / np.maximum(sizes, 1)).astype(
        np.float32
    )
    return shares


def _held_by_several(column: npt.NDArray[np.int64], segment_of: Ints) -> npt.NDArray[np.bool_]:
    order = np.lexsort((segment_of, column))
    prints, servers = column[order], segment_of[order]
    begins = np.ones(len(prints), np.bool_)
    begins[1:] = prints[1:] != prints[:-1]
    run = np.cumsum(begins) - 1
    moves = np.zeros(len(prints), np.int64)
    moves[1:] = (servers[1:] != servers[:-1]) & ~begins[1:]
    out = np.zeros(len(prints), np.bool_)
    out[order] = (np.bincount(run, weights=moves)[run] > 0) & (prints != 0)
    return out


VERB_CODES: dict[str, int] = {name: code for code, name in enumerate(sorted(set(VERB_CLASS.values())), start=1)}
"""Class of a verb to its number in `Segment.verbs`; 0 means that the name has no verb."""

_MIN_SUMMARY_CHARS = 20
_MAX_SUMMARY_CHARS = 300
_MAX_INSTRUCTIONS_CHARS = 1000
_MAX_PARAMETERS = 60
_SERVER_NOISE = frozenset({"mcp", "server"})
_NAMES: tuple[FieldName, ...] = ("name", "server")

Fields = dict[FieldName, list[str]]


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """The analysed documents of one server, sorted by key. Terms are numbered within the segment."""

    server: str
    documents: tuple[Document, ...]
    kinds: Ints  # per document: its place in KINDS
    has_said: Bools  # per document: sentences by which people ask for it are known
    verbs: Ints  # per document: the class of the verb in its name, 0 if none
    stems: tuple[str, ...]  # term number -> stem
    counts: Numbers  # term number -> documents that hold it, but for the instructions of the server
    said: Numbers  # term number -> those of `counts` that hold it in what people say alone
    postings: Triples
    names: Triples  # stems of names; weight 1, or 0 for joined neighbours
    known: tuple[str, ...]  # words as they are written, before stemming, each once; a set takes five times as much
    server_words: frozenset[str]  # stems of the server's name
    by_name: dict[str, tuple[int, ...]]  # squashed name -> documents
    by_path: dict[str, tuple[int, ...]]  # squashed server and name -> documents
    prints: Prints
    meanings: Levels  # per document: its vector; without columns as long as there is none
    embedder: str  # the name of what made the vectors

    def __len__(self) -> int:
        return len(self.documents)


def analyse(server: str, documents: Sequence[Document]) -> Segment:
    """Return the segment of a server; `Index.with_meanings` adds vectors. Its documents are without parameters, which
    are most of their text, and only read here.

    Pure and self-contained: safe in a worker thread. Of documents with the same key the last one counts. Texts are
    clipped, so the cost of a document is bounded.
    """
    ordered = tuple(dict(sorted({document.key: document for document in documents}.items())).values())
    analysis = _Analysis(server)
    for number, document in enumerate(ordered):
        analysis.add(number, document)
    return Segment(
        server=server,
        documents=tuple(replace(document, parameters=()) for document in ordered),
        kinds=np.array([KINDS.index(document.kind) for document in ordered], np.int32),
        has_said=np.array([bool(document.said) for document in ordered], np.bool_),
        verbs=np.array(analysis.verbs, np.int32),
        stems=tuple(analysis.terms),
        counts=narrow(analysis.counts),
        said=narrow(analysis.said),
        postings=analysis.postings.triples(),
        names=analysis.names.triples(),
        known=tuple(map(sys.intern, analysis.known)),
        server_words=frozenset(map(stem, analysis.server_words)),
        by_name=_numbers_by(document.name for document in ordered),
        by_path=_numbers_by(server + document.name for document in ordered),
        prints=prints_of(ordered),
        meanings=np.zeros((len(ordered), 0), np.int8),
        embedder="",
    )


def _numbers_by(texts: Iterable[str]) -> dict[str, tuple[int, ...]]:
    out: dict[str, tuple[int, ...]] = {}
    for number, text in enumerate(texts):
        key = squash(text[:_MAX_NAME_CHARS])
        if key:
            out[key] = (*out.get(key, ()), number)
    return out


class _Rows:
    def __init__(self) -> None:
        # Arrays, because making one of a million of Python's numbers takes 30 ms in one go.
        self.terms = array("i")
        self.documents = array("i")
        self.weights = array("f")

    def add(self, term: int, document: int, weight: float) -> None:
        self.terms.append(term)
        self.documents.append(document)
        self.weights.append(weight)

    def triples(self) -> Triples:
        weights: Floats = np.array(self.weights, np.float32)
        return Triples(narrow(self.terms), narrow(self.documents), weights)


class _Analysis:
    """The state of one analysis: numbers given to stems so far, and what was collected."""

    def __init__(self, server: str) -> None:
        self.server_words = [word for word in words(server) if word not in _SERVER_NOISE]
        self.terms: dict[str, int] = {}
        self.counts: list[int] = []
        self.said: list[int] = []
        self.verbs: list[int] = []
        self.known: set[str] = set()
        self.postings = _Rows()
        self.names = _Rows()
        self._texts: dict[str, list[str]] = {}

    def add(self, number: int, document: Document) -> None:
        fields = self._fields(document)
        for written in fields.values():
            self.known.update(written)
        verb = next((VERB_CLASS[word] for word in fields["name"] if word in VERB_CLASS), None)
        self.verbs.append(VERB_CODES[verb] if verb else 0)
        stems: Fields = {
            field: [stem(w) for w in written if w not in STOP_WORDS or field in _NAMES]
            for field, written in fields.items()
        }
        self._post(number, stems, fields, document)
        own = set(stems["name"])
        for word in sorted(own):
            self.names.add(self._term(word), number, 1.0)
        for word in sorted(set(stems["joined"]) - own):
            self.names.add(self._term(word), number, 0.0)

    def _post(self, number: int, stems: Fields, fields: Fields, document: Document) -> None:
        gained = self._asked(document)
        only_said, only_instructions = set(gained), set[str]()
        for field, stemmed in stems.items():
            if field == "instructions":
                only_instructions = set(stemmed) - gained.keys()
            for word, weight in self._weights(field, stemmed, fields[field]).items():
                gained[word] = gained.get(word, 0.0) + weight
            if field != "instructions":
                only_said.difference_update(stemmed)
        share = tuning.DEPRECATED if document.deprecated else 1.0
        for word, weight in gained.items():
            term = self._term(word)
            self.postings.add(term, number, share * weight / (tuning.SATURATION + weight))
            if word not in only_instructions:  # a server's instructions must not make its own words common
                self.counts[term] += 1
                self.said[term] += word in only_said

    def _asked(self, document: Document) -> dict[str, float]:
        """Return what each term weighs in the sentences by which people ask for a document: in the best one for it."""
        best: dict[str, float] = {}
        for text in sentences_of(document):
            written = _prose(text)
            self.known.update(written)
            stemmed = [stem(word) for word in written if word not in STOP_WORDS]
            for word, weight in self._weights("said", stemmed, written).items():
                best[word] = max(best.get(word, 0.0), weight)
        return best

    def _weights(self, field: FieldName, stemmed: list[str], written: list[str]) -> dict[str, float]:
        """Return what each term weighs in a text of a field."""
        settings = tuning.FIELDS[field]
        length = 1 - settings.length_norm + settings.length_norm * len(stemmed) / settings.usual_words
        if field not in ("instructions", "joined"):
            stemmed = stemmed + self._inflections(field, written)
        weight = settings.weight / length
        return {word: weight * min(count, tuning.REPEAT_LIMIT) for word, count in Counter(stemmed).items()}

    def _inflections(self, field: FieldName, written: list[str]) -> list[str]:
        """Return the terms for words that are not their own stem: the form that is asked for counts a little more."""
        counted = (word for word in written if word not in STOP_WORDS or field in _NAMES)
        return [as_written(word) for word in counted if stem(word) != word]

    def _term(self, word: str) -> int:
        term = self.terms.setdefault(word, len(self.terms))
        if term == len(self.counts):
            self.counts.append(0)
            self.said.append(0)
        return term

    def _fields(self, document: Document) -> Fields:
        name = words(document.name[:_MAX_NAME_CHARS])
        summary, rest = _summary(document.description[:_MAX_TEXT_CHARS])
        parameters = document.parameters[:_MAX_PARAMETERS]
        return {
            "name": name,
            "server": self.server_words,
            "title": words(document.title[:_MAX_NAME_CHARS]),
            "summary": _prose(summary),
            "description": _prose(rest),
            "parameter": words(" ".join(name for name, _ in parameters)[:_MAX_TEXT_CHARS]),
            "parameter_text": words(" ".join(text for _, text in parameters)[:_MAX_TEXT_CHARS]),
            "joined": _neighbours(name) + _neighbours(self.server_words),
            "instructions": self._instructions(document.instructions[:_MAX_INSTRUCTIONS_CHARS]),
        }

    def _instructions(self, text: str) -> list[str]:
        """Return the words of a server's instructions, analysed once though every document carries them."""
        if text not in self._texts:
            self._texts[text] = words(text)
        return self._texts[text]


def _summary(description: str) -> tuple[str, str]:
    """Return the first sentence, or line, of a description and the rest."""
    end = SENTENCE_END.search(description, _MIN_SUMMARY_CHARS)
    cut = min(end.start() if end else len(description), _MAX_SUMMARY_CHARS)
    return description[:cut], description[cut:]


def _prose(text: str) -> list[str]:
    """Return the words of a sentence: the pieces of camelCase words, and these as a whole."""
    return words(text) + camel_words(text)


def _neighbours(neighbours: list[str]) -> list[str]:
    """Return adjacent words glued together: "key vault" is also written "keyvault"."""
    return [one + other for one, other in pairwise(neighbours)]
