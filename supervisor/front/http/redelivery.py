"""What was said on the answer streams of sessions, kept for clients whose connection breaks.

Source: MCP 2025-11-25, basic/transports, "Resumability and Redelivery". Rules of this file:
- An event id is worth something only in the session in which it was given, as long as this process lives.
- What is kept is bounded for a stream, a session and the daemon; the oldest goes first. The answer is the last event of
  its stream, and one that is too large to be kept is kept as an error that says so.
- A stream has one reader. Who resumes it takes it from whoever had it, and nothing is said there any more.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable
from typing import Final

import trio

from actors.errors import CallTooLarge
from supervisor.config import Settings
from supervisor.service.port import failure

EVENT_COST: Final = 200
"""What an event is counted for besides its bytes."""
STREAM_COST: Final = 1500
"""The same of a stream of which something is kept."""
SWEPT: Final = 1000
"""Events that are dropped at a time, at most, when their time is over: all at once would hold up everybody."""
MAX_ID_BYTES: Final = 64


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
        parts = event.split(b"-") if len(event) <= MAX_ID_BYTES else []
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
