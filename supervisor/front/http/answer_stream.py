"""What a client hears before the answer to its request, over HTTP: messages, comments that keep it alive.

A request runs where it always runs, needs no nursery, and is never cancelled by this: what is said before its answer is
sent by a task of `KeepAlive`, which is only made for requests that are late, or about which something is said.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Final

import msgspec
import trio

from supervisor.front.edge.leaving import Leaving
from supervisor.front.edge.request import HttpRequest
from supervisor.front.edge.timeouts import Timeouts
from supervisor.front.http.event_stream import PART_BYTES, EventStream
from supervisor.front.http.redelivery import Track

log = logging.getLogger(__name__)

MAX_SAID: Final = 256
MAX_SAID_BYTES: Final = 512 * 1024
"""What may wait to be said to the client of one request."""
PACE_S: Final = 0.01
"""Between two writes of what is said: a thousand messages a second are a hundred writes, and as many turns."""
RETRY_MS: Final = 1000
"""After this time a client comes back whose connection broke."""
LOOK_S: Final = 0.01
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
        elif len(self._said) >= MAX_SAID or self._bytes + len(message) > MAX_SAID_BYTES:
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
            if not await self._pause(LOOK_S):
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
                await self._stream.open(track.id(0), RETRY_MS)
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
            while self._said and size + len(self._said[0]) <= PART_BYTES:
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
