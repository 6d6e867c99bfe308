"""How much a JSON text weighs, see `weight`: what each of its bytes costs a decoder, summed up. Pure."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from actors.kit.decoding import GivesWay
from actors.protocol.wire.outline import BACKSLASH, PIECE_BYTES, QUOTE, quote_marks

_ESCAPE, _BLANK = 9, 5
_OUTSIDE: npt.NDArray[np.uint8] = np.ones(256, np.uint8)
_OUTSIDE[list(b" \t\r\n")] = _BLANK
_OUTSIDE[list(b"[]{}")] = 24
_OUTSIDE[list(b",")] = 64
_OUTSIDE[list(b":")] = 96
_NOTHING: npt.NDArray[np.int64] = np.zeros(1, np.int64)


def weight(text: bytes, most: int) -> int:
    """Return how many bytes of plain text take as long to read; one that weighs more than `most` is weighed so far.

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
