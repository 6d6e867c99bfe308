"""The calls of one server: those that wait for it, those in flight, and their deadlines. No I/O, no trio.

A call belongs to its server, not to whoever waits for its answer. Each call settles exactly once; what it settles with
says what is known of its execution (`outcome`): `not_sent` is never said of a call whose bytes may have left.
A call whose client went away keeps its place until the server answers, its deadline passes or `drop` is called.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

from actors.errors import CallTimedOut, ServerExited, ServerStarting, SupervisorError
from actors.kit import Mark, Reply
from actors.messages import CallServer, Result

_SLACK = 64
"""How many settled calls the heap of deadlines may hold beside as many as are open."""


_ENVELOPE_BYTES = 512
"""What is written around the arguments of a call, about."""


class Call:
    """One request on its way; `deadline` is a moment of the trio clock.

    `size`: bytes to be written for it. `mark`: where they begin in the stream to the server, once it was sent.
    """

    __slots__ = ("deadline", "mark", "message", "number", "reply", "sent_at", "size")

    def __init__(self, number: int, message: CallServer, reply: Reply[Result], deadline: float) -> None:
        self.number = number
        self.message = message
        self.reply = reply
        self.deadline = deadline
        self.sent_at: float | None = None
        self.mark: Mark | None = None
        self.size = _ENVELOPE_BYTES + len(message.members) + len(message.meta)

    @property
    def left(self) -> bool:
        """Whether the server may know of it: it was sent, and bytes of it were written as far as we know."""
        return self.sent_at is not None and (self.mark is None or self.mark.passed)


class Calls:
    """All calls of one server."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._number = 0
        self._waiting: dict[int, Call] = {}
        self._in_flight: dict[int, Call] = {}
        self._deadlines: list[tuple[float, int]] = []
        self.waiting_bytes = 0
        self.total = 0
        self.failures = 0

    @property
    def waiting(self) -> int:
        """How many wait to be sent."""
        return len(self._waiting)

    @property
    def in_flight(self) -> int:
        """How many were sent and have no answer."""
        return len(self._in_flight)

    def admit(self, message: CallServer, reply: Reply[Result], now: float) -> Call:
        """Take a new call; it waits until `sendable` takes it."""
        self._number += 1
        call = Call(self._number, message, reply, now + message.deadline_s)
        if len(self._deadlines) > _SLACK + 2 * (len(self._waiting) + len(self._in_flight)):
            self._deadlines = [entry for entry in self._deadlines if self._find(entry[1]) is not None]
            heapq.heapify(self._deadlines)
        heapq.heappush(self._deadlines, (call.deadline, call.number))
        self._waiting[call.number] = call
        self.waiting_bytes += call.size
        self.total += 1
        return call

    def sendable(self, limit: int, now: float, fits: Callable[[int], bool]) -> Iterator[Call]:
        """Take waiting calls, first come first served, while fewer than `limit` are in flight; they are sent `now`.

        `fits` says of a number of bytes whether there is room for them; the first call that finds none stays first.
        """
        while self._waiting and len(self._in_flight) < limit:
            number, call = next(iter(self._waiting.items()))
            if not call.reply.settled and not fits(call.size):
                return
            self._leave_queue(number)
            if not call.reply.settled:
                call.sent_at = now
                self._in_flight[number] = call
                yield call

    def _leave_queue(self, number: int) -> None:
        call = self._waiting.pop(number, None)
        if call is not None:
            self.waiting_bytes -= call.size

    def take(self, number: int) -> Call | None:
        """Take a call out of those in flight; None if it is not (timed out, abandoned)."""
        return self._in_flight.pop(number, None)

    def drop(self, number: int) -> bool:
        """Forget a call that nobody waits for; return whether it was in flight."""
        self._leave_queue(number)
        return self._in_flight.pop(number, None) is not None

    def fail(self, call: Call, error: Exception) -> None:
        """Settle a call with a failure, if nobody settled it before."""
        if not call.reply.settled:
            self.failures += 1
            call.reply.fail(error)

    def fail_in_flight(self, reason: str) -> None:
        """The process is gone, or lost: whether those calls were executed is not known, unless no byte of them left."""
        calls, self._in_flight = self._in_flight, {}
        for call in calls.values():
            if call.left:
                text = f"server {self._server!r} stopped while the call was in flight: {reason}"
                self.fail(call, ServerExited(text, server=self._server, outcome="unknown"))
            else:
                text = f"server {self._server!r} stopped before the call could be written to it: {reason}"
                self.fail(call, ServerExited(text, server=self._server, outcome="not_sent"))

    def fail_waiting(self, error: Callable[[], SupervisorError]) -> None:
        """The server will not come up: nothing of those calls was sent. Each gets an error object of its own."""
        calls, self._waiting = self._waiting, {}
        self.waiting_bytes = 0
        for call in calls.values():
            self.fail(call, error())

    def next_deadline(self) -> float | None:
        """Return the earliest deadline of a call that waits or is in flight; forgets the others."""
        while self._deadlines and self._find(self._deadlines[0][1]) is None:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def expire(self, now: float, why: str = "", retry_after_s: float = 5.0) -> list[Call]:
        """Fail every call whose deadline has passed; return those that had been sent.

        `why` the server was not ready, and when to ask again, are for those that were not.
        """
        late: list[Call] = []
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            number = heapq.heappop(self._deadlines)[1]
            call = self._find(number)
            if call is not None:
                self.fail(call, self._late(call, why, retry_after_s))
                if self.drop(number):
                    late.append(call)
        return late

    def _find(self, number: int) -> Call | None:
        return self._in_flight.get(number) or self._waiting.get(number)

    def _late(self, call: Call, why: str, retry_after_s: float) -> SupervisorError:
        limit = call.message.deadline_s
        if call.sent_at is not None:
            text = f"server {self._server!r} did not answer {call.message.method} within {limit:g} s"
            return CallTimedOut(text, server=self._server, outcome="unknown")
        text = f"server {self._server!r} was not ready within the call's deadline of {limit:g} s{why}; nothing was sent"
        return ServerStarting(text, server=self._server, retry_after_s=retry_after_s)
