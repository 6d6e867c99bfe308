"""How much a JSON text weighs, see `weight`: what each of its bytes costs a decoder, summed up. PURE."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from actors.protocol.wire.outline import PIECE_BYTES, strings

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


def _sum(weights: npt.NDArray[np.uint8]) -> int:
    return int(weights.sum(dtype=np.uint32))
