"""What a server writes beside its messages: stderr, and lines of stdout that are no messages. Pure.

The first and the newest of both are kept here for one connection; whoever wants all of it listens. It is text of a
stranger, which may hold terminal escapes, bidirectional overrides or no text at all: it is kept as bytes (draining must
be cheap: a full pipe blocks the server) and made visible only when somebody looks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from actors.protocol.wire.framing import Line
from actors.transport.redaction import Mask, without_secrets

Source = Literal["stderr", "stdout", "supervisor"]
"""Where a line about a server comes from: its stderr, noise on its stdout, or us."""

Hear = Callable[[Source, bytes], None]
"""Takes a piece of stderr, or whole lines of stdout that are no messages. Must not block or raise."""

NOISE_LINES = 20
"""Of one read, that many lines that are no messages are told of."""
NOISE_BYTES = 64 * 1024
"""Of each; a line may be as long as a message."""
FLOOD = b"it writes more lines than max_lines_per_s: from here on stderr is left out\n"
LEFT_OUT = "so many lines of stderr were left out: {}\n"
KEPT_BYTES = 12 * 1024
"""So much of the newest is kept, and"""
FIRST_BYTES = 4 * 1024
"""so much of what was written first: to make both visible takes a few milliseconds, ten where all is escapes."""
MAX_LINES = 500
"""So many lines are made visible."""
GAP = "…"
"""Stands for what was not kept: as a line between others, and before the rest of one."""
_LINE_CHARACTERS = 1000
_BEYOND = 400
"""What begins to look like a secret before a line is cut is recognised within so many characters more."""


def ignore(source: Source, data: bytes) -> None:
    """Take no notice."""


class Asides:
    """Of one connection. `hear` gets what comes once it is set; `mask` hides the secrets that are configured."""

    def __init__(self, mask: Mask | None = None) -> None:
        self.hear: Hear = ignore
        self._stderr = Tail(mask)
        self._noise = Tail(mask)
        self._shown: tuple[int, str] | None = None
        self._left_out = 0

    def stderr(self, data: bytes, *, told: bool = True) -> None:
        """Take a piece; one that is not `told` is only counted, beside the newest that is kept."""
        self._stderr.feed(data)
        self._shown = None
        if not told and not self._left_out:
            self.hear("stderr", b"\n")  # what was begun is a line
            self.hear("supervisor", FLOOD)
        if not told:
            self._left_out += data.count(b"\n")
            return
        if self._left_out:
            self.hear("supervisor", LEFT_OUT.format(self._left_out).encode())
            self._left_out = 0
        self.hear("stderr", data)

    def noise(self, lines: list[Line]) -> None:
        """Tell of the last lines of a read that are no messages."""
        cut = [(line if isinstance(line, bytes) else line.head)[:NOISE_BYTES] for line in lines[-NOISE_LINES:]]
        data = b"\n".join(cut) + b"\n"
        self._noise.feed(data)
        self.hear("stdout", data)

    def last_stderr(self, lines: int) -> str:
        if self._shown is None or self._shown[0] != lines:  # whoever sees an exit asks: it takes up to 10 ms
            self._shown = lines, self._stderr.text(lines)
        return self._shown[1]

    def last_stdout(self, lines: int) -> str:
        """Return the newest `lines` lines of stdout that were no messages, as `last_stderr` does."""
        return self._noise.text(lines)

    def whole_stderr(self) -> str:
        """Return all that is kept of stderr, the first and the newest."""
        return self._stderr.text()

    def whole_stdout(self) -> str:
        return self._noise.text()


class Tail:
    """The newest `max_bytes` of an output, and what was written before them as far as it is among the first bytes."""

    def __init__(self, mask: Mask | None = None, max_bytes: int = KEPT_BYTES, first_bytes: int = FIRST_BYTES) -> None:
        self._max_bytes = max_bytes
        self._first_bytes = first_bytes
        self._mask = mask or Mask({})
        self._first = b""
        self._kept = b""
        self._whole = True

    def feed(self, data: bytes) -> None:
        if room := self._first_bytes - len(self._first):
            self._first += data[:room]
            data = data[room:]
        kept = self._kept + data[-self._max_bytes :]
        self._whole = self._whole and len(self._kept) + len(data) <= self._max_bytes
        self._kept = kept[-self._max_bytes :]

    def text(self, lines: int | None = None) -> str:
        """Return the newest `lines` lines with everything unprintable escaped, each cut at 1000 characters.

        None: all that is kept, with a line of `GAP` where something is missing.
        """
        if lines is not None and lines <= 0:
            return ""
        newest = self._safe_text(with_first=lines is None).rstrip().split("\n")
        if lines is not None:
            newest = newest[-lines:]
        elif len(newest) > MAX_LINES:
            newest = [*newest[: MAX_LINES // 2], GAP, *newest[-MAX_LINES // 2 :]]
        kept = without_secrets("\n".join(line[: _LINE_CHARACTERS + _BEYOND] for line in newest)).split("\n")
        return "\n".join(visible(line.rstrip("\r")) for line in kept)

    def _safe_text(self, *, with_first: bool) -> str:
        """Return what is kept, masked before it is cut, so that the cut does not hide a part of a secret from the mask.

        Where text is missing, neither what may be the beginning or the rest of a secret that is cut there, nor the line
        that is: what would tell that it is a secret may be gone. A text without any other line begins with a word.
        """
        if self._whole:
            return self._mask((self._first + self._kept).decode(errors="replace"))
        text = self._mask(self._kept.decode(errors="replace"))[self._mask.longest :]
        line, end, rest = text.partition("\n")
        newest = rest if rest.strip() else f"{GAP}{line.partition(' ')[2] or line}{end}"
        if not with_first:
            return newest
        first = self._mask(self._first.decode(errors="replace")).rpartition("\n")[0]
        return f"{first}\n{GAP}\n{newest}"


def visible(text: str) -> str:
    """Return one line of text with unprintable characters as escapes, cut at 1000 characters."""
    if len(text) > _LINE_CHARACTERS:
        text = text[:_LINE_CHARACTERS] + "…"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode() for c in text)
