"""The phrase book: for tools of published servers, sentences by which people ask for them; a file a server in `book/`.

A tool is looked up by its definition, so it does not matter what its server is called here. A definition that changed
since it was read has the sentences of the same tool before: one of the same name and nearly the same parameters, of a
server that is called alike. Files of an operator's own have the same form, and are read the same way.
"""

from __future__ import annotations

import logging
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from actors.catalogue.documents import NOTHING_SAID, Said, Source, digest_of, parameter_names
from actors.catalogue.offer import Tool
from actors.kit.paths import is_file
from actors.protocol.wire import json
from actors.search.document import MAX_SENTENCES
from actors.search.text import words
from supervisor.metatools.texts import escape
from supervisor.phrases.sentences import fault_of

log = logging.getLogger(__name__)

FOLDER: Final = Path(__file__).with_name("book")
MAX_FILES: Final = 1000
MAX_FILE_BYTES: Final = 256 * 1024
_MAX_LOGGED: Final = 20
_NEARLY: Final = 0.8
"""So great a share of all parameters of two definitions is in both, if they are of the same tool."""
_NOISE: Final = frozenset({"mcp", "server", "npm", "pypi", "com", "io"})
_DIGEST: Final = re.compile(r"[0-9a-f]{32}")


class KnownTool(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A tool of the book. `digest` is that of its definition, in hex, and `parameters` are the names of them."""

    name: str
    digest: str
    parameters: tuple[str, ...]
    said: tuple[str, ...]

    @classmethod
    def of(cls, tool: Tool, sentences: tuple[str, ...]) -> KnownTool:
        """Return a row for a tool as its server declares it."""
        parameters = tuple(sorted(parameter_names(tool)))
        return cls(name=tool.name, digest=digest_of(tool).hex(), parameters=parameters, said=sentences)


class Page(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the book has of one server. `made` says how its sentences came to be; `package` may be empty."""

    server: str
    package: str
    made: str
    tools: tuple[KnownTool, ...]


_PAGE: Final = msgspec.json.Decoder(Page)


class PhraseBook:
    """Pages by the names of their tools. Immutable, so that it may be asked in any thread."""

    def __init__(self, pages: Iterable[Page], source: Source = "book") -> None:
        self._by_name: dict[str, list[tuple[frozenset[str], KnownTool]]] = defaultdict(list)
        self._source = source
        for page in pages:
            called = _called(page.server, page.package)
            for tool in page.tools:
                self._by_name[tool.name].append((called, tool))

    def said(self, server: str, tool: Tool) -> Said:
        """Return the sentences by which people ask for a tool of a server, none if it is not in the book.

        Where several tools are defined alike, those of a server that is called alike go before.
        """
        known = self._by_name.get(tool.name, ())
        if not known:
            return NOTHING_SAID
        own, digest, parameters = _called(server), digest_of(tool).hex(), parameter_names(tool)
        best: tuple[tuple[bool, bool, float], tuple[str, ...]] = (False, False, 0.0), ()
        for called, row in known:
            same, alike, share = row.digest == digest, not own.isdisjoint(called), _share(parameters, row.parameters)
            if same or (alike and share >= _NEARLY):
                best = max(best, ((same, alike, share), row.said))
        return Said(best[1], self._source) if best[1] else NOTHING_SAID


def read_book(folder: Path = FOLDER) -> PhraseBook:
    """Return the book in a folder; a file that cannot be read is left out, and logged. Blocks for some milliseconds."""
    return PhraseBook(page for page, _ in _pages(files_of(folder)))


def read_own(place: Path) -> PhraseBook:
    """Return what is in a file of the operator's, or in those of a folder. Blocks.

    Faults are logged. A file that cannot be read is left out; of the others, the sentences that nobody's may be.
    """
    files = files_of(place)
    if not files:
        log.warning("no sentences from %s: there is no such file, nor a folder with files *.json", place)
    pages: list[Page] = []
    for page, path in _pages(files):
        faults = [*faults_of(page)]
        for fault in faults[:_MAX_LOGGED]:
            log.warning("%s: %s", path.name, fault)
        pages.append(replace(page, tools=tuple(map(_sound, page.tools))) if faults else page)
    return PhraseBook(pages, "file")


def files_of(place: Path) -> list[Path]:
    """Return the file at a place, or those of the folder that is there. Blocks."""
    return [place] if is_file(str(place)) else [*islice(sorted(place.glob("*.json")), MAX_FILES)]


def read_page(path: Path) -> Page:
    """Return the page in a file. Blocks. Raises `OSError`, `UnreadableJson`."""
    with path.open("rb") as file:
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise json.UnreadableJson(f"it has more than {MAX_FILE_BYTES} bytes")
    return json.read(_PAGE, content)


def write_page(page: Page) -> str:
    """Return a page as files have it: a tool on each line."""
    head = _spaced({"server": page.server, "package": page.package, "made": page.made})
    rows = ",\n".join(_spaced(tool) for tool in page.tools)
    return f'{head[:-1]}, "tools": [\n{rows}\n]}}\n'


def faults_of(page: Page) -> Iterator[str]:
    """Yield what is wrong with a page, a sentence each; texts of it are escaped."""
    if not page.server or not page.made:
        yield 'it says nothing of its "server", or how its sentences were "made"'
    names = Counter(tool.name for tool in page.tools)
    digests = Counter(tool.digest for tool in page.tools if tool.digest.strip("0"))
    for tool in page.tools:
        name = escape(tool.name[:100])
        if names[tool.name] > 1 or digests[tool.digest] > 1:
            yield f"{name}: it is there twice"
        if not _DIGEST.fullmatch(tool.digest):
            yield f"{name}: its digest is not 32 digits in hexadecimal"
        if not 1 <= len(tool.said) <= MAX_SENTENCES:
            yield f"{name}: it has {len(tool.said)} sentences, not 1 to {MAX_SENTENCES}"
        if len(set(tool.said)) < len(tool.said):
            yield f"{name}: a sentence is there twice"
        for number, sentence in enumerate(tool.said, 1):
            if fault := fault_of(sentence):
                yield f"{name}: sentence {number} {fault}"


def _pages(files: Sequence[Path]) -> Iterator[tuple[Page, Path]]:
    """Yield what is in files, but for those that cannot be read, which are logged."""
    for path in files:
        try:
            yield read_page(path), path
        except (OSError, json.UnreadableJson) as error:
            log.warning("no sentences from %s: %s", path.name, error)


def _sound(tool: KnownTool) -> KnownTool:
    sentences = [sentence for sentence in dict.fromkeys(tool.said) if not fault_of(sentence)]
    return replace(tool, said=tuple(sentences[:MAX_SENTENCES]))


def _spaced(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=0).decode()


def _called(*names: str) -> frozenset[str]:
    return frozenset(word for name in names for word in words(name) if not word.isdigit()) - _NOISE


def _share(one: frozenset[str], other: Collection[str]) -> float:
    every = one.union(other)
    return len(one.intersection(other)) / len(every) if every else 1.0
