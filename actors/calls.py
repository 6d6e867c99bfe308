"""The calls of one server: those that wait for it, those in flight, and their deadlines. No I/O, no trio.

A call belongs to its server, not to whoever waits for its answer. Each call settles exactly once; what it settles with
says what is known of its execution (`outcome`): `not_sent` is never said of a call whose bytes may have left.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator

from actors.errors import CallTimedOut, ServerExited, ServerStarting, SupervisorError
from actors.kit.mailbox import Reply
from actors.messages import CallServer, Result


class Call:
    """One request on its way; `deadline` is a moment of the trio clock."""

    __slots__ = ("deadline", "message", "number", "reply", "sent")

    def __init__(self, number: int, message: CallServer, reply: Reply[Result], deadline: float) -> None:
        self.number = number
        self.message = message
        self.reply = reply
        self.deadline = deadline
        self.sent = False


class Calls:
    """All calls of one server."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._number = 0
        self._waiting: deque[Call] = deque()
        self._in_flight: dict[int, Call] = {}
        self._deadlines: list[tuple[float, int, Call]] = []
        self.total = 0
        self.failures = 0

    @property
    def waiting(self) -> int:
        """How many wait to be sent."""
        return sum(not call.reply.settled for call in self._waiting)

    @property
    def in_flight(self) -> int:
        """How many were sent and have no answer."""
        return len(self._in_flight)

    def admit(self, message: CallServer, reply: Reply[Result], now: float) -> Call:
        """Take a new call; it waits until `send` takes it."""
        self._number += 1
        call = Call(self._number, message, reply, now + message.deadline_s)
        heapq.heappush(self._deadlines, (call.deadline, call.number, call))
        self._waiting.append(call)
        self.total += 1
        return call

    def sendable(self, limit: int) -> Iterator[Call]:
        """Take waiting calls, first come first served, while fewer than `limit` are in flight."""
        while self._waiting and len(self._in_flight) < limit:
            call = self._waiting.popleft()
            if not call.reply.settled:
                call.sent = True
                self._in_flight[call.number] = call
                yield call

    def take(self, number: int) -> Call | None:
        """Take a call out of those in flight; None if it is not (timed out, abandoned)."""
        return self._in_flight.pop(number, None)

    def fail_in_flight(self, reason: str) -> None:
        """The process is gone: whether those calls were executed is not known."""
        for call in list(self._in_flight.values()):
            message = f"server {self._server!r} stopped while the call was in flight: {reason}"
            self._fail(call, ServerExited(message, server=self._server, outcome="unknown"))
        self._in_flight.clear()

    def fail_waiting(self, error: SupervisorError) -> None:
        """The server will not come up: nothing of those calls was sent."""
        for call in self._waiting:
            self._fail(call, error)
        self._waiting.clear()

    def next_deadline(self) -> float | None:
        """Return the earliest deadline of an unsettled call; forgets settled ones."""
        while self._deadlines and self._deadlines[0][2].reply.settled:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def expire(self, now: float) -> list[Call]:
        """Fail every call whose deadline has passed; return those that had been sent."""
        late: list[Call] = []
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            call = heapq.heappop(self._deadlines)[2]
            self._fail(call, self._late(call))
            if self._in_flight.pop(call.number, None) is not None:
                late.append(call)
        return late

    def _late(self, call: Call) -> SupervisorError:
        limit = call.message.deadline_s
        if call.sent:
            text = f"server {self._server!r} did not answer {call.message.method} within {limit:g} s"
            return CallTimedOut(text, server=self._server, outcome="unknown")
        text = f"server {self._server!r} was not ready within the call's deadline of {limit:g} s; nothing was sent"
        return ServerStarting(text, server=self._server, retry_after_s=5.0)

    def _fail(self, call: Call, error: SupervisorError) -> None:
        if not call.reply.settled:
            self.failures += 1
            call.reply.fail(error)
