"""What a server writes beside its messages: stderr, and lines of stdout that are no messages. Pure.

The newest of both is kept here for one connection; whoever wants all of it listens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from actors.protocol.wire.framing import Line
from actors.transport.mask import Mask
from actors.transport.tail import Tail

Source = Literal["stderr", "stdout", "supervisor"]
"""Where a line about a server comes from: its stderr, noise on its stdout, or us."""

Hear = Callable[[Source, bytes], None]
"""Takes a piece of stderr, or whole lines of stdout that are no messages. Must not block or raise."""

NOISE_LINES = 20
"""Of one read, that many lines that are no messages are told of."""
NOISE_BYTES = 64 * 1024
"""Of each; a line may be as long as a message."""
NOISE_KEPT_BYTES = 16 * 1024
"""The newest of them are kept: a server that ends may have said there why."""


def ignore(source: Source, data: bytes) -> None:
    """Take no notice."""


class Asides:
    """Of one connection. `hear` may be set at any time; it gets what comes from then on."""

    def __init__(self, max_bytes: int, mask: Mask | None = None) -> None:
        self.hear: Hear = ignore
        self._tail = Tail(max_bytes, mask)
        self._noise = Tail(NOISE_KEPT_BYTES, mask)
        self._shown: tuple[int, str] | None = None

    def stderr(self, data: bytes) -> None:
        self._tail.feed(data)
        self._shown = None
        self.hear("stderr", data)

    def noise(self, lines: list[Line]) -> None:
        """Tell of the last lines of a read that are no messages."""
        self._hear_stdout(b"\n".join(_cut(line) for line in lines[-NOISE_LINES:]) + b"\n")

    def nonsense(self, line: Line) -> None:
        """Tell of a line that looked like a message and is none."""
        self._hear_stdout(_cut(line) + b"\n")

    def last_stderr(self, lines: int) -> str:
        if self._shown is None or self._shown[0] != lines:  # whoever sees an exit asks: it takes up to 10 ms
            self._shown = lines, self._tail.text(lines)
        return self._shown[1]

    def last_stdout(self, lines: int) -> str:
        """Return the newest `lines` lines of stdout that were no messages, as `last_stderr` does."""
        return self._noise.text(lines)

    def _hear_stdout(self, lines: bytes) -> None:
        self._noise.feed(lines[-NOISE_KEPT_BYTES:])
        self.hear("stdout", lines)


def _cut(line: Line) -> bytes:
    return (line if isinstance(line, bytes) else line.head)[:NOISE_BYTES]
