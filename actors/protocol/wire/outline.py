"""Where the parts of a JSON text begin and end, and what it costs to read, without reading it.

For texts that may be large, deep, or broken in one place, so that what is well is not lost with what is not. The scan
is made of array operations on pieces of 64 KiB: its cost is linear whatever the text holds (10 to 40 ns a byte), other
threads run in between, and no depth exhausts a stack. Nothing is validated: who takes a part decodes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from actors.kit.decoding import GivesWay

PIECE_BYTES = 64 * 1024
QUOTE, BACKSLASH, _COMMA = b'"\\,'
_OPENING = frozenset(b"{[")
_CLOSING = frozenset(b"}]")
_STEP: npt.NDArray[np.int8] = np.zeros(256, np.int8)
_STEP[list(_OPENING)] = 1
_STEP[list(_CLOSING)] = -1
_IS_MARK: npt.NDArray[np.bool_] = _STEP != 0
_IS_MARK[_COMMA] = True
_APART = ord("}") - ord("{")  # and that of the other pair
_BLANK = b" \t\r\n"
_MEMBER = re.compile(rb'\s*"([^"\\]{0,200})"\s*:\s*')

_ESCAPE, _BLANK_COST = 9, 5
_OUTSIDE: npt.NDArray[np.uint8] = np.ones(256, np.uint8)
_OUTSIDE[list(_BLANK)] = _BLANK_COST
_OUTSIDE[list(b"[]{}")] = 24
_OUTSIDE[list(b",")] = 64
_OUTSIDE[list(b":")] = 96
_NOTHING: npt.NDArray[np.int64] = np.zeros(1, np.int64)


class MalformedJson(Exception):
    """The brackets of a text do not match, or it is none of what was expected."""


class Span(NamedTuple):
    """A part of a text, from `start` to before `end`, without white space around it."""

    start: int
    end: int


class Container(NamedTuple):
    """An object or array: where it is, and what separates its parts. `whole`: its end was seen."""

    start: int
    bounds: list[int]
    whole: bool


class Outline:
    """The objects and arrays of the uppermost `levels` of a text; at most `max_marks` brackets and commas are noted.

    A text with more of them is cut: then the containers that were open are not `whole`, the last part of such an object
    reaches to the end of the text, and the last one of such an array is left out. Raises `MalformedJson`.
    """

    def __init__(self, text: bytes, levels: int, max_marks: int) -> None:
        self._text = text
        self._containers: dict[int, Container] = {}
        self._read(levels, max_marks)

    def root(self) -> Span:
        return self._trim(0, len(self._text))

    def take(self, span: Span) -> bytes:
        return self._text[span.start : span.end]

    def members(self, of: Span) -> dict[bytes, Span]:
        members: dict[bytes, Span] = {}
        for part in self._parts(of, b"{"):
            member = _MEMBER.match(self._text, part.start, part.end)
            if member is not None:
                members[member[1]] = self._trim(member.end(), part.end)
        return members

    def elements(self, of: Span) -> tuple[list[Span], bool]:
        """Return the elements of an array, and whether these are all. Raises `MalformedJson` for anything else."""
        return list(self._parts(of, b"[")), self._containers[of.start].whole

    def _parts(self, of: Span, opening: bytes) -> Iterator[Span]:
        container = self._containers.get(of.start)
        if container is None or self._text[of.start : of.start + 1] != opening:
            raise MalformedJson
        start = container.start
        cut = not container.whole and opening == b"{"
        for bound in [*container.bounds, len(self._text)] if cut else container.bounds:
            part = self._trim(start + 1, bound)
            if part.start < part.end:
                yield part
            start = bound

    def _trim(self, start: int, end: int) -> Span:
        text = self._text
        while start < end and text[start] in _BLANK:
            start += 1
        while start < end and text[end - 1] in _BLANK:
            end -= 1
        return Span(start, end)

    def _read(self, levels: int, max_marks: int) -> None:
        open_: list[Container] = []
        for piece in _marks(self._text):
            kept = piece.levels <= levels
            places = (piece.places[kept] + piece.start).tolist()
            for place in places:
                self._note(open_, place)
            max_marks -= len(places)
            if max_marks < 0:
                break
        else:
            if open_:
                raise MalformedJson

    def _note(self, open_: list[Container], place: int) -> None:
        mark = self._text[place]
        if mark in _OPENING:
            container = Container(place, [], whole=False)
            self._containers[place] = container
            open_.append(container)
        elif not open_:
            raise MalformedJson
        else:
            open_[-1].bounds.append(place)
            if mark in _CLOSING:
                closed = open_.pop()
                if mark - self._text[closed.start] != _APART:
                    raise MalformedJson
                self._containers[closed.start] = closed._replace(whole=True)


class Extent(NamedTuple):
    """How large a JSON value is: its levels of nesting, and its brackets and commas, of which each value has one."""

    depth: int
    marks: int


def extent(text: bytes) -> Extent:
    """Return how large a text is. Raises `MalformedJson` if it closes more than it opens."""
    depth = marks = 0
    for piece in _marks(text):
        depth = max(depth, int(piece.levels.max(initial=0)))
        marks += len(piece.places)
    return Extent(depth, marks)


class _Marks(NamedTuple):
    """The brackets and commas of one piece that are not in strings; `levels` of the container each belongs to."""

    start: int
    places: npt.NDArray[np.int64]
    levels: npt.NDArray[np.int64]


def _marks(text: bytes) -> Iterator[_Marks]:
    depth = 0
    for start, piece, inside in strings(text):
        places = np.flatnonzero(_IS_MARK[piece] & ~inside)
        steps = _STEP[piece[places]]
        depths = np.cumsum(steps, dtype=np.int64) + depth
        levels = depths + (steps < 0)
        if depths.size:
            depth = int(depths[-1])
            if int(depths.min()) < 0:
                raise MalformedJson
        yield _Marks(start, places, levels)


def strings(text: bytes) -> Iterator[tuple[int, npt.NDArray[np.uint8], npt.NDArray[np.bool_]]]:
    """Yield the pieces of a text: where each begins, its bytes, and which of them are in strings (not their end)."""
    data = np.frombuffer(text or b" ", np.uint8)
    inside = np.uint8(0)
    escaped = False
    turns = GivesWay()
    for start in range(0, len(data), PIECE_BYTES):
        turns.between()
        piece = data[start : start + PIECE_BYTES]
        quotes, escaped = quote_marks(piece, escaped=escaped)
        parities = (np.cumsum(quotes, dtype=np.uint8) + inside) & 1
        inside = parities[-1]
        yield start, piece, parities == 1


def quote_marks(piece: npt.NDArray[np.uint8], *, escaped: bool) -> tuple[npt.NDArray[np.bool_], bool]:
    """Return which bytes are quotes that begin or end a string, and whether the byte after the piece is escaped."""
    quotes = piece == QUOTE
    slashes = np.flatnonzero(piece == BACKSLASH)
    if escaped:
        quotes[0] = False
    if not slashes.size:
        return quotes, False
    numbers = np.arange(len(slashes))
    begins = np.empty(len(slashes), np.bool_)
    begins[0] = True
    begins[1:] = np.diff(slashes) != 1
    places = numbers - np.maximum.accumulate(np.where(begins, numbers, 0))  # of each backslash in its run
    if escaped and slashes[0] == 0:  # the run's first one is escaped itself
        run = len(slashes) if begins[1:].sum() == 0 else int(np.flatnonzero(begins[1:])[0]) + 1
        places[:run] += 1
    following = slashes[places % 2 == 0] + 1
    last = bool(following.size) and int(following[-1]) == len(piece)
    quotes[following[following < len(piece)]] = False
    return quotes, last


def weight(text: bytes, most: int) -> int:
    """Return what a JSON text costs a decoder, in bytes of plain text that take as long to read.

    One that weighs more than `most` is weighed so far.

    The common case is a long string with escapes in it: its pieces are only searched, for quotes and for backslashes.
    """
    data = np.frombuffer(text, np.uint8)
    total, inside, escaped, turns = 0, False, False, GivesWay()
    for start in range(0, len(data), PIECE_BYTES):
        turns.between()
        piece, end = data[start : start + PIECE_BYTES], start + PIECE_BYTES
        slashes = int(np.count_nonzero(piece == BACKSLASH)) if text.find(b"\\", start, end) >= 0 else 0
        if text.find(b'"', start, end) < 0:
            quotes, escaped = _NOTHING[:0], bool(slashes) and _ends_escaped(piece, escaped=escaped)
        elif slashes or escaped:
            quotes, escaped = _ends(piece, escaped=escaped)
        else:
            quotes = np.flatnonzero(piece == QUOTE)
        total += slashes * (_ESCAPE - 1)
        if quotes.size:
            total += _in_turns(piece, quotes, inside=inside)
            inside ^= bool(quotes.size & 1)
        else:
            total += len(piece) if inside else _sum(_OUTSIDE.take(piece))
        if total > most:
            break
    return total


def _in_turns(piece: npt.NDArray[np.uint8], quotes: npt.NDArray[np.int64], *, inside: bool) -> int:
    """Return the weight of a piece, backslashes as plain text: what lies between its quotes is in a string in turns."""
    begins = quotes if not quotes[0] else np.concatenate((_NOTHING, quotes))
    first = int(inside ^ (not quotes[0]))  # whether the first part is in a string: it may begin with its quote
    outside = np.add.reduceat(_OUTSIDE.take(piece), begins, dtype=np.uint32)[first::2]
    lengths = np.diff(begins, append=len(piece))[1 - first :: 2]
    return int(outside.sum()) + int(lengths.sum())


def _ends(piece: npt.NDArray[np.uint8], *, escaped: bool) -> tuple[npt.NDArray[np.int64], bool]:
    """Return where strings begin and end, and whether the byte after the piece is escaped."""
    quotes = np.flatnonzero(piece == QUOTE)
    before = piece[quotes - 1] == BACKSLASH  # of the first byte it is the last one, which is put right below
    if escaped or bool((before & (piece[quotes - 2] == BACKSLASH)).any()):  # which of a run counts has to be counted
        marks, escaped = quote_marks(piece, escaped=escaped)
        return np.flatnonzero(marks), escaped
    if quotes.size and not quotes[0]:
        before[0] = False
    return quotes[~before], _ends_escaped(piece, escaped=False)


def _ends_escaped(piece: npt.NDArray[np.uint8], *, escaped: bool) -> bool:
    """Say whether the byte after a piece is escaped; `escaped`: the first one of the piece is."""
    if piece[-1] != BACKSLASH:
        return False
    last = piece.tobytes()
    run = len(last) - len(last.rstrip(b"\\"))
    return bool((run - (escaped and run == len(last))) & 1)


def _sum(weights: npt.NDArray[np.uint8]) -> int:
    return int(weights.sum(dtype=np.uint32))
