"""The calls of a server on their way through its link: admitted, sent, answered, cancelled, late.

Synchronous throughout. `link` is the present incarnation, None if there is none; whoever calls flushes it afterwards.
"""

from __future__ import annotations

from collections.abc import Callable

from actors.errors import CallTooLarge, Outcome, ProtocolViolation, SupervisorError, TooManyCalls
from actors.kit.mailbox import Reply
from actors.messages import CallServer, Result
from actors.protocol import conversation as talk
from actors.protocol.jsonrpc import RemoteError
from actors.server.calls import Call, Calls
from actors.server.link import Link
from actors.server.settings import ServerSettings


class Traffic(Calls):
    """All calls of one server. `last_activity` is the moment a call came or ended, in seconds of the trio clock.

    `hide` takes secrets out of what the server says.
    """

    def __init__(self, server: str, settings: ServerSettings, hide: Callable[[str], str]) -> None:
        super().__init__(server)
        self.server = server
        self.last_activity = 0.0
        self._hide = hide
        self._max_in_flight = settings.max_in_flight
        self._max_open = settings.max_in_flight + settings.max_queued
        self._max_bytes = settings.max_queued_bytes

    @property
    def open(self) -> int:
        """How many calls wait or are in flight."""
        return self.waiting + self.in_flight

    def enter(self, message: CallServer, reply: Reply[Result], now: float) -> Call:
        """Take a new call. Raises `TooManyCalls`, and `CallTooLarge` for one that would never fit."""
        size = len(message.members) + len(message.meta)
        if size > self._max_bytes:
            text = f"the call has {size} bytes; server {self.server!r} takes {self._max_bytes} (max_queued_bytes)"
            raise CallTooLarge(text, server=self.server)
        if self.open >= self._max_open:
            text = f"server {self.server!r} is busy: {self.in_flight} calls are in flight, {self.waiting} wait"
            raise TooManyCalls(text, server=self.server)
        if self.waiting_bytes + size > self._max_bytes:
            text = f"server {self.server!r} is busy: {self.waiting} calls of {self.waiting_bytes} bytes wait for it"
            raise TooManyCalls(text, server=self.server)
        self.last_activity = now
        return self.admit(message, reply, now)

    def send(self, link: Link, now: float) -> None:
        """Send what waits, as far as the limit of calls in flight and the room in the outbox allow."""
        for call in self.sendable(self._max_in_flight, now, link.fits):
            message = call.message
            call.mark = link.mark()
            link.talk.call(call.number, message.method, message.members, message.meta)

    def settle(self, fact: talk.CallAnswered | talk.CallRefused | talk.CallMalformed, link: Link, now: float) -> None:
        """Give a call its answer; one that nobody waits for is dropped."""
        call = self.take(fact.call)
        if call is None:
            return
        self.last_activity = now
        match fact:
            case talk.CallAnswered(result=result):
                call.reply.answer(Result(result, link.era))
            case talk.CallRefused(error=error):
                self.fail(call, RemoteError(error))
            case talk.CallMalformed():
                self.fail(call, self._unusable(fact))

    def _unusable(self, fact: talk.CallMalformed) -> SupervisorError:
        """Return the error for an answer that cannot be passed on. Where it has a result, the tool has run."""
        outcome: Outcome = "completed" if fact.done else "unknown"
        text = f"server {self.server!r} answered with {self._hide(fact.reason)}"
        if fact.over is None:
            return ProtocolViolation(text, server=self.server, outcome=outcome)
        text += "; ask for less at once, if the tool can do that"
        return CallTooLarge(text, server=self.server, outcome=outcome, details=fact.over)

    def abandon(self, number: int, link: Link | None) -> None:
        """Nobody waits for a call any more: tell the server, if it was sent."""
        if self.drop(number) and link is not None:
            link.talk.cancel(number, "the client went away")

    def time_out(self, now: float, link: Link | None, why: str, retry_after_s: float) -> bool:
        """Fail the calls whose deadline passed, and tell the server of those that were sent; see `Calls.expire`.

        Return whether the server said nothing at all during one of them.
        """
        silent = False
        for call in self.expire(now, why, retry_after_s):
            if link is not None and call.sent_at is not None:
                link.talk.cancel(call.number, "deadline passed")
                silent |= link.heard <= call.sent_at
        return silent
