"""The calls of one server: those that wait to be sent, the deadlines of all, and how many there may be. Pure.

`CallRoom` says how many may wait and be in flight together, `Window` how many the present incarnation is sent.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import chain
from typing import Final

import msgspec
from msgspec.structs import replace

from actors.codes import HEADER_MISMATCH
from actors.kit import Mark, Reply
from actors.launch import is_own
from actors.messages import CallServer, Result
from actors.principal import LOCAL
from actors.protocol.agreement.versions import Era
from actors.protocol.wire.jsonrpc import ErrorObject, RemoteError
from actors.protocol.wire.mirrors import Mirror
from actors.protocol.wire.peer import Failure
from actors.server.calls.errors import busy_error, too_large_error
from actors.server.settings import ServerSettings

MAX_UNREACHED: Final = 3
"""So often a call that found nobody at a server that lives is sent again."""
MAX_STALE: Final = 2
"""So often a call is sent again that was refused, as its session may not have been known any more."""
MAX_PUT_OFF: Final = 4
"""So often a call is sent again that came too often."""
_SPREAD_S: Final = 1.0
"""Within this time, doubled with each refusal, calls that came too often are sent again, as others wait beside them."""
_WORTH_S: Final = 1.0
"""By less than this no deadline is moved: a server may tell of progress a thousand times a second."""
_SLACK: Final = 64
"""How many deadlines that do not count may be kept beside twice as many as do."""
_ENVELOPE_BYTES: Final = 512
"""What is written around the arguments of a call, about."""
MAX_IN_VAIN: Final = 6
"""So many sessions in a row may end without an answer to any call before the restart policy decides."""


class Call(msgspec.Struct, eq=False):
    """One request on its way: what is asked, and how far it has come.

    `deadline` is a moment of the trio clock, and so is `began`.
    `asks`: a question was about it, or may have been; `asked_at` is when the first of those came that are open.
    `told`: its client knows that it waits for its turn.
    `tool` is empty for what is no call of a tool. `size`: bytes to be written for it. `mark`: where they begin in the
    stream to the server, once it was sent, before which it waited for `waited_s`. `woke`: the server was not up when it
    came.
    `unreached`: how often it found nobody who could have carried it out, `stale`: how often it was refused, though
    maybe only for its session, by the present incarnation, `stale_in`. `put_off`: how often it came too often, and
    `not_before`: when it may be sent again. `word_by`: until when others wait for its first question. `refused`: its
    headers were not those that the server wants, whose list may have changed, so it waits for that to be read;
    `mirrors` as they were.
    """

    number: int
    message: CallServer
    reply: Reply[Result]
    size: int
    began: float
    deadline: float
    tool: str = ""
    questions: int = 0
    asks: bool = False
    asked_at: float = 0.0
    told: bool = False
    left_s: float = 0.0
    sent_at: float | None = None
    waited_s: float = 0.0
    mark: Mark | None = None
    woke: bool = False
    unreached: int = 0
    stale: int = 0
    stale_in: str = ""
    put_off: int = 0
    not_before: float = -math.inf
    word_by: float = -math.inf
    refused: RemoteError | None = None
    mirrors: tuple[Mirror, ...] | None = None

    def message_in_trace(self) -> CallServer:
        """Return what is sent of it now, with the context of its trace, which is told so."""
        trace, message = self.message.trace, self.message
        return message if trace is None else replace(message, meta=trace.send(message.meta))

    @property
    def left(self) -> bool:
        """Whether the server may know of it: it was sent, and bytes of it were written."""
        return self.mark is not None and self.mark.passed

    def may_wait(self, failure: Failure, run: str) -> bool:
        """Say whether it is sent again after this: nothing of it was done, as its session is over or nobody was found.

        What is no proof of the first is counted for the incarnation `run`, and the second for all.
        """
        if self.stale_in != run:
            self.stale, self.stale_in = 0, run
        self.unreached += failure.unreached
        self.stale += failure.stale
        again = (failure.unreached and self.unreached <= MAX_UNREACHED) or (failure.stale and self.stale <= MAX_STALE)
        return failure.cause == "expired" or again

    def put_off_by(self, failure: Failure, now: float, jitter: float) -> bool:
        """Say whether it is sent again later, as it came too often, and note when. `jitter` is in 0..1.

        Not before the server says, and not where that is after the deadline: its client knows that better at once.
        """
        if not failure.too_often or self.put_off >= MAX_PUT_OFF:
            return False
        spread_s = _SPREAD_S * 2.0**self.put_off
        earliest = now + max(failure.retry_after_s or 0.0, spread_s)
        if earliest >= self.deadline:
            return False
        self.put_off += 1
        self.not_before = earliest + min(spread_s, (self.deadline - earliest) / 2) * jitter
        return True

    def is_outdated(self, error: ErrorObject, era: Era) -> bool:
        """Say whether it is refused for its headers, for the first time (MCP 2026-07-28, streamable-http)."""
        return era == "modern" and error.code == HEADER_MISMATCH and self.mirrors is None

    def move(self, deadline: float, most_s: float, *, earlier: bool) -> bool:
        """Move the deadline, to `most_s` from the beginning at most; False if that changes hardly anything."""
        deadline = max(min(deadline, self.began + most_s), self.began + self.message.deadline_s)
        if deadline <= self.deadline + _WORTH_S and not (earlier and deadline < self.deadline):
            return False
        self.deadline = deadline
        return True


class CallQueue:
    """`calls` are those that wait, by number, the oldest first: to be read; `size`: bytes to be written for them."""

    def __init__(self) -> None:
        self.calls: dict[int, Call] = {}
        self.size = 0

    def add(self, call: Call) -> None:
        self.calls[call.number] = call
        self.size += call.size
        call.reply.queued = True

    def add_again(self, calls: Iterable[Call]) -> None:
        """Take calls back of which nothing was done; each waits in its old place."""
        for call in calls:
            call.sent_at = call.mark = call.refused = None
            self.add(call)
        ordered = sorted(self.calls.items())
        self.calls.clear()
        self.calls.update(ordered)

    def take(self, number: int) -> Call | None:
        if (call := self.calls.pop(number, None)) is not None:
            self.size -= call.size
        return call

    def take_all(self) -> list[Call]:
        calls, self.size = list(self.calls.values()), 0
        self.calls.clear()
        return calls


class Deadlines:
    """Moments by the number of a call, the earliest first, of all calls in flight or waiting, by their numbers: when
    they have to be answered, when those that came too often may be sent again, until when others wait for a question.

    One that moved, or whose call has ended, is passed over. `wake_by` is told of each.
    """

    def __init__(
        self, in_flight: Mapping[int, Call], waiting: Mapping[int, Call], wake_by: Callable[[float], None]
    ) -> None:
        self._wake_by = wake_by
        self._in_flight = in_flight
        self._waiting = waiting
        self._heap: list[tuple[float, int]] = []

    def _counts(self, moment: float, number: int) -> bool:
        call = self._in_flight.get(number) or self._waiting.get(number)
        return call is not None and moment in (call.deadline, call.not_before, call.word_by)

    def note(self, moment: float, number: int, open_calls: int) -> None:
        if len(self._heap) > _SLACK + 2 * open_calls:
            self._heap = [entry for entry in self._heap if self._counts(*entry)]
            heapq.heapify(self._heap)
        heapq.heappush(self._heap, (moment, number))
        self._wake_by(moment)

    def next(self) -> float | None:
        """Return the earliest moment; forgets what does not count before it."""
        while self._heap and not self._counts(*self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop(self) -> int:
        """Take the earliest one, which `next` has told of; return whose it is."""
        return heapq.heappop(self._heap)[1]


class CallRoom:
    """Whether there is room for one more call of a server.

    `queue` has the calls that wait, `in_flight` are the others, by number. `streams` are those of
    them that take no room, see `Calls.sendable`.
    """

    def __init__(
        self,
        server: str,
        settings: ServerSettings,
        queue: CallQueue,
        in_flight: Mapping[int, Call],
        streams: Collection[int],
    ) -> None:
        self._server = server
        self._is_for_one = is_own(server)
        self._max_open = settings.max_in_flight + settings.max_queued
        self._max_bytes = settings.max_queued_bytes
        self._queue = queue
        self._waiting = queue.calls
        self._in_flight = in_flight
        self._streams = streams

    def check(self, message: CallServer) -> int:
        """Return the bytes to be written for a call.

        Raises `TooManyCalls`, and `CallTooLarge` for one that would never fit.
        """
        size = len(message.members) + len(message.meta) + len(message.retry) + len(message.interest.capabilities)
        if size > self._max_bytes:
            raise too_large_error(self._server, size, self._max_bytes)
        waiting, in_flight = len(self._waiting), len(self._in_flight) - len(self._streams)
        free = self._max_open - waiting - in_flight
        if free <= 0:
            raise busy_error(self._server, f"{in_flight} calls are in flight, {waiting} wait")
        if 2 * free <= self._max_open and not self._is_for_one:
            self._check_share(message, free)
        left = self._max_bytes - self._queue.size - size
        if left < 0 or (2 * left < self._max_bytes and not self._is_for_one and self._holds_more(message, size, left)):
            raise busy_error(self._server, f"{waiting} calls of {self._queue.size} bytes wait for it")
        return size + _ENVELOPE_BYTES

    def _holds_more(self, message: CallServer, size: int, left: int) -> bool:
        """Say whether calls of somebody wait that would have more bytes with this one than are left for others."""
        principal = message.principal
        own = sum(call.size for call in self._waiting.values() if call.message.principal == principal)
        return bool(own) and own + size > left and principal != LOCAL

    def _check_share(self, message: CallServer, free: int) -> None:
        """Raise `TooManyCalls` where somebody has as many calls here as are left for others, or more; see `Quota`."""
        principal = message.principal
        lasting = self._streams
        own = sum(
            call.message.principal == principal and call.number not in lasting
            for call in chain(self._waiting.values(), self._in_flight.values())
        )
        if own >= free and own and principal != LOCAL:
            raise busy_error(
                self._server, f"{own} calls of yours are open, and the rest of the room is for others: end one"
            )


class Window:
    """How many calls may be in flight at the present incarnation of a server; `most` at the most.

    - None is sent to one that can carry nothing out any more, nor while that is in doubt: calls wait.
    - A session that ended without an answer to any of its calls was begun in vain. After the second one in a row the
      next gets half as many calls until it has answered one, at least a single one: a server whose sessions end after
      a few requests, whatever it counts, so answers one after the other. (As the window of TCP does, RFC 5681.)
    - After `MAX_IN_VAIN` in a row no further one begins at once: the restart policy decides, as after any failure.

    `size`: how many may be now, `sent`: how many were sent to this incarnation. `proven`: it has answered one, and
    `doubted`: it may carry nothing out; whoever hears from it tells of that what is not known yet. `estranged`: what it
    sends is no proof, but for its answer to a question that was asked since, as it may not know the session any more.
    """

    def __init__(self, most: int) -> None:
        self._most = self._open = self.size = most
        self._closed = self.doubted = self.estranged = self.proven = False
        self.sent = self._in_vain = 0

    def prove(self) -> None:
        self.proven, self._open, self._in_vain = True, self._most, 0
        self._resize()

    def close(self) -> None:
        self._closed = True
        self._resize()

    def lose(self, failure: Failure) -> None:
        """A call found its session over, or nobody: send nothing in that, or before the server gives a sign of life."""
        if failure.cause == "expired":
            self.close()
        else:
            self.estranged |= failure.stale
            self.doubt()

    def doubt(self) -> None:
        """Send nothing before the server gives a sign of life, or is found to live without one."""
        self.doubted = True
        self._resize()

    def trust(self) -> None:
        self.doubted = self.estranged = False
        self._resize()

    def end(self, *, renewable: bool) -> bool:
        """The incarnation is over. Return whether the next one may begin at once, where only the session has ended."""
        if renewable and not self.proven:
            self._in_vain += 1
            if self.sent and self._in_vain > 1:
                self._open = max(1, min(self._open, self.sent) // 2)
        self._closed = self.doubted = self.estranged = self.proven = False
        self.sent = 0
        self._resize()
        return renewable and self._in_vain < MAX_IN_VAIN

    def _resize(self) -> None:
        self.size = 0 if self._closed or self.doubted else self._open
