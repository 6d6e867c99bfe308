"""Bytes of a pipe to lines, and lines to those that can be a JSON-RPC message.

Framing of the stdio transport: one JSON text per line, no newline inside (MCP 2025-11-25 basic/transports "stdio";
MCP 2026-07-28 basic/transports/stdio). Real servers also write `\\r\\n`, byte order marks and banners; the first two
are tolerated here (RFC 8259 section 8.1), the last are told apart by `may_be_message`.

A line over the limit costs the call that it answers, not its server: its middle is thrown away as it comes, its ends
are kept to read an id from. Only a line that does not end at all is a violation.

Pure. The cost is linear in the bytes: parts of a long line are joined once, when its end is there, and those of a very
long one by whoever has a thread for it.
"""

from __future__ import annotations

import msgspec

from actors.errors import ProtocolViolation, TruncatedMessage
from actors.protocol.wire import json

HEAD_BYTES = 16 * 1024
"""What is kept of the beginning of a line over the limit. Most servers write the id before the result."""
TAIL_BYTES = 512
"""What is kept of its end. The rest of them write the id last."""
ENDLESS_LINES = 16
"""A line that is this many times the limit will not end."""
LONG_BYTES = 1024 * 1024
"""A line from that size on is given out in pieces: joining them takes milliseconds, as all of it is fresh memory."""
_BOM = b"\xef\xbb\xbf"
_ONE_LINE = bytes.maketrans(b"\r\n", b"  ")
_SLACK_BYTES = len(_BOM) + 1
"""A mark and a carriage return do not count, but whether they are there may not be known yet."""


def one_line(message: bytes) -> bytes:
    """Return a message as one line, without its end.

    Arguments and results are passed on as they were written, often over many lines, but a line is a message here. JSON
    strings cannot hold a line break, so each one is white space. Nobody can smuggle a message of his own this way.
    """
    return message.translate(_ONE_LINE) if b"\n" in message or b"\r" in message else message


class Oversized(msgspec.Struct, frozen=True):
    """A line over the limit, all in bytes. `tail` is empty, and `size` what was read of it, if it does not end."""

    size: int
    limit: int
    head: bytes
    tail: bytes


Line = bytes | Oversized


class Pieces(msgspec.Struct, frozen=True):
    """A long line as it came in, without its end; `limit` in bytes."""

    parts: list[bytes]
    limit: int

    def line(self) -> Line | None:
        """Return the line, None if it is blank. Takes a millisecond a MiB, in which other threads can run."""
        return _clean(b"".join(self.parts), self.limit)


class _Cut:
    """A line over the limit that is still coming in."""

    __slots__ = ("head", "size", "tail")

    def __init__(self) -> None:
        self.head = b""
        self.tail = b""
        self.size = 0

    def add(self, part: bytes) -> None:
        self.size += len(part)
        self.head += part[: HEAD_BYTES + len(_BOM) - len(self.head)]
        self.tail = (self.tail + part[-TAIL_BYTES - 1 :])[-TAIL_BYTES - 1 :]

    def line(self, limit: int) -> Oversized:
        """Return it as it would be, had it come in one piece."""
        size = self.size - len(_BOM) * self.head.startswith(_BOM) - self.tail.endswith(b"\r")
        head = self.head.removeprefix(_BOM)[: min(size, HEAD_BYTES)]
        return Oversized(size, limit, head, self.tail.removesuffix(b"\r")[-min(size, TAIL_BYTES) :])


class LineSplitter:
    """Cuts a stream into lines of at most `max_line_bytes`, the end of line and a byte order mark not counted.

    Lines from `long_bytes` on come in pieces.
    """

    def __init__(self, max_line_bytes: int, long_bytes: int = LONG_BYTES) -> None:
        self._max_line_bytes = max_line_bytes
        self._long_bytes = long_bytes
        self._max_cut_bytes = max_line_bytes * ENDLESS_LINES
        self._parts: list[bytes] = []
        self._size = 0
        self._cut: _Cut | None = None
        self.endless = False

    def violation(self) -> ProtocolViolation:
        return ProtocolViolation(f"a line of the output does not end: it is over {self._max_cut_bytes} bytes")

    def feed(self, data: bytes) -> list[Line | Pieces]:
        """Return the lines that `data` completes, without their ends and without blank ones.

        A line that does not end comes last, once, and the splitter is `endless`: to feed it more raises the violation.
        """
        if self.endless:
            raise self.violation()
        lines: list[Line | Pieces] = []
        *ends, rest = data.split(b"\n")
        for end in ends:
            if not self._size:  # a whole line, of which there may be ten thousand: mostly there is nothing to do
                if not end:
                    continue
                if end.startswith(b"{") and end.endswith(b"}") and len(end) <= self._max_line_bytes:
                    lines.append(end)
                    continue
            if not self._keep(end, lines):
                return lines
            line = self._finish()
            if line:
                lines.append(line)
        if rest:
            self._keep(rest, lines)
        return lines

    def close(self) -> list[Line]:
        """Say that no more bytes come; return the last line if only its end is missing.

        Raises `TruncatedMessage` if it is the beginning of a message.
        """
        size, line = self._size, self._finish()
        if isinstance(line, Pieces):
            line = line.line()
        if line is None:
            return []
        if _is_half(line):
            raise TruncatedMessage(f"the output ended in the middle of a message, after {size} bytes of it")
        return [line]

    def _keep(self, part: bytes, lines: list[Line | Pieces]) -> bool:
        """Add to the present line, of which only the ends are kept once it is over the limit.

        False if it does not end: then what is known of it is the last line that was found.
        """
        self._size += len(part)
        if self._size <= self._max_line_bytes + _SLACK_BYTES:
            self._parts.append(part)
            return True
        if self._cut is None:
            self._cut = _Cut()
            for each in self._parts:
                self._cut.add(each)
            self._parts.clear()
        self._cut.add(part)
        if self._size <= self._max_cut_bytes:
            return True
        self.endless = True
        head = self._cut.line(self._max_line_bytes).head[: self._max_cut_bytes - len(_BOM)]
        lines.append(Oversized(self._max_cut_bytes, self._max_line_bytes, head, b""))
        return False

    def _finish(self) -> Line | Pieces | None:
        cut, self._cut = self._cut, None
        size, self._size = self._size, 0
        if cut is not None:
            return cut.line(self._max_line_bytes)
        parts, self._parts = self._parts, []
        if size >= self._long_bytes and len(parts) > 1:
            return Pieces(parts, self._max_line_bytes)
        return _clean(parts[0] if len(parts) == 1 else b"".join(parts), self._max_line_bytes)


def _clean(line: bytes, limit: int) -> Line | None:
    """Return a line without marks and carriage return, None if it is blank."""
    line = line.removesuffix(b"\r").removeprefix(_BOM)
    if len(line) > limit:
        return Oversized(len(line), limit, line[:HEAD_BYTES], line[-TAIL_BYTES:])
    line = line.lstrip(b"\0")  # what a line of UTF-16 leaves of its newline
    return None if not line or line.isspace() else line


def _is_half(line: Line) -> bool:
    """Whether a line without an end is the beginning of a message; a message of up to 1 MiB is tried."""
    if isinstance(line, Oversized) or not (line.lstrip().startswith(b"{") or may_be_message(line)):
        return may_be_message(line)
    try:
        if len(line) < LONG_BYTES:
            json.read(json.ANY, line)
    except json.UnreadableJson:
        return True
    return not line.rstrip().endswith((b"}", b"]"))


def may_be_message(line: Line) -> bool:
    """Whether a line can be meant as JSON-RPC: an object or a batch that has the word `jsonrpc` or `id` in it.

    Cheap on purpose; whoever decodes the message decides. Everything else is noise: a banner, a log line, half a line.
    """
    if isinstance(line, Oversized):
        return line.head.lstrip().startswith((b"{", b"["))
    return (b'"jsonrpc"' in line or b'"id"' in line) and line.lstrip().startswith((b"{", b"["))
