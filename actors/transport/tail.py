"""The newest bytes a server wrote beside its messages, bounded, and safe to show.

They are text of a stranger: it may hold terminal escapes, bidirectional overrides or no text at all. It is
kept as bytes (draining must be cheap: a full pipe blocks the server) and made visible only when somebody looks.
"""

from __future__ import annotations

from collections import deque

from actors.transport.mask import Mask
from actors.transport.redaction import without_secrets

_LINE_CHARACTERS = 1000
_BEYOND = 400
"""What begins to look like a secret before a line is cut is recognised within so many characters more."""
_SHOWN_BYTES = 16 * 1024


class Tail:
    """A ring of at most `max_bytes` bytes, plus the chunk that reaches over the edge.

    `mask` hides the secrets that are configured; what looks like one is hidden as well.
    """

    def __init__(self, max_bytes: int, mask: Mask | None = None) -> None:
        self._max_bytes = max_bytes
        self._mask = mask or Mask({})
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._fed = 0

    def feed(self, data: bytes) -> None:
        self._chunks.append(data)
        self._size += len(data)
        self._fed += len(data)
        while self._size - len(self._chunks[0]) >= self._max_bytes:
            self._size -= len(self._chunks.popleft())

    def text(self, lines: int) -> str:
        """Return the newest `lines` lines with everything unprintable escaped, each cut at 1000 characters.

        Looks at the newest 16 KiB at most: that takes a few milliseconds.
        """
        if lines <= 0:
            return ""
        newest = self._newest().rstrip().split("\n")[-lines:]
        kept = without_secrets("\n".join(line[: _LINE_CHARACTERS + _BEYOND] for line in newest)).split("\n")
        return "\n".join(visible(line.rstrip("\r")) for line in kept)

    def _newest(self) -> str:
        """Return what `text` looks at, masked.

        Where older text is missing, neither what may be the rest of a secret that began in it, nor the rest of that
        line, or word if there is no other line: what would tell that it is a secret may be gone. It is masked before it
        is cut, so that the cut does not hide a part of another secret from the mask.
        """
        chunks: list[bytes] = []
        size = 0
        most = min(self._max_bytes, _SHOWN_BYTES)
        for chunk in reversed(self._chunks):
            chunks.append(chunk)
            size += len(chunk)
            if size >= most:
                break
        text = self._mask(b"".join(reversed(chunks))[-most:].decode(errors="replace"))
        if size <= most and size == self._fed:
            return text
        text = text[self._mask.longest :]
        rests = (text.partition(end)[2] for end in ("\n", " "))
        return next((rest for rest in rests if rest.strip()), text)


def visible(text: str) -> str:
    """Return one line of text with unprintable characters as escapes, cut at 1000 characters."""
    if len(text) > _LINE_CHARACTERS:
        text = text[:_LINE_CHARACTERS] + "…"
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter == "\t" else _escape(letter) for letter in text)


def _escape(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
