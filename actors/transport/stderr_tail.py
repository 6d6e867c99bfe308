"""The newest bytes a server wrote to stderr, bounded, and safe to show.

A server's stderr is text of a stranger: it may hold terminal escapes, bidirectional overrides or no text at all. It is
kept as bytes (draining must be cheap: a full pipe blocks the server) and made visible only when somebody looks.
"""

from __future__ import annotations

from collections import deque

_LINE_CHARACTERS = 1000


class StderrTail:
    """A ring of at most `max_bytes` bytes, plus the chunk that reaches over the edge."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._chunks: deque[bytes] = deque()
        self._size = 0

    def feed(self, data: bytes) -> None:
        """Add bytes, forget the oldest ones."""
        self._chunks.append(data)
        self._size += len(data)
        while self._size - len(self._chunks[0]) >= self._max_bytes:
            self._size -= len(self._chunks.popleft())

    def text(self, lines: int) -> str:
        """Return the newest `lines` lines with everything unprintable escaped, each cut at 1000 characters."""
        if lines <= 0:
            return ""
        kept = b"".join(self._chunks)[-self._max_bytes :].rstrip().split(b"\n")[-lines:]
        return "\n".join(visible(line.rstrip(b"\r").decode(errors="replace")) for line in kept)


def visible(text: str) -> str:
    """Return one line of text with unprintable characters as escapes, cut at 1000 characters."""
    if len(text) > _LINE_CHARACTERS:
        text = text[:_LINE_CHARACTERS] + "…"
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter == "\t" else _escape(letter) for letter in text)


def _escape(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
