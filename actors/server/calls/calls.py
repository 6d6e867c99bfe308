"""The calls of one server: admitted, sent through its link, answered, cancelled, late. No trio.

A call belongs to its server, not to whoever waits for its answer. Each call settles exactly once; what it settles with
says what is known of its execution (`outcome`): `not_sent` is never said of a call whose bytes may have left.
A call whose client went away keeps its place until the server answers, its deadline passes or `drop` is called.
`link` is the present incarnation, None if there is none; whoever calls flushes it afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from actors.errors import BreakerTripped, ProtocolViolation, SupervisorError, TooManyCalls
from actors.facts import FactLog, RefusedByBreaker
from actors.kit import Mark, Reply, Shares
from actors.life.breakers import BreakerRefusal, Breakers, Probe, Trial
from actors.life.states import Life, State
from actors.messages import Caller, CallServer, Note, Result
from actors.principal import Principal
from actors.protocol.exchanges import PROGRESS
from actors.protocol.facts import CallEnd, CallLost, CallNoted
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import RemoteError, decode_error
from actors.protocol.wire.mirrors import MirrorsOf
from actors.protocol.wire.peer import GONE, Answered, Failure, Malformed, Refused
from actors.server.calls.errors import (
    Delay,
    Hide,
    busy_error,
    exit_error,
    late_error,
    left_alone_error,
    loss_error,
    malformed_error,
    unanswered_error,
    unheard_error,
    wrong_run_error,
)
from actors.server.calls.gate import READ_AGAIN, ApprovalGate
from actors.server.calls.queue import Call, CallQueue, CallRoom, Deadlines, Window
from actors.server.calls.state_loss import StateLoss
from actors.server.calls.turns import CallTurns
from actors.server.incarnation import Link
from actors.server.settings import ServerSettings

MAX_STREAMS: Final = 256


class CallBreakers:
    """What the calls of one actor tell the breakers of its launch, and what those tell of them. Pure.

    A launch may have two actors, as its session of the legacy era has one of its own; its breakers are the same.

    `all` are the breakers of the launch; nobody needs to ask while they are not `troubled`.

    `facts` has whom they refuse. `launch` is the name that it knows, `server` that of texts.
    """

    def __init__(self, launch: str, server: str, breakers: Breakers, facts: FactLog) -> None:
        self.all = breakers
        self._launch = launch
        self._server = server
        self._facts = facts
        self._blames = False
        self._start: Probe | None = None
        self._trials: list[Trial] = []

    def enter(self, life: Life) -> None:
        """Take the state that the server is in: failures while somebody ends it are not its fault."""
        at_fault = life.state is State.DRAINING and bool(life.reason) and not life.barred
        self._blames = life.state in (State.READY, State.RESPAWNING) or at_fault

    # Calls ----------------------------------------------------------------------------------------------------------

    def refuse(self, refusal: BreakerRefusal) -> BreakerTripped:
        """Count somebody who is refused, and return the error."""
        self.all.note_refusal(refusal)
        self._facts.note(RefusedByBreaker(launch=self._launch, breaker=refusal.by.breaker))
        return left_alone_error(self._server, refusal)

    def pass_on(self, call: Call, now: float) -> BreakerTripped | None:
        """Return why a call that has waited must not be sent; None if it may. Then it may be a probe."""
        refusal = self.all.refusal(call.tool, now, call.reply)
        if refusal is not None:
            return self.refuse(refusal)
        self.all.admit(call.tool, call.reply, now)
        return None

    def refusals(self, waiting: Sequence[Call], now: float) -> Iterator[tuple[Call, BreakerTripped]]:
        """Yield the calls that need not wait any more, as a breaker has opened, and why."""
        for call in waiting:
            if (refusal := self.all.refusal(call.tool, now, call.reply)) is not None:
                yield call, self.refuse(refusal)

    def blame(self, calls: Sequence[Call], reason: str, now: float) -> None:
        """One thing has failed, and these calls with it."""
        if self._blames:
            self.all.fail([(call.tool, call.reply) for call in calls], reason, now)

    # Other probes ---------------------------------------------------------------------------------------------------

    def begin_start(self, probe: Probe, now: float) -> None:
        """Somebody who may pass wants the server up."""
        self._start = probe
        self.all.admit("", probe, now)

    def end_start(self, now: float, failure: str = "") -> None:
        """The server is up, or could not be started because of a `failure`."""
        if self._start is not None:
            probe, self._start = self._start, None
            self.all.prove(probe, now, failure)

    def begin(self, now: float, *, reads: bool = False) -> Trial:
        """The daemon asks the server for something by itself: for a sign of life, or for its lists."""
        trial = Trial()
        if self.all.troubled:
            self.all.admit("", trial, now, reads=reads)
            self._trials.append(trial)
        return trial

    def end(self, trial: Trial, now: float, failure: str = "", *, reads: bool = False) -> None:
        """What began is answered, or not, because of a `failure`. What was dropped before changes nothing."""
        if trial.settled:
            return
        (self.all.read if reads else self.all.prove)(trial, now, failure)
        self.give_back(trial)

    def give_back(self, trial: Trial) -> None:
        """What began says nothing, either way."""
        trial.settled = True
        if trial in self._trials:
            self._trials.remove(trial)

    def drop(self) -> None:
        """The process is gone: nothing that was asked of it is answered any more."""
        for trial in self._trials:
            trial.settled = True
        self._trials.clear()


class Calls:
    """All calls of one server. `last_activity` is the moment a call came or ended, in seconds of the trio clock.

    `hide` takes secrets out of what the server says. `mirrors_of` knows its tools as they were listed last, `gate`
    which of them may be called. `breakers` are told how calls end, `state_loss` who answers them. `jitter` returns a
    number in 0..1. `wake_by` has `time_out` called at a moment, or before. `waiting` are those to be sent, by number,
    the oldest first.
    """

    def __init__(
        self,
        server: str,
        settings: ServerSettings,
        hide: Hide,
        mirrors_of: MirrorsOf,
        gate: ApprovalGate,
        breakers: CallBreakers,
        state_loss: StateLoss,
        jitter: Callable[[], float],
        wake_by: Callable[[float], None],
    ) -> None:
        self._server = server
        self._jitter = jitter
        self.state_loss = state_loss
        self.last_activity = 0.0
        self._hide = hide
        self._mirrors_of = mirrors_of
        self.gate = gate
        self.breakers = breakers
        self.window = Window(settings.max_in_flight)
        self._max_s = settings.call_max_s
        self._question_s = settings.question_timeout_s
        self._number = 0
        self._queue = CallQueue()
        self.waiting: Mapping[int, Call] = self._queue.calls
        self._in_flight: dict[int, Call] = {}
        self._streams: dict[int, Principal] = {}
        self._standing: dict[int, float] = {}
        self._shares = Shares(MAX_STREAMS)
        self._room = CallRoom(server, settings, self._queue, self._in_flight, self._streams)
        self._deadlines = Deadlines(self._in_flight, self.waiting, wake_by)
        self.turns = CallTurns(server, self.waiting, self._in_flight, gate, self.window)
        self.total = self.failures = self.unheard = 0
        self._lost_at = -math.inf

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    @property
    def open(self) -> int:
        return len(self.waiting) + len(self._in_flight)

    # Coming and going -----------------------------------------------------------------------------------------------

    def enter(self, message: CallServer, reply: Reply[Result], now: float) -> Call:
        """Take a new call that may pass the breakers; it waits until `sendable` takes it.

        Raises `TooManyCalls`, and `CallTooLarge` for one that would never fit.
        """
        if self._streams:
            self._count_streams()
        size = self._room.check(message)
        self.last_activity = now
        self._number += 1
        tool = message.tool
        call = Call(self._number, message, reply, size, now, now + message.deadline_s, tool)
        self._deadlines.note(call.deadline, call.number, len(self.waiting) + len(self._in_flight))
        self._queue.add(call)
        self.total += 1
        if self.breakers.all.troubled:
            self.breakers.all.admit(tool, reply, now)
        return call

    def send(self, link: Link, now: float) -> None:
        self.turns.share(shared=link.talk.era == "legacy" and not link.apart)
        for call in self.sendable(self.window.size, now, link.place):
            self.window.sent += 1
            message, breakers = call.message, self.breakers
            refusal: SupervisorError | None = breakers.pass_on(call, now) if breakers.all.troubled else None
            refusal = refusal or self.gate.refusal(call)
            if refusal is None and (message.run or message.resumes):
                refusal = wrong_run_error(message, link.talk.era, link.run)
            if refusal is None:
                link.talk.call(call.number, message if message.trace is None else call.message_in_trace())
            else:
                self._in_flight.pop(call.number)
                self.fail(call, refusal)

    def sendable(self, limit: int, now: float, place: Callable[[int], Mark | None]) -> Iterator[Call]:
        """Take waiting calls, first come first served, while fewer than `limit` are in flight; they are sent `now`.

        Streams do not count: they are over when their clients end them, and would keep others out until then (the
        Events extension asks for that, "Concurrent streams"). They have a limit of their own, with a share for each
        principal.

        `place` gives the place for a number of bytes, if there is room for them; the first call that finds none stays
        first.
        """
        if self._streams:
            limit += self._count_streams()
        while self.waiting and len(self._in_flight) < limit and (call := self.turns.next(now)) is not None:
            number, wanted = call.number, not call.reply.settled
            if wanted and (mark := place(call.size)) is None:
                return
            self._queue.take(number)
            if wanted:
                if self._standing:
                    self._go_on(call, now)
                call.sent_at, call.waited_s, call.mark = now, now - call.began, mark
                call.reply.queued = False
                self._in_flight[number] = call
                if call.message.lasts and not self._admit_stream(call):
                    limit += 1
                if call.message.in_turn and (moment := self.turns.next_moment(call)) is not None:
                    call.word_by = moment
                    self._deadlines.note(moment, number, self.open)
                yield call

    def settle(self, fact: CallEnd, link: Link, now: float) -> bool:
        """Give a call its answer; one that nobody waits for is dropped.

        Return whether it waits instead until the lists are read: see `on_listed`. One that came too often waits for its
        time, in its old place: the next `next_moment` may be that.
        """
        call = self.take(fact.tag)
        if call is None:
            return False
        self.last_activity = now
        if not isinstance(fact, CallLost):
            self.breakers.all.succeed(call.tool, call.reply, now)
            if not self.window.proven:
                self.window.prove()
        match fact:
            case Answered(result=result):
                self.turns.on_result(call)
                run = link.run if call.message.as_task else ""
                lost = ""
                if self.state_loss.watches and call.tool:
                    client, process = call.message.client, link.process.number
                    lost = self.state_loss.on_answer(client, call.tool, process, result)
                call.reply.answer(Result(result, link.talk.era, run, call.waited_s, call.woke, lost))
            case Refused(error=error) if call.is_outdated(error, link.talk.era):
                call.refused, call.mirrors, call.mark = RemoteError(error), self._mirrors_of(call.message.name), None
                self._in_flight[call.number] = call
                return True
            case Refused(error=error):
                self.fail(call, RemoteError(error, waited_s=call.waited_s))
            case Malformed():
                self.fail(call, malformed_error(self._server, fact, self._hide))
            case CallLost(failure=failure) if call.may_wait(failure, link.run):
                self.window.lose(failure)
                self._queue.add_again([call])
            case CallLost(failure=failure) if call.put_off_by(failure, now, self._jitter()):
                self._queue.add_again([call])
                self._deadlines.note(call.not_before, call.number, self.open)
            case CallLost(failure=failure):
                self.fail(call, self._loss_error(failure, call))
                if failure.faulty and not self._lost_with_others(call, failure, now):
                    self.breakers.blame([call], self._hide(failure.reason), now)
        return False

    def _loss_error(self, failure: Failure, call: Call) -> Exception:
        """Return the error for a call that has no answer, but for the one that came with a refusal of its session."""
        with suppress(ProtocolViolation):
            if failure.said:
                return RemoteError(decode_error(json.at(failure.said, "error")), waited_s=call.waited_s)
        return loss_error(self._server, failure, self._hide)

    def _lost_with_others(self, call: Call, failure: Failure, now: float) -> bool:
        """Say whether a call is lost that was under way when another one was lost: that is one failure of the server.

        Where it has a process, its end takes all calls; where it is remote, each connection ends by itself.
        """
        if failure.cause not in GONE:
            return False
        if call.sent_at is not None and call.sent_at <= self._lost_at:
            return True
        self._lost_at = now
        return False

    def abandon(self, number: int, link: Link | None, reason: str = "") -> None:
        if self.drop(number) and link is not None:
            link.talk.cancel(number, reason or "the client went away")

    def take(self, number: int) -> Call | None:
        return self._in_flight.pop(number, None)

    def drop(self, number: int) -> bool:
        self._queue.take(number)
        return self._in_flight.pop(number, None) is not None

    def fail(self, call: Call, error: Exception) -> None:
        if not call.reply.settled:
            self.failures += 1
            call.reply.fail(error)

    def fail_in_flight(self, reason: str, now: float, *, blames: bool = True) -> None:
        """The process is gone, or lost: whether those calls were executed is not known, unless no byte of them left.

        What certainly did not leave waits for the next process. Not `blames`: that is no failure of the server.
        """
        calls = list(self._in_flight.values())
        self._in_flight.clear()
        lost = [call for call in calls if call.left]
        for call in lost:
            self.fail(call, exit_error(self._server, reason))
        self._queue.add_again(call for call in calls if not call.left)
        if blames:
            self.breakers.blame([call for call in lost if call.refused is None], reason, now)

    def fail_unreached(self, failure: Failure, now: float) -> None:
        """Calls found nobody, and nor did the question for a sign of life, though others may still be answered."""
        unreached = [call for call in self.waiting.values() if call.unreached]
        for call in unreached:
            self.drop(call.number)
            self.fail(call, loss_error(self._server, failure, self._hide))
        self.breakers.blame(unreached, self._hide(failure.reason), now)

    def fail_refused(self, now: float) -> None:
        """A breaker has opened: what waits for what it is about is refused at once."""
        for call, refusal in self.breakers.refusals([*self.waiting.values()], now):
            self._queue.take(call.number)
            self.fail(call, refusal)

    def on_listed(self) -> None:
        """The lists were read: calls refused for their headers are sent again, once, if other ones are wanted now.

        (MCP 2026-07-28, streamable-http "Client Behavior". Who refuses for that has carried nothing out.)
        """
        refused = [call for call in self._in_flight.values() if call.refused is not None]
        changed = [call for call in refused if self._mirrors_of(call.message.name) != call.mirrors]
        self._queue.add_again([self._in_flight.pop(call.number) for call in changed])
        for call in refused:
            reason, call.refused = call.refused, None
            if reason is not None and self._in_flight.pop(call.number, None) is not None:
                self.fail(call, reason)

    def fail_unanswered(self, call: Call, blocking: Call, left_s: float) -> None:
        """A call that was not sent would wait in vain for another one, or for `left_s`; see `AnswerFirst`."""
        self._queue.take(call.number)
        self.fail(call, unanswered_error(self._server, blocking.message.name, left_s))

    def fail_waiting(self, error: Callable[[], SupervisorError]) -> None:
        """The server will not come up: nothing of those calls was sent. Each gets an error object of its own."""
        for call in self._queue.take_all():
            self.fail(call, error())

    def take_waiting(self) -> list[Call]:
        """Give up the calls that have not been sent: they go elsewhere."""
        return [call for call in self._queue.take_all() if not call.reply.settled]

    # What is said meanwhile -----------------------------------------------------------------------------------------

    def note(self, fact: CallNoted, link: Link, now: float) -> None:
        """Tell the client of a call what the server says; a call that makes progress may take longer.

        A stream lasts as long as something comes. It is over when its client misses a part of it: only so does it know.
        """
        call = self._in_flight.get(fact.call)
        if call is None or call.message.exchange is None:
            return
        if fact.streamed and (full := self._admit_stream(call)):
            self._end_stream(call, TooManyCalls(f"server {self._server!r}: {full}", outcome="unknown"), full, link)
            return
        heard = call.message.exchange.note(Note(fact.method, fact.params))
        self.unheard += not heard
        if fact.streamed:
            self._move(call, now + call.message.deadline_s, earlier=False, most_s=math.inf)
        elif fact.method == PROGRESS and not call.questions:
            self._move(call, now + call.message.deadline_s, earlier=False)
        if fact.streamed and not heard:
            self._end_stream(call, unheard_error(self._server), "the client does not read what it is sent", link)

    def _admit_stream(self, call: Call) -> str:
        """Give a call a place among the streams, unless it has one; return why there is none for it."""
        principal = call.message.principal
        if call.number in self._streams:
            return ""
        self._count_streams()
        if not self._shares.has_place(principal):
            return self._shares.why_not(principal, "streams")
        self._shares.add(principal)
        self._streams[call.number] = principal
        return ""

    def _count_streams(self) -> int:
        """How many calls in flight are streams; those that are over give their places back."""
        if self._streams:
            for number in self._streams.keys() - self._in_flight.keys():
                self._shares.remove(self._streams.pop(number))
        return len(self._streams)

    def _end_stream(self, call: Call, error: SupervisorError, why: str, link: Link) -> None:
        self.fail(call, error)
        self.drop(call.number)
        link.talk.cancel(call.number, why)

    def lasts(self, number: int) -> None:
        """The server works on a call as a task: it may take as long as any."""
        if (call := self._in_flight.get(number)) is not None:
            self._move(call, call.began + self._max_s, earlier=False)

    def caller(self, number: int) -> Caller | None:
        return call.message.exchange if (call := self._in_flight.get(number)) is not None else None

    def pause(self, number: int, now: float) -> Caller | None:
        """The server asks something about a call, whose time stands still meanwhile. Return whom to ask, if anybody."""
        call = self._in_flight.get(number)
        if call is None or call.message.exchange is None:
            return None
        if not call.questions:
            call.left_s = call.deadline - now
        call.questions += 1
        self._move(call, now + self._question_s + call.left_s, earlier=False)
        return call.message.exchange

    def resume(self, number: int, now: float) -> None:
        call = self._in_flight.get(number)
        if call is not None and call.questions:
            call.questions -= 1
            if not call.questions:
                self._move(call, now + call.left_s, earlier=True)

    def stand_still(self, call: Call, until: float, now: float) -> None:
        """A call is not sent before its own client has answered a question, `until` then at most; its time waits."""
        left_s = self._standing.setdefault(call.number, call.deadline - now)
        self._move(call, until + left_s, earlier=False)

    def go_on(self, now: float, but: Container[int] = ()) -> None:
        """The time of calls goes on that stood still, `but` for these."""
        for number in [number for number in self._standing if number not in but]:
            if (call := self.waiting.get(number)) is not None:
                self._go_on(call, now)
            else:  # nobody waits for it any more
                del self._standing[number]

    def _go_on(self, call: Call, now: float) -> None:
        if (left_s := self._standing.pop(call.number, None)) is not None:
            self._move(call, now + left_s, earlier=True)

    def _move(self, call: Call, deadline: float, *, earlier: bool, most_s: float | None = None) -> None:
        if call.move(deadline, self._max_s if most_s is None else most_s, earlier=earlier):
            self._deadlines.note(call.deadline, call.number, self.open)

    # Deadlines ------------------------------------------------------------------------------------------------------

    def next_moment(self) -> float | None:
        """Return when the next deadline passes, or when one of those that wait may be sent."""
        return self._deadlines.next()

    def time_out(self, now: float, link: Link | None, delay: Delay) -> bool:
        """Fail every call whose deadline has passed, and tell the server of those that were sent.

        `delay` is for those that were not. Return whether the server said nothing at all during one of them.
        """
        silent = False
        while (moment := self.next_moment()) is not None and moment <= now:
            number = self._deadlines.pop()
            call = self._in_flight.get(number) or self.waiting[number]
            if call.deadline > now:  # it may be sent again, and whoever calls sends what waits
                continue
            took_s = None if call.sent_at is None else now - call.began
            turn = self.turns.reason(call, now)
            lists = READ_AGAIN if self.gate.is_shut_for(call.message) else ""
            late = late_error(call.message, took_s, delay.or_else(lists))
            self.fail(call, busy_error(self._server, turn) if turn else late)
            if took_s is not None and not call.questions and call.refused is None:
                self.breakers.blame([call], late.message, now)
            if self.drop(number) and link is not None:
                link.talk.cancel(number, "deadline passed")
                silent |= call.sent_at is not None and link.heard <= call.sent_at
        return silent
