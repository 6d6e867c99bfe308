"""What a JSON text costs to read, known before it is read.

A decoder is one call into C: while it runs nothing else does. Plain text is cheap; the same number of bytes in
brackets, numbers or escapes takes up to sixty times as long. So a message is not only measured in bytes: its weight is
the number of bytes of plain text that would take as long, and what weighs more than `MAX_WEIGHT` is not read.

PURE. The cost is 2 to 3 ns a byte, 15 to 40 where a text has much syntax in it, in pieces between which other threads
run.
"""

from __future__ import annotations

import codecs

import numpy as np
import numpy.typing as npt

from actors.errors import ProtocolViolation
from actors.protocol.wire.outline import PIECE_BYTES, strings

LARGE_BYTES = 128 * 1024
"""Below this the worst message takes a few milliseconds, whatever it holds."""
MAX_WEIGHT = 17 * 1024 * 1024
"""What takes some 13 ms on a machine of 2024: an answer of 16 MiB in one string with something around it, 100,000
members of objects, 250,000 numbers, or 1,700,000 escapes."""

_ESCAPE, _BLANK = 9, 5
_OUTSIDE: npt.NDArray[np.uint8] = np.ones(256, np.uint8)
_OUTSIDE[list(b" \t\r\n")] = _BLANK
_OUTSIDE[list(b"[]{}")] = 24
_OUTSIDE[list(b",")] = 64
_OUTSIDE[list(b":")] = 96
_INSIDE: npt.NDArray[np.uint8] = np.ones(256, np.uint8)
_INSIDE[list(b"\\")] = _ESCAPE
_ANYWHERE = np.maximum(_OUTSIDE, _INSIDE)
"""What a byte weighs at most: units are what one byte of a string costs, measured (`benchmarks/worst_cases.py`)."""


class TooHeavy(ProtocolViolation):
    """A message takes too long to read for its size. `limit` is in bytes of plain text."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"too many values, brackets or escapes: reading it takes longer than {limit} bytes of plain text would"
        )
        self.limit = limit


def weight(text: bytes, most: int) -> int:
    """Return how many bytes of plain text take as long to read.

    A text that weighs no more than `most` anyway may be said to weigh too much, one that weighs more is weighed so far.
    """
    data = np.frombuffer(text, np.uint8)
    starts = range(0, len(data), PIECE_BYTES)
    at_most = sum(_sum(_ANYWHERE.take(data[start : start + PIECE_BYTES])) for start in starts)
    if at_most <= most:
        return at_most
    total = 0
    for _, piece, inside in strings(text):
        total += _sum(np.where(inside, _INSIDE.take(piece), _OUTSIDE.take(piece)))
        if total > most:
            break
    return total


def limit(size: int) -> int:
    """Return what a message of so many bytes may weigh: who allows more bytes by configuration allows their time."""
    return max(MAX_WEIGHT, size + size // 8)


def examine(text: bytes) -> None:
    """Raise `TooHeavy`, or another `ProtocolViolation` for what is not UTF-8: no such text is handed to a decoder.

    For texts of `LARGE_BYTES` and more, in a thread.
    """
    most = limit(len(text))
    if weight(text, most) > most:
        raise TooHeavy(most)
    if text.isascii():
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(text), PIECE_BYTES):
            decoder.decode(text[start : start + PIECE_BYTES])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise ProtocolViolation("a message that is not UTF-8") from None


def _sum(weights: npt.NDArray[np.uint8]) -> int:
    return int(weights.sum(dtype=np.uint32))
