"""Which of the calls that wait is sent next: the oldest of whoever has fewest in flight.

One goes at a time of those whose questions could be confused.

Over stdio nothing links a question of a legacy server to the call that led to it (MCP 2025-11-25, basic/transports).
Most tools never ask. So calls take turns only of what is *suspected* to ask: what was in flight when a question came
that stayed unattributed. What was seen to ask is suspected for good then; anything else until it was called some times
and nothing was asked, which are four times as many after each further question. Whatever else is called does not wait.

Several calls of one request begin at once, so the first of them that ask would be confused for certain. Of those that
may ask (`CallServer.in_turn`) each waits until the one before it has ended, or has asked nothing for `FIRST_WORD_S`:
what asks mostly does so before it does anything else. A tool that was seen to ask has its whole turn, and one that was
called some times and asked nothing takes none. Who has an open question is waited for.

A call beside such a one is no loss of certainty: a question that comes then waits until the other call has ended, and
if that takes too long it is refused, and the other one is suspected, too.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from actors.messages import Note
from actors.protocol.agreement.capabilities import NOBODY
from actors.protocol.asking.input_required import METHODS as ASKING
from actors.protocol.exchanges import MESSAGE, wants
from actors.protocol.wire.jsonrpc import encode
from actors.server.calls.gate import ApprovalGate
from actors.server.calls.queue import Call, Window

QUIET_CALLS: Final = 3
"""After so many calls without a question nothing is expected of what was suspected once, or was not known."""
FIRST_WORD_S: Final = 1.0
"""After its sending, for the question of a call of which nothing is known."""
MAX_KNOWN: Final = 1024
"""What is remembered of tools and prompts; clients may call whatever they like."""

Subject = tuple[str, str]
"""A method, and the tool or prompt that it is about. Of resources there may be any number: they count as one."""


_Calls = Mapping[int, Call]


class _Suspicion(msgspec.Struct):
    """How often there was one, and after how many more calls without a question it is over."""

    times: int = 0
    calls_left: float = 0


class CallTurns:
    """Chooses, for as long as the actor of a server lives. `waiting` and `in_flight` are its calls, by number, of
    which the `window` lets so many be in flight.
    """

    def __init__(self, server: str, waiting: _Calls, in_flight: _Calls, gate: ApprovalGate, window: Window) -> None:
        self._server = server
        self._gate = gate
        self._window = window
        self._waiting = waiting
        self._in_flight = in_flight
        self._suspected: OrderedDict[Subject, _Suspicion] = OrderedDict()
        self._askers: OrderedDict[Subject, None] = OrderedDict()
        self._quiet: OrderedDict[Subject, int] = OrderedDict()
        self._shared = False
        self._held: Counter[Subject] = Counter()

    # Whose turn it is -----------------------------------------------------------------------------------------------

    def share(self, *, shared: bool) -> None:
        """Take whether all calls share one stream, so that a question does not say about which it is."""
        self._shared = shared

    @property
    def taken(self) -> bool:
        """Whether calls take turns of what may have asked before."""
        return bool(self._held) or any(each.calls_left for each in self._suspected.values())

    def next(self, now: float) -> Call | None:
        """Return the call to be sent now; None if there is none, or all have to wait: for another one, the lists, or as
        they came too often.
        """
        through = self._gate.let_through(self._waiting.values())
        waiting = (call for call in through if call.not_before <= now)
        if self._in_flight and self._have_turns() and self._blocker(now) is not None:
            waiting = (call for call in waiting if not self._apply_to(call))
        if len(self._waiting) < 2:
            return next(iter(waiting), None)
        busy = Counter(call.message.principal for call in self._in_flight.values())
        return min(waiting, key=lambda call: busy[call.message.principal], default=None)

    def next_moment(self, call: Call) -> float | None:
        """Return until when others wait for a first question of a call that is sent; None if they do not."""
        return None if call.sent_at is None or not self._may_ask(call) else call.sent_at + FIRST_WORD_S

    def _have_turns(self) -> bool:
        """Say whether any call may have to wait for another one, without a look at those in flight: mostly none."""
        suspects = bool(self._held or self._suspected)
        return suspects or (self._shared and any(call.message.in_turn for call in self._waiting.values()))

    def _apply_to(self, call: Call) -> bool:
        return self._is_suspected(call) or self._may_ask(call)

    def _is_suspected(self, call: Call) -> bool:
        subject = _subject(call)
        suspicion = self._suspected.get(subject)
        return call.message.method in ASKING and (subject in self._held or bool(suspicion and suspicion.calls_left))

    def _may_ask(self, call: Call) -> bool:
        if not self._shared or not call.message.in_turn or call.message.interest.capabilities == NOBODY:
            return False
        subject = _subject(call)
        return subject in self._askers or self._quiet.get(subject, 0) < QUIET_CALLS

    def _keeps_turn(self, call: Call, now: float) -> bool:
        if self._is_suspected(call) or (self._shared and call.questions > 0):
            return True
        moment = self.next_moment(call)
        return moment is not None and (now < moment or _subject(call) in self._askers)

    def _blocker(self, now: float) -> Call | None:
        """Return the call that those have to wait for which take turns; None if there is none."""
        return next((call for call in self._in_flight.values() if self._keeps_turn(call, now)), None)

    def behind_questions(self, now: float) -> Iterator[tuple[Call, Call]]:
        """Yield each call that is not sent before the client of another one has answered a question, and that one."""
        if not any(call.questions for call in self._in_flight.values()):
            return
        turn, first = self._blocker(now), self._first_of_full()
        for call in list(self._waiting.values()):
            if turn is not None and turn.questions and self._apply_to(call):
                yield call, turn
            elif first is not None:
                yield call, first

    def _first_of_full(self) -> Call | None:
        """Return whose question is the oldest, where none is sent before one of them is answered; else None."""
        calls = self._in_flight.values()
        if not len(calls) >= self._window.size > 0 or not all(call.questions for call in calls):
            return None
        return min(calls, key=lambda call: call.asked_at)

    # What is known of them ------------------------------------------------------------------------------------------

    def note_question(self, number: int, now: float) -> None:
        """A question is about this call for certain."""
        if (call := self._in_flight.get(number)) is None:
            return
        self._askers[subject := _subject(call)] = None
        if len(self._askers) > MAX_KNOWN:
            self._askers.popitem(last=False)
        if subject in self._suspected:
            self._suspected[subject].calls_left = math.inf
        call.asks = True
        if call.questions <= 1:
            call.asked_at = now

    def knows_whom(self, numbers: Iterable[int]) -> bool:
        """Say whether just one of several calls is about what was seen to ask."""
        return sum(_subject(call) in self._askers for call in self._those(numbers)) == 1

    def hold(self, numbers: Iterable[int]) -> tuple[Subject, ...]:
        """A question came that may be about any of these calls: until `release`, no more of what may have asked it."""
        subjects = {_subject(call) for call in self._those(numbers)}
        held = tuple(subjects & self._askers.keys() or subjects)
        self._held.update(held)
        return held

    def release(self, held: Iterable[Subject]) -> None:
        self._held -= Counter(held)

    def suspect(self, numbers: Iterable[int]) -> None:
        """A question was refused that may have been about any of these calls."""
        calls = self._those(numbers)
        for call in calls:
            call.asks = True
        for subject in {_subject(call) for call in calls}:
            suspicion = self._suspected.setdefault(subject, _Suspicion())
            suspicion.calls_left = math.inf if subject in self._askers else QUIET_CALLS * 4**suspicion.times
            suspicion.times += 1
        while len(self._suspected) > MAX_KNOWN:
            self._suspected.popitem(last=False)

    def on_result(self, call: Call) -> None:
        if call.asks:
            return
        subject = _subject(call)
        suspicion = self._suspected.get(subject) if self._suspected else None
        if suspicion is not None and suspicion.calls_left:
            suspicion.calls_left -= 1
        if self._shared and call.message.interest.capabilities != NOBODY:  # else it could not have asked
            self._quiet[subject] = min(self._quiet.get(subject, 0) + 1, QUIET_CALLS)
            if len(self._quiet) > MAX_KNOWN:
                self._quiet.popitem(last=False)

    def _those(self, numbers: Iterable[int]) -> list[Call]:
        return [self._in_flight[number] for number in numbers if number in self._in_flight]

    # What is told of it ---------------------------------------------------------------------------------------------

    def reason(self, call: Call, now: float) -> str:
        """Return why a call that was not sent has to wait for another one; empty if it has not."""
        if call.sent_at is not None:
            return ""
        blocking, why = (self._blocker(now), "") if self._apply_to(call) else (None, "")
        if blocking is not None:
            why = f"it does one call of {blocking.message.name[:100]!r} or the like at a time, and the present one"
            if not blocking.questions:
                return f"{why} may ask its client something"
        else:
            if (blocking := self._first_of_full()) is None:
                return ""
            why = f"it does no more than {self._window.size} at a time (max_in_flight), and each present one"
        return f"{why} waits for somebody to answer a question, for {now - blocking.asked_at:.0f} s now"

    def asked_at(self, now: float) -> float | None:
        """Return since when calls wait for an answer to a question of another one, by the trio clock; None: none do."""
        return next((blocking.asked_at for _, blocking in self.behind_questions(now)), None)

    def tell(self, call: Call, now: float) -> None:
        """Tell the client of a call that it waits for such an answer, once."""
        caller = call.message.exchange
        if not call.told and caller is not None and (why := self.reason(call, now)):
            call.told = True
            if wants(call.message.interest, "info"):
                text = f"waits for its turn: server {self._server!r} is busy: {why}"
                caller.note(Note(MESSAGE, encode({"level": "info", "data": text})))


def _subject(call: Call) -> Subject:
    method = call.message.method
    return method, "" if method == "resources/read" else call.message.name
