"""The body of an answer in pieces: whoever sends it decides neither how much is held nor how long others wait.

- What was read at once may be large, once it is decompressed, or any number of tiny chunks: whatever comes of it, even
  nothing, is for the turn of its server (`LoopShare`), and counts for the pace of its stream.
- The readers of the HTTP client stand inside one another, and end properly only where the innermost one is cancelled:
  at the socket, and between many chunks of one read (see `client`). So whoever stops early has it cancelled there. An
  end of the answer that has come is read before: its connection serves again then.
- An event stream is UTF-8, whatever its head says: see `EventReader`.
"""

from __future__ import annotations

import codecs
import math
import zlib
from collections.abc import AsyncIterator, Awaitable, Generator, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final, TypeVar

import httpx2
import trio
from msgspec import Struct

from actors.kit.decoding import LONG_BYTES, Gathered, decode_in_thread
from actors.kit.fairness.share import LoopShare
from actors.transport.http.client.client import BODY_READ_BYTES
from actors.transport.http.head import ENCODING, EVENTS, media_type

OTHER_LINES: Final = 4
"""Of an event beside its data: its name, its id, a pause, and its end."""
PIECE_BYTES = 8 * 1024
"""Of an event stream, whose lines may have one byte each; of a body as much as one read brings."""
_GZIP = zlib.MAX_WBITS | 16
APART_S = (0.01, 0.05)
"""Between two visits to a stream that says much, at least and at most: an answer after it is late by two at most."""
PART = 0.05
"""Between two visits there is this part of the time since the first one."""
AT_ONCE = 5
"""So many visits in a row do not wait for that."""
MOST_EVENTS = 40
"""So many events one visit may bring, and those of the read that brought the last of them; so many lines of nothing,
and those of the same piece."""
T = TypeVar("T")


class StreamEvent(Struct, frozen=True):
    """An event, also one without data. `data` is UTF-8, as it was gathered.

    `id` is the last one that was said; `retry`: milliseconds.
    """

    event: str
    data: bytes | bytearray
    id: str
    retry: int | None


class EventReader:
    """Reads one stream of events (HTML, "Server-sent events", 9.2.6), whose events may have up to `limit` bytes each,
    without their comments.

    What is held until an event is whole are its bytes, whatever the pieces are in which they come: a list of pieces
    would take dozens of times as much for pieces of one byte each, and to join it would keep everybody waiting.

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


class Pace:
    """How often a stream is read that tells of something: such visits are `APART_S` apart, but `AT_ONCE` in a row.

    What one visit tells costs some turns of the loop, about a millisecond, whether it is one event or forty. A server
    that tells of progress a thousand times a second would take hundreds of turns from everybody else; visited at this
    pace it takes twenty, and its socket holds meanwhile what is not read. Whoever says little is read at once. What
    lasts for long may wait a little longer: the answer after a flood of notes is late by a part of the time that it
    took.

    A visit takes all that has gathered, in as many reads as that is, up to `MOST_EVENTS` events. So bytes do not count:
    a large answer is one event of a thousand reads, none of which ends anything, and forty large notes are one visit.
    What the reads cost is for the turn of the server (`LoopShare`), however many there are.

    Lines that bring nothing (comments, blank lines) cost as much as others, and nobody waits for one: they are read at
    this pace on every stream.
    """

    def __init__(self) -> None:
        self._first = math.inf
        self._next = -math.inf
        self._told = 0
        self._more = self._fresh = False

    def read(self, *, more: bool) -> None:
        """Take that there was a read, and whether `more` can be read at once."""
        self._more, self._fresh = more, True

    def tell(self) -> None:
        """Take that an event has ended."""
        self._told += 1

    def due(self, now: float) -> float:
        """Return the moment, maybe past, before which there should be no other read. One read is paused after once."""
        if not (self._fresh and self._told) or (self._more and self._told < MOST_EVENTS):
            return now
        self._told, self._fresh = 0, False
        return self.after(now)

    def after(self, now: float) -> float:
        """Count a visit that ends `now`; return the moment, maybe past, before which there should be no other one."""
        self._first = min(self._first, now)
        least, most = APART_S
        apart = min(max((now - self._first) * PART, least), most)
        self._next = max(self._next, now - AT_ONCE * apart) + apart
        return self._next


class Waiting(Generator[Any, Any, T]):
    """Awaits something once, and knows afterwards whether that had to wait: `waited`."""

    def __init__(self, awaitable: Awaitable[T]) -> None:
        self._steps = awaitable.__await__()
        self.waited = False

    def __await__(self) -> Generator[Any, Any, T]:
        return self

    def send(self, value: Any) -> Any:
        trap = self._steps.send(value)
        self.waited = True
        return trap

    def throw(self, *error: Any) -> Any:
        return self._steps.throw(*error)


class _Pieces:
    """An answer, decompressed, at most `most` bytes at once. Raises `httpx2.DecodingError` if it is not as it says."""

    def __init__(self, response: httpx2.Response, share: LoopShare, most: int, pace: Pace | None) -> None:
        self.raw = response.aiter_raw()
        self._share = share
        self._most = most
        self._socket = response.extensions.get("network_stream")
        self.pace = pace
        self._rest = b""
        self._at = 0
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if encoding not in ("", "identity", ENCODING):
            raise httpx2.DecodingError("an encoding that was not asked for")
        self._unpack = zlib.decompressobj(_GZIP) if encoding == ENCODING else None

    def __aiter__(self) -> _Pieces:
        return self

    async def __anext__(self) -> bytes:
        await self._share.turn()
        while not (piece := self._take()):
            if self.pace is not None and (due := self.pace.due(trio.current_time())) > trio.current_time():
                await trio.sleep_until(due)
            step = Waiting(anext(self.raw))
            self._rest, self._at = await step, 0
            if self.pace is not None and step.waited:  # else it was of the last read: a chunk of many
                self.pace.read(more=self._socket is not None and bool(self._socket.get_extra_info("is_readable")))
            await self._share.turn()
        return piece

    def _take(self) -> bytes:
        if self._unpack is None:
            begin, self._at = self._at, self._at + self._most
            return self._rest[begin : self._at]
        if self._unpack.eof:  # what follows is dropped
            return b""
        try:
            piece = self._unpack.decompress(self._rest, self._most)
        except zlib.error as error:
            raise httpx2.DecodingError("not what it says") from error
        self._rest = self._unpack.unconsumed_tail
        return piece


@asynccontextmanager
async def _reading(
    response: httpx2.Response, share: LoopShare, most: int, pace: Pace | None = None
) -> AsyncIterator[_Pieces]:
    """Read an answer for the block, and no further."""
    pieces = _Pieces(response, share, most, pace)
    try:
        yield pieces
    finally:
        with trio.move_on_after(0, shield=True):
            async for _ in pieces.raw:
                await trio.lowlevel.cancel_shielded_checkpoint()


class _Told:
    """The events of a stream, as many as the turn of its server allows."""

    def __init__(self, pieces: _Pieces, pace: Pace, limit: int, share: LoopShare) -> None:
        self._pieces = pieces
        self._pace = pace
        self._share = share
        self._reader = EventReader(limit)
        self._ended: Iterator[StreamEvent] = iter(())

    def __aiter__(self) -> _Told:
        return self

    async def __anext__(self) -> StreamEvent:
        await self._share.turn()
        while (event := next(self._ended, None)) is None:
            if self._reader.idle >= MOST_EVENTS:
                self._reader.idle = 0
                await trio.sleep_until(self._pace.after(trio.current_time()))
            self._ended = self._reader.feed(await anext(self._pieces))
        self._pace.tell()
        return event


@asynccontextmanager
async def events(
    response: httpx2.Response, limit: int, share: LoopShare, *, paced: bool = False
) -> AsyncIterator[AsyncIterator[StreamEvent]]:
    """Read the events of a stream for the block, each up to `limit` bytes; it may be left at any of them.

    `paced`: it is about one request, so that only that one waits for what is read a little later; see `Pace`.
    `httpx2.SSEError` for a larger one, and for an answer that is no such stream.
    """
    if media_type(response.headers.get("content-type", "")) != EVENTS:
        raise httpx2.SSEError("no event stream")
    pace = Pace()
    async with _reading(response, share, PIECE_BYTES, pace if paced else None) as pieces:
        yield _Told(pieces, pace, limit, share)


async def whole(response: httpx2.Response, limit: int, share: LoopShare) -> bytes | None:
    """Return a body; None for one over the limit, of which no more is read."""
    body = Gathered()
    async with _reading(response, share, BODY_READ_BYTES) as pieces:
        async for piece in pieces:
            body.add(piece)
            if body.size > limit:
                return None
    return await body.whole()


async def frozen(body: bytes | bytearray) -> bytes:
    """Return bytes that were gathered. A checkpoint if they are many."""
    return bytes(body) if len(body) < LONG_BYTES else await decode_in_thread(partial(bytes, body))
