"""Bytes of a pipe to lines, and lines to those that can be a JSON-RPC message.

Framing of the stdio transport: one JSON text per line, no newline inside (MCP 2025-11-25 basic/transports "stdio";
MCP 2026-07-28 basic/transports/stdio). Real servers also write `\\r\\n`, a byte order mark and banners; the first two
are tolerated here, the last is told apart by `is_message`.

PURE. The cost is linear in the bytes: parts of a long line are joined once, when its end is there.
"""

from __future__ import annotations

from actors.errors import ProtocolViolation, TruncatedMessage

_BOM = b"\xef\xbb\xbf"


class LineSplitter:
    """Cuts a stream into lines of at most `max_line_bytes`, the end of line not counted."""

    def __init__(self, max_line_bytes: int) -> None:
        self._max_line_bytes = max_line_bytes
        self._parts: list[bytes] = []
        self._size = 0
        self._first = True

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that `data` completes, without their ends and without blank ones.

        Raises `ProtocolViolation` for a line that is too long; the splitter must not be used after that.
        """
        if b"\n" not in data:
            self._keep(data)
            return []
        *ends, rest = data.split(b"\n")
        if self._parts:
            self._parts.append(ends[0])
            ends[0] = b"".join(self._parts)
            self._parts.clear()
            self._size = 0
        if self._first:
            ends[0] = ends[0].removeprefix(_BOM)
            self._first = False
        lines = [line for end in ends if (line := self._checked(end))]
        if rest:
            self._keep(rest)
        return lines

    def close(self) -> None:
        """Say that no more bytes come. Raises `TruncatedMessage` if the last line has no end and is not blank."""
        half = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        if self._first:
            half = half.removeprefix(_BOM)
        if half and not half.isspace():
            raise TruncatedMessage(f"the output ended in the middle of a message, after {len(half)} bytes of it")

    def _checked(self, end: bytes) -> bytes:
        """Return the line without its carriage return, empty if it is blank."""
        line = end[:-1] if end.endswith(b"\r") else end
        if len(line) > self._max_line_bytes:
            raise self._too_long()
        return b"" if line.isspace() else line

    def _keep(self, part: bytes) -> None:
        self._parts.append(part)
        self._size += len(part)
        # The mark and a carriage return do not count, but whether they are there may not be known yet.
        slack = 1 + len(_BOM) if self._first else 1
        if self._size > self._max_line_bytes + slack:
            self._parts.clear()
            raise self._too_long()

    def _too_long(self) -> ProtocolViolation:
        return ProtocolViolation(f"a line of the output is over the limit of {self._max_line_bytes} bytes")


def is_message(line: bytes) -> bool:
    """Whether a line can be a JSON-RPC message: an object in valid UTF-8 that has the word `jsonrpc` in it.

    Cheap on purpose; whoever decodes the message decides. Everything else is noise: a banner, a log line, half a line.
    """
    if not (line.startswith(b"{") or line.lstrip().startswith(b"{")) or b'"jsonrpc"' not in line:
        return False
    if line.isascii():
        return True
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
