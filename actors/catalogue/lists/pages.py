"""Reading one page of a list: from the server's message to entries we can use, each read alone.

Nothing but the entry that is bad is lost: it is left out and named. An entry that was known before, byte for byte, is
not read again, and stays the same object: that makes a reading without changes cheap. May run in a worker thread, in
which no step takes long.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from actors.catalogue.lists.validation import MAX_DEFINITION_BYTES, MAX_PROBLEMS, READ, Unusable
from actors.catalogue.offer import Declared, Offer, key_of
from actors.errors import ProtocolViolation
from actors.kit.decoding import GivesWay
from actors.protocol.listing import MEMBERS, Kind, PageArrived
from actors.protocol.wire import json, jsonrpc
from actors.protocol.wire.outline import MalformedJson, Outline, Span

MAX_CURSOR_BYTES = 64 * 1024
MAX_ERROR_BYTES = 64 * 1024
_MAX_MARKS = 100_000
_MAX_TTL_DIGITS = 15
_LEVELS = 3
_NAMED = re.compile(rb'"(?:name|uri|uriTemplate)"\s*:\s*"((?:[^"\\]|\\.){1,80})')
_WORDS: dict[Kind, str] = {
    "tools": "tool",
    "resources": "resource",
    "templates": "resource template",
    "prompts": "prompt",
    "skills": "skill",
    "events": "event type",
}


class ListRoom(msgspec.Struct, frozen=True):
    """What is left of a list's limits, and how many entries of it there are already."""

    entries: int
    size: int
    seen: int = 0


class ListPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page that was read.

    `entries` by name or URI, `broken` by a digest, with what is wrong with each. `size` in bytes. `cut`: the limit that
    was reached. `failure`: why nothing could be read. `foreign`: the message is no answer to the request. `good_for_s`:
    for how long the server says that it is good (2026-07-28, server/utilities/caching `ttlMs`); 0 if it says nothing.
    """

    entries: Mapping[str, Declared] = {}
    broken: Mapping[int, str] = {}
    size: int = 0
    cursor: str | None = None
    cut: str = ""
    failure: str = ""
    foreign: bool = False
    good_for_s: float = 0.0


class Known:
    """The entries that were known before a walk, found again by their text."""

    def __init__(self, offer: Offer | None) -> None:
        self._offer = offer or Offer()
        self._by_text: dict[Kind, dict[bytes, Declared]] = {}

    def find(self, kind: Kind, text: bytes) -> Declared | None:
        """Return the entry whose definition is exactly this text."""
        by_text = self._by_text.get(kind)
        if by_text is None:  # made by the thread that asks first
            entries: tuple[Declared, ...] = getattr(self._offer, kind)
            by_text = self._by_text[kind] = {bytes(entry.definition): entry for entry in entries}
        return by_text.get(text)


def read_page(arrived: PageArrived, room: ListRoom, known: Known) -> ListPage:
    """Read the message. Raises nothing; what cannot be read at all is a page with a `failure`."""
    if arrived.failure:
        return ListPage(failure=arrived.failure)
    try:
        outline = Outline(arrived.line, _LEVELS, _MAX_MARKS)
        answer = outline.members(outline.root())
        if arrived.id is not None and not _answers(outline, answer, arrived.id):
            return ListPage(foreign=True)
        failure = _failure(outline, answer)
        if failure:
            return ListPage(failure=failure)
        result = outline.members(answer[b"result"])
        elements, whole = _elements(outline, result[MEMBERS[arrived.kind].encode()])
    except (MalformedJson, KeyError):
        return ListPage(failure="the answer is malformed")
    reader = _Reader(arrived.kind, room, known)
    reader.read(outline, elements)
    good_for_s = _good_for_s(outline, result.get(b"ttlMs"))
    if reader.cut or not whole:
        return reader.page(None, reader.cut or f"{reader.count} entries", good_for_s)
    try:
        return reader.page(_cursor(outline, result.get(b"nextCursor")), "", good_for_s)
    except MalformedJson:
        return reader.page(None, "a cursor that we cannot use", good_for_s)


def _elements(outline: Outline, span: Span) -> tuple[list[Span], bool]:
    """Return the entries of a list, and whether it was seen to its end; `null` is an empty one. Raises `Malformed`."""
    return (
        ([], True)
        if outline.take(Span(span.start, min(span.end, span.start + 5))) == b"null"
        else outline.elements(span)
    )


def _answers(outline: Outline, answer: Mapping[bytes, Span], id_: bytes) -> bool:
    given = answer.get(b"id")
    return given is not None and outline.take(given) == id_ and b"method" not in answer


def _failure(outline: Outline, answer: Mapping[bytes, Span]) -> str:
    version, error = answer.get(b"jsonrpc"), answer.get(b"error")
    if version is None or outline.take(version) != b'"2.0"':
        return "the answer is malformed"
    if error is None or outline.take(error) == b"null":
        return ""
    if error.end - error.start > MAX_ERROR_BYTES:
        return f"an error of over {MAX_ERROR_BYTES} bytes"
    try:
        refusal = jsonrpc.decode_error(msgspec.Raw(outline.take(error)))
    except ProtocolViolation as violation:
        return f"it answered with {violation.message}"
    return f"{refusal.code} {refusal.message[:200]}"


def _cursor(outline: Outline, span: Span | None) -> str | None:
    """Return the cursor, None if there is none or it is no string. Raises `Malformed`."""
    if span is None:
        return None
    if span.end - span.start > MAX_CURSOR_BYTES:
        raise MalformedJson
    try:
        cursor = json.read(json.VALUE, outline.take(span))
    except json.UnreadableJson:
        raise MalformedJson from None
    return cursor if isinstance(cursor, str) else None


def _good_for_s(outline: Outline, span: Span | None) -> float:
    """Return a `ttlMs` in seconds; 0.0 for one that is absent, zero, negative, or no number of at most 15 digits."""
    text = outline.take(span) if span is not None and span.end - span.start <= _MAX_TTL_DIGITS else b""
    return int(text) / 1000 if text.isdigit() else 0.0


class _Reader:
    def __init__(self, kind: Kind, room: ListRoom, known: Known) -> None:
        self.cut = ""
        self._kind = kind
        self._room = room
        self._known = known
        self._entries: dict[str, Declared] = {}
        self._broken: dict[int, str] = {}
        self._size = 0

    @property
    def count(self) -> int:
        """How many entries of the list were seen, those of earlier pages included."""
        return self._room.seen + len(self._entries) + len(self._broken)

    def page(self, cursor: str | None, cut: str, good_for_s: float) -> ListPage:
        return ListPage(
            entries=self._entries, broken=self._broken, size=self._size, cursor=cursor, cut=cut, good_for_s=good_for_s
        )

    def read(self, outline: Outline, elements: list[Span]) -> None:
        turns = GivesWay()
        for element in elements:
            turns.between()
            size = element.end - element.start
            if self.count - self._room.seen >= self._room.entries:
                self.cut = f"{self.count} entries"
            elif self._size + size > self._room.size:
                self.cut = f"{self.count} entries, for their size"
            if self.cut:
                return
            self._size += size
            self._add(outline, element)

    def _add(self, outline: Outline, element: Span) -> None:
        if element.end - element.start > MAX_DEFINITION_BYTES:
            head = outline.take(Span(element.start, element.start + 4096))
            self._leave_out(head, f"its definition is over {MAX_DEFINITION_BYTES} bytes")
            return
        text = outline.take(element)
        try:
            entry = self._known.find(self._kind, text) or READ[self._kind](msgspec.Raw(text))
        except Unusable as reason:
            self._leave_out(text, str(reason))
            return
        key = key_of(entry)
        before = self._entries.setdefault(key, entry)
        if bytes(before.definition) != text:
            self._leave_out(text, f"a second {_WORDS[self._kind]} of the name {key[:80]!r}")

    def _leave_out(self, text: bytes, reason: str) -> None:
        if len(self._broken) >= MAX_PROBLEMS:
            self._broken.setdefault(hash(text), "")
            return
        named = _NAMED.search(text, 0, 4096)
        name = f" ({named[1].decode(errors='replace')!r})" if named else ""
        self._broken.setdefault(hash(text), f"{_WORDS[self._kind]} {self.count + 1}{name} left out: {reason}")
