"""What a JSON text costs to read, known before it is read.

A decoder is one call into C: while it runs nothing else does. Plain text is cheap; the same number of bytes in
brackets, numbers or escapes takes up to sixty times as long. So a message is not only measured in bytes: its weight is
the number of bytes of plain text that would take as long, and what weighs more than `MAX_WEIGHT` is not read.

Pure. The cost is 2 to 3 ns a byte, 15 to 40 where a text has much syntax in it, in pieces between which other threads
run.
"""

from __future__ import annotations

import codecs

from actors.errors import ProtocolViolation

LARGE_BYTES = 128 * 1024
"""Below this the worst message takes a few milliseconds, whatever it holds."""
MAX_WEIGHT = 17 * 1024 * 1024
"""What takes some 13 ms on a machine of 2024: an answer of 16 MiB in one string with something around it, 100,000
members of objects, 250,000 numbers, or 1,700,000 escapes."""
_PIECE_BYTES = 64 * 1024


class TooHeavy(ProtocolViolation):
    """A message takes too long to read for its size. `limit` is in bytes of plain text."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"too many values, brackets or escapes: reading it takes longer than {limit} bytes of plain text would"
        )
        self.limit = limit


def limit(size: int) -> int:
    """Return what a message of so many bytes may weigh: who allows more bytes by configuration allows their time."""
    return max(MAX_WEIGHT, size + size // 8)


def examine(text: bytes) -> None:
    """Raise `TooHeavy`, or another `ProtocolViolation` for what is not UTF-8: no such text is handed to a decoder.

    For texts of `LARGE_BYTES` and more, in a thread.
    """
    from actors.protocol.wire.outline import weight  # and numpy, which a program that gets nothing large does without

    most = limit(len(text))
    if weight(text, most) > most:
        raise TooHeavy(most)
    if text.isascii():
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(text), _PIECE_BYTES):
            decoder.decode(text[start : start + _PIECE_BYTES])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise ProtocolViolation("a message that is not UTF-8") from None
