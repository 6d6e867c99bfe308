"""A text that is read by lines: of which size it is, what fits a budget of tokens, where words are. Pure.

JSON is kept indented, as tools mostly write it on one line. A line over `WRAP` bytes counts as several, so that each
fits any budget. Every step is bounded, in pieces between which other threads run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from actors.kit.decoding import GivesWay
from actors.protocol.wire import json
from actors.protocol.wire.outline import weight
from actors.protocol.wire.weight import MAX_WEIGHT
from supervisor.metatools.texts import estimate_tokens

WRAP: Final = 500
MAX_BYTES: Final = 4 * 1024 * 1024
"""Of a longer text the beginning is kept: about a million tokens."""
_MAX_WEIGHT: Final = MAX_WEIGHT // 2
"""Of JSON of which values are made: it has been read once as a message, and is read again for each path."""
_PIECE: Final = 65_536
_SAMPLES: Final = 8
_CONTINUATION, _CONTINUES = 0xC0, 0x80
_ESCAPE: Final = len(r"\u0000")
_HIGH, _LOW = re.compile(rb"\\u[dD][89abAB]"), re.compile(rb"\\u[dD][c-fC-F]")
"""The escapes of one character that is written as two (RFC 8259 section 7)."""

Starts = npt.NDArray[np.uint32]


class LongText(msgspec.Struct, frozen=True, eq=False):
    """`text` is UTF-8, `starts` where each line begins. `size`: the bytes there were, before the end was cut off."""

    text: bytes
    starts: Starts
    is_json: bool
    size: int

    @property
    def lines(self) -> int:
        return len(self.starts)

    @property
    def memory(self) -> int:
        return len(self.text) + self.starts.nbytes

    def between(self, first: int, last: int) -> bytes:
        """Return lines, counted from 1, both included; none where `last` is before `first`."""
        end = len(self.text) if last >= self.lines else int(self.starts[last])
        return self.text[int(self.starts[first - 1]) : end] if 1 <= first <= min(last, self.lines) else b""

    def last_within(self, first: int, last: int, tokens: int) -> int:
        """Return the last of these lines up to which all are within so many tokens; the first one in any case."""
        for number in range(first, min(last, self.lines) + 1):
            tokens -= estimate_tokens(as_text(self.between(number, number)))
            if tokens < 0:
                return max(first, number - 1)
        return min(last, self.lines)

    def lines_with(self, words: str, first: int, last: int) -> Iterator[int]:
        """Yield the numbers of the lines that have these words; of ASCII letters the case does not matter."""
        sought = re.compile(re.escape(words.encode()), re.IGNORECASE)
        number, end, turns = first, min(last, self.lines), GivesWay()
        while number <= end:
            turns.between()
            until = min(end, int(self.starts.searchsorted(np.uint32(self.starts[number - 1] + _PIECE))))
            until = max(until, number)
            piece, offset = self.between(number, until), int(self.starts[number - 1])
            seen = 0
            for match in sought.finditer(piece):
                at = int(self.starts.searchsorted(np.uint32(offset + match.start()), side="right"))
                if at > seen:
                    seen = at
                    yield at
            number = until + 1

    def value(self) -> Any:
        """Return the value of a text that is JSON."""
        return json.VALUE.decode(self.text)


def long_text(text: bytes, more: int = 0) -> LongText:
    """Return a text as it is read by lines; JSON, if it is an object or an array, is indented.

    `more`: so many bytes of it were left out at the end.
    """
    size, indented = len(text) + more, _indent(text)
    kept = text if indented is None else indented
    if len(kept) > MAX_BYTES:
        kept = kept[: _boundary(kept, MAX_BYTES)]
    return LongText(kept, _starts(kept), indented is not None, size)


def unquote(quoted: bytes) -> tuple[bytes, int]:
    """Return what stands between the quotes of a JSON string as UTF-8, and how many bytes that has.

    Of a long one only a beginning of at least `MAX_BYTES` is read, in pieces; then the size is that, and what is left
    as it stands.
    """
    parts: list[bytes] = []
    begin = size = 0
    while begin < len(quoted) and size < MAX_BYTES:
        end = _break(quoted, begin, begin + _PIECE)
        parts.append(json.text_at(b'"%b"' % quoted[begin:end]).encode(errors="replace"))
        begin, size = end, size + len(parts[-1])
    return b"".join(parts), size + len(quoted) - begin


def _break(quoted: bytes, begin: int, at: int) -> int:
    """Return a place where neither a character nor an escape is cut, at `at` or right before; `begin` is one, too."""
    if at >= len(quoted):
        return len(quoted)
    at = _boundary(quoted, at)
    last = quoted.rfind(b"\\", at - _ESCAPE + 1, at)
    before = quoted[begin : last + 1]
    if (len(before) - len(before.rstrip(b"\\"))) % 2:  # it begins an escape
        size = _ESCAPE if quoted[last + 1 : last + 2] == b"u" else 2
        at = last if last + size > at else at
    if _LOW.match(quoted, at) and _HIGH.match(quoted, at - _ESCAPE):
        at -= _ESCAPE
    return at


def as_text(text: bytes) -> str:
    return text.decode(errors="replace")


def tokens_of(text: bytes) -> int:
    """Return about how many tokens a text has; of one over 64 KiB some pieces stand for all."""
    if len(text) <= _PIECE:
        return estimate_tokens(as_text(text))
    size = _PIECE // _SAMPLES
    places = (number * (len(text) - size) // (_SAMPLES - 1) for number in range(_SAMPLES))
    return sum(estimate_tokens(as_text(text[at : at + size])) for at in places) * len(text) // _PIECE


def is_light(text: bytes) -> bool:
    """Say whether values may be made of a text: that takes no longer than other turns of the loop can bear."""
    return len(text) <= MAX_BYTES and weight(text, _MAX_WEIGHT) <= _MAX_WEIGHT


def _indent(text: bytes) -> bytes | None:
    if text.lstrip()[:1] not in (b"{", b"[") or not is_light(text):
        return None
    if not isinstance(
        json.read_or(json.VALUE, text, None), dict | list
    ):  # it may be JSON with numbers that nobody reads
        return None
    indented = msgspec.json.format(text, indent=1)
    return indented if is_light(indented) else None


def _boundary(text: bytes, at: int) -> int:
    """Return where a character begins, at a place or right before."""
    while at > 0 and text[at] & _CONTINUATION == _CONTINUES:
        at -= 1
    return at


def _starts(text: bytes) -> Starts:
    data, pieces, turns = np.frombuffer(text, np.uint8), list[npt.NDArray[np.int64]](), GivesWay()
    for at in range(0, len(data), _PIECE):
        turns.between()
        pieces.append(np.flatnonzero(data[at : at + _PIECE] == ord("\n")) + at + 1)
    starts = np.concatenate([[0], *pieces]).astype(np.uint32)
    starts = starts[starts < len(text)]
    ends = np.append(starts[1:], len(text))
    long = np.flatnonzero(ends - starts > WRAP)
    if not len(long):
        return starts
    more = [_wraps(text, int(starts[number]), int(ends[number])) for number in long]
    return np.sort(np.concatenate([starts, *(np.array(each, np.uint32) for each in more)])).astype(np.uint32)


def _wraps(text: bytes, start: int, end: int) -> list[int]:
    """Return where a long line is cut, each piece of whole characters."""
    wraps: list[int] = []
    while end - start > WRAP:
        start = _boundary(text, start + WRAP)
        wraps.append(start)
    return wraps
