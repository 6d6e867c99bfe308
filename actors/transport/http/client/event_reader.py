"""The events of a stream out of its pieces (HTML, "Server-sent events", 9.2.6). Pure.

What is held until an event is whole are its bytes, whatever the pieces are in which they come: a list of pieces would
take dozens of times as much for pieces of one byte each, and to join it would keep everybody waiting.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import httpx2
from msgspec import Struct

OTHER_LINES: Final = 4
"""Of an event beside its data: its name, its id, a pause, and its end."""


class StreamEvent(Struct, frozen=True):
    """An event, also one without data. `data` is UTF-8, as it was gathered.

    `id` is the last one that was said; `retry`: milliseconds.
    """

    event: str
    data: bytes | bytearray
    id: str
    retry: int | None


class EventReader:
    """Reads one stream, whose events may have up to `limit` bytes each, without their comments.

    `idle`: how many lines brought nothing so far; the data of an event pays for `OTHER_LINES` beside its own.
    """

    def __init__(self, limit: int) -> None:
        self.idle = 0
        self._limit = limit
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._line = bytearray()
        self._after_return = False
        self._size = 0
        self._begun = False
        self._event = self._id = ""
        self._data: bytearray | None = None
        self._retry: int | None = None

    def feed(self, piece: bytes) -> Iterator[StreamEvent]:
        """Yield the events that end in the next piece. All of them, before it is given another one.

        Raises `httpx2.SSEError` for one over the limit.
        """
        text = self._decode(piece).encode()
        if self._after_return and text:
            text, self._after_return = text.removeprefix(b"\n"), False
        if not text:
            return
        self._after_return = text.endswith(b"\r")
        lines = text.splitlines()
        rest = b"" if text.endswith((b"\n", b"\r")) else lines.pop()
        for line in lines:
            whole: bytes | bytearray = line
            if self._line:
                whole, self._line = self._line, bytearray()
                whole += line
            if (event := self._take(whole)) is not None:
                yield event
        self._line += rest
        self._check(len(self._line))

    def _take(self, line: bytes | bytearray) -> StreamEvent | None:
        self.idle += 1
        if not line:
            return self._end()
        if line.startswith(b":"):
            return None
        self._size += len(line)
        self._check()
        colon = line.find(b":")
        name, start = (line, len(line)) if colon < 0 else (line[:colon], colon + 1)
        if name == b"data" and self._data is None and isinstance(line, bytearray):
            del line[: start + (line[start : start + 1] == b" ")]  # which moves nothing: it may be a large answer
            self._data, self._begun = line, True
            self.idle -= 1
            return None
        with memoryview(line) as view:
            self._set(name, view[start + 1 :] if line[start : start + 1] == b" " else view[start:])
        return None

    def _set(self, name: bytes | bytearray, value: memoryview) -> None:
        if name == b"data":
            self.idle -= 1
            if self._data is None:
                self._data = bytearray()
            else:
                self._data += b"\n"
            self._data += value
        elif name == b"event":
            self._event = str(value, "utf-8")
        elif name == b"id" and b"\0" not in (said := bytes(value)):
            self._id = said.decode()
        elif name == b"retry" and (said := bytes(value)).isdigit():
            with suppress(ValueError):  # more digits than Python reads
                self._retry = int(said)
        else:
            return
        self._begun = True

    def _end(self) -> StreamEvent | None:
        begun, self._begun, self._size = self._begun, False, 0
        if not begun:
            return None
        if self._data is not None:
            self.idle = max(0, self.idle - OTHER_LINES)
        event = StreamEvent(self._event or "message", self._data or bytearray(), self._id, self._retry)
        self._event, self._data, self._retry = "", None, None
        return event

    def _check(self, more: int = 0) -> None:
        if self._size + more > self._limit:
            raise httpx2.SSEError(f"an event has more than {self._limit} bytes")
