"""Answers that are event streams (WHATWG HTML, "Server-sent events"), and what is kept of them for broken connections.

- A stream is only begun where there is a reason. It ends when the client is gone, when the daemon closes, when somebody
  cancels its scope, or when its owner says so.
- A request runs where it always runs, needs no nursery, and is never cancelled by its stream: what is said before its
  answer, messages and comments that keep it alive, is sent by a task of `KeepAlive`, which is only made for requests
  that are late, or about which something is said.
- An event id is worth something only in the session in which it was given, as long as this process lives (MCP
  2025-11-25, basic/transports, "Resumability and Redelivery").
- What is kept is bounded for a stream, a session and the daemon; the oldest goes first. The answer is the last event of
  its stream, and one that is too large to be kept is kept as an error that says so.
- A stream has one reader. Who resumes it takes it from whoever had it, and nothing is said there any more.
"""

from __future__ import annotations

import logging
import secrets
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import trio

from actors.errors import CallTooLarge
from supervisor.config import Settings
from supervisor.front.edge.request import HttpRequest, Lines
from supervisor.front.edge.wire import Leaving, Timeouts
from supervisor.front.listen import Change, Watch
from supervisor.service.port import failure

_PART_BYTES: Final = 1024 * 1024
"""Longer messages are not joined with what is around them: that would copy them once more."""

_EVENTS: Final[Lines] = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
_EVENT: Final = b"event: message\ndata: "
_EVENT_END: Final = b"\n\n"
_ID: Final = b"id: %s\n"
_PRIMER: Final = b"id: %s\nretry: %d\ndata: \n\n"
_ONE_LINE: Final = bytes.maketrans(b"\n\r", b"  ")
"""Relayed JSON may be laid out over lines. Raw line ends occur in JSON only between tokens."""
_COMMENT: Final = b": ping\n\n"


async def cancel_when_set(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


class EventStream(msgspec.Struct, frozen=True, eq=False):
    """A committed `text/event-stream` answer; one sender at a time."""

    _request: HttpRequest

    async def open(self, primer: bytes = b"", retry_ms: int = 0) -> None:
        """Send the head and a comment, so that the client sees the stream at once.

        `primer` is the id of an event without a message, instead of the comment; `retry_ms` when to come back after it.
        """
        await self._start(())
        await (self._part(_PRIMER % (primer, retry_ms)) if primer else self.comment())

    async def answer(self, message: bytes, headers: Lines = ()) -> None:
        await self._start(headers)
        await self.event(message)
        await self.close()

    async def event(self, message: bytes, id_: bytes = b"") -> None:
        """Send one JSON-RPC message; `id_` is that of the event, empty if it has none."""
        if b"\n" in message or b"\r" in message:
            message = message.translate(_ONE_LINE)
        start = _ID % id_ + _EVENT if id_ else _EVENT
        if len(message) <= _PART_BYTES:
            await self._part(start + message + _EVENT_END)
            return
        for part in (start, message, _EVENT_END):  # not joined: that would copy it once more
            await self._part(part)

    async def events(self, messages: Sequence[bytes], ids: Sequence[bytes] = ()) -> None:
        """Send several small JSON-RPC messages at once; `ids` are those of the events, none or one for each."""
        parts = [_EVENT + message.translate(_ONE_LINE) + _EVENT_END for message in messages]
        if ids:
            parts = [_ID % id_ + part for id_, part in zip(ids, parts, strict=True)]
        await self._part(b"".join(parts))

    async def comment(self) -> None:
        await self._part(_COMMENT)

    async def close(self) -> None:
        await self._request.end()

    async def _start(self, headers: Lines) -> None:
        await self._request.start(200, (*_EVENTS, *headers))

    async def _part(self, data: bytes) -> None:
        await self._request.send(data)


EVENT_COST: Final = 200
"""What an event is counted for besides its bytes."""
STREAM_COST: Final = 1500
"""The same of a stream of which something is kept."""
SWEPT: Final = 1000
"""Events that are dropped at a time, at most, when their time is over: all at once would hold up everybody."""
_MAX_ID_BYTES: Final = 64


class Track:
    """What was said on one stream and may be said again, numbered from 1; `request` is the id of its request as JSON.

    `primed`: its client takes an event without a message. `taken`: somebody has resumed it. `over`: all is said.
    """

    __slots__ = ("_keeper", "_reader", "_spoken", "bytes", "events", "number", "over", "primed", "request", "session")

    def __init__(self, keeper: Redelivery, session: str, number: int, request: bytes, *, primed: bool) -> None:
        self._keeper = keeper
        self._reader: trio.CancelScope | None = None
        self._spoken = trio.lowlevel.ParkingLot()
        self.session = session
        self.number = number
        self.request = request
        self.primed = primed
        self.events: deque[tuple[int, bytes]] = deque()
        self.bytes = 0
        self.over = False

    @property
    def taken(self) -> bool:
        return self._reader is not None

    def id(self, place: int) -> bytes:
        return b"%s-%d-%d" % (self._keeper.life, self.number, place)

    def add(self, place: int, message: bytes) -> None:
        """Keep what is said, as the event of this number."""
        self._keeper.keep(self, place, message)
        if self._spoken:
            self._spoken.unpark_all()

    def end(self, place: int, answer: bytes) -> None:
        """Keep the answer; nothing is said after it."""
        self.over = True
        if len(answer) + EVENT_COST + STREAM_COST > self._keeper.settings.resume_max_session_bytes:
            answer = failure(self.request, CallTooLarge("the answer was too large to be kept until you came back")).body
        self.add(place, answer)
        self._keeper.expire_later(self)

    def after(self, place: int) -> list[tuple[int, bytes]]:
        """Return what was said after the event of this number, as far as it is kept."""
        return [event for event in self.events if event[0] > place]

    def take(self, reader: trio.CancelScope) -> None:
        """Be the one who reads it from now on; whoever did so before is cancelled."""
        if self._reader is not None:
            self._reader.cancel()
        self._reader = reader

    async def more(self) -> None:
        await self._spoken.park()


class Redelivery:
    """The streams of all sessions that can be resumed. `clock` gives seconds."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = trio.current_time) -> None:
        self.settings = settings
        self.bytes = 0
        self.life = secrets.token_hex(4).encode()
        self._clock = clock
        self._number = 0
        self._tracks: dict[int, Track] = {}
        self._laden: dict[int, Track] = {}
        self._sessions: dict[str, dict[int, Track]] = {}
        self._session_bytes: dict[str, int] = {}
        self._ended: deque[tuple[float, int]] = deque()

    def __len__(self) -> int:
        return len(self._tracks)

    def begin(self, session: str, request: bytes, *, primed: bool) -> Track:
        """Return a new stream of the session with this digest."""
        self.sweep()
        self._number += 1
        track = self._tracks[self._number] = Track(self, session, self._number, request, primed=primed)
        return track

    def find(self, session: str, event: bytes) -> tuple[Track, int] | None:
        """Return the stream of an event and its number on it; None if this session has none of this id here."""
        self.sweep()
        parts = event.split(b"-") if len(event) <= _MAX_ID_BYTES else []
        if len(parts) != 3 or parts[0] != self.life or not (parts[1].isdigit() and parts[2].isdigit()):
            return None
        track = self._tracks.get(int(parts[1]))
        return None if track is None or track.session != session else (track, int(parts[2]))

    def keep(self, track: Track, place: int, message: bytes) -> None:
        """Keep an event of a stream, and drop what there is no room for any more."""
        if not track.events:
            self._laden[track.number] = track
            self._sessions.setdefault(track.session, {})[track.number] = track
            self._count(track, STREAM_COST)
        track.events.append((place, message))
        size = len(message) + EVENT_COST
        if len(track.events) > self.settings.resume_max_events:
            size -= len(track.events.popleft()[1]) + EVENT_COST
        self._count(track, size)
        while self._session_bytes.get(track.session, 0) > self.settings.resume_max_session_bytes:
            self._drop(next(iter(self._sessions[track.session].values())))
        while self.bytes > self.settings.resume_max_bytes:
            self._drop(next(iter(self._laden.values())))

    def expire_later(self, track: Track) -> None:
        """All is said on a stream: from now on it is kept for a while."""
        self._ended.append((self._clock() + self.settings.resume_s, track.number))

    def sweep(self) -> None:
        now, left = self._clock(), SWEPT
        while self._ended and self._ended[0][0] <= now and left > 0:
            track = self._tracks.get(self._ended[0][1])
            while track is not None and track.events and left > 0:
                self._drop(track)
                left -= 1
            if track is None or not track.events:
                self._ended.popleft()

    def _count(self, track: Track, size: int) -> None:
        self.bytes += size
        track.bytes += size
        self._session_bytes[track.session] = self._session_bytes.get(track.session, 0) + size

    def _drop(self, track: Track) -> None:
        """Drop the oldest event of a stream, and the stream with the last one, if it is over."""
        _, message = track.events.popleft()
        self._count(track, -len(message) - EVENT_COST)
        if track.events:
            return
        self._count(track, -STREAM_COST)
        del self._laden[track.number]
        if track.over:
            del self._tracks[track.number]
        streams = self._sessions[track.session]
        del streams[track.number]
        if not streams:
            del self._sessions[track.session], self._session_bytes[track.session]


log = logging.getLogger(__name__)

MAX_SAID: Final = 256
_MAX_SAID_BYTES: Final = 512 * 1024
"""What may wait to be said to the client of one request."""
PACE_S: Final = 0.01
"""Between two writes of what is said: a thousand messages a second are a hundred writes, and as many turns."""
_RETRY_MS: Final = 1000
"""After this time a client comes back whose connection broke."""
_LOOK_S: Final = 0.01
"""How long is looked whether the client is still there before its answer becomes a stream."""


class AnswerStream(msgspec.Struct, eq=False):
    """The answer to one request, an event stream as soon as anything comes before it; a `Voice`.

    What waits to be said is bounded; what does not fit is refused. `committed`: the answer has to be an event.
    `tracked` begins a record of it, from which its client can go on after its connection broke; None: it cannot.
    """

    _keeper: KeepAlive
    _stream: EventStream
    _leaving: Leaving
    committed: bool = False
    _said: deque[bytes] | None = None
    _bytes: int = 0
    _opened: bool = False
    _gone: bool = False
    _over: bool = False
    _lock: trio.Lock | None = None
    _nap: trio.CancelScope | None = None
    tracked: Callable[[], Track] | None = None
    _track: Track | None = None
    _place: int = 0
    _sent: int = 0

    def say(self, message: bytes) -> bool:
        """Send a message before the answer; see `Voice.say`."""
        if self._over or (self._gone and self._track is None):
            return False
        if self._said is None:
            self._said = deque()
            self._commit()
            self._keeper.hurry(self)
        elif self._elsewhere:
            self._keep(message)
            return True
        elif len(self._said) >= MAX_SAID or self._bytes + len(message) > _MAX_SAID_BYTES:
            return False
        self._keep(message)
        self._said.append(message)
        self._bytes += len(message)
        if self._nap is not None:
            self._nap.cancel()
        return True

    async def finish(self, body: bytes) -> None:
        self._commit()
        self._place += 1
        if self._track is not None:  # before anything that waits for a client that may be there no more
            self._track.end(self._place, body)
        async with self._turn():
            if not self._elsewhere:
                await self._open()
                await self._flush()
            if not self._elsewhere:
                await self._stream.event(body, self._id())
            if self._opened:
                await self._stream.close()

    def over(self) -> None:
        """The answer is there: nothing else is sent from now on but by `finish`."""
        self._over = True
        if self._nap is not None:
            self._nap.cancel()

    async def keep_alive(self, interval_s: float) -> None:
        """Send what is said, and comments where nothing is, until the answer is there or the client is gone."""
        try:
            if not await self._pause(_LOOK_S):
                await self._speak(interval_s)
        except Exception:  # the border: the trouble of one connection must not end what keeps the others alive
            log.debug("a late answer's stream broke", exc_info=True)
            self._gone = True

    async def _speak(self, interval_s: float) -> None:
        async with self._turn():
            if not self._over:
                await self._open()
                await self._flush()
        while not await self._pause(interval_s):
            async with self._turn():
                if self._over or self._elsewhere:
                    return
                if self._said:
                    await self._flush()
                else:
                    await self._stream.comment()
            await trio.sleep(PACE_S)

    def _turn(self) -> trio.Lock:
        self._lock = self._lock or trio.Lock()
        return self._lock

    async def _open(self) -> None:
        if not self._opened:
            self._opened = True
            self._commit()
            track = self._track
            if track is not None and track.primed:
                await self._stream.open(track.id(0), _RETRY_MS)
            else:
                await self._stream.open()

    def _commit(self) -> None:
        self.committed = True
        if self.tracked is not None and self._track is None:
            self._track = self.tracked()

    @property
    def _elsewhere(self) -> bool:
        """Whether the client can only hear the rest on another connection."""
        return self._track is not None and (self._gone or self._track.taken)

    def _keep(self, message: bytes) -> None:
        if self._track is not None:
            self._place += 1
            self._track.add(self._place, message)

    def _id(self) -> bytes:
        self._sent += 1
        return b"" if self._track is None else self._track.id(self._sent)

    async def _flush(self) -> None:
        while self._said and not self._elsewhere:
            together = [self._said.popleft()]
            size = len(together[0])
            while self._said and size + len(self._said[0]) <= _PART_BYTES:
                together.append(self._said.popleft())
                size += len(together[-1])
            self._bytes -= size
            if len(together) == 1:
                await self._stream.event(together[0], self._id())
            else:
                ids = [self._id() for _ in together] if self._track is not None else ()
                await self._stream.events(together, ids)

    async def _pause(self, seconds: float) -> bool:
        """Wait until there is something to do, or for some seconds; return whether there is no need to go on."""
        if self._said and self._opened:
            return self._over
        with trio.move_on_after(seconds) as self._nap:
            # Sending to a client that is gone could end the request, and in the legacy era it must not.
            await self._leaving.wait()
            self._gone = True
            return True
        self._nap = None
        return self._over


class KeepAlive:
    """Keeps the requests that take longer than `interval_s` alive; `run` has to run somewhere."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._waiting: Timeouts[AnswerStream] = Timeouts(interval_s, self._begin)
        self._nursery: trio.Nursery | None = None

    def add(self, request: HttpRequest) -> AnswerStream:
        """Watch a request. Every `add` needs a `remove`."""
        late = AnswerStream(self, EventStream(request), request.leaving)
        self._waiting.add(late)
        return late

    def remove(self, late: AnswerStream) -> None:
        """Watch it no more: its answer is there, or it was cancelled."""
        self._waiting.discard(late)
        late.over()

    def hurry(self, late: AnswerStream) -> None:
        """Something is to be said to this client now. Without `run` it is said with the answer."""
        if self._nursery is not None and self._waiting.discard(late):
            self._begin(late)

    def _begin(self, late: AnswerStream) -> None:
        if self._nursery is not None:
            self._nursery.start_soon(late.keep_alive, self._interval_s)

    async def run(self) -> None:
        """Run until cancelled. A task is spent on a request only when it is late, or something is said before."""
        async with trio.open_nursery() as self._nursery:
            try:
                await self._waiting.run()
            finally:
                self._nursery = None  # a server may tell of a call until its actor has ended, after us


async def notify(
    stream: EventStream,
    watch: Watch,
    leaving: Leaving,
    *,
    message: Callable[[Change], bytes],
    go_on: Callable[[], bool],
    closing: trio.Event,
    keepalive_s: float,
) -> None:
    """Send what `watch` finds until the stream is over.

    `go_on` is asked after each round, and at least every `keepalive_s`. A checkpoint.
    """
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cancel_when_set, closing, nursery.cancel_scope)
        with leaving.ends(nursery.cancel_scope):
            while go_on():
                due = await watch.next(trio.current_time() + keepalive_s)
                for change in due:
                    await stream.event(message(change))
                if not due:
                    await stream.comment()
        nursery.cancel_scope.cancel()
