"""What goes to and fro between us and a server: its messages become facts, and what waits for it is sent."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import trio
from msgspec.structs import replace

from actors.errors import ProtocolViolation
from actors.life import lifecycle
from actors.life.states import State, Timer
from actors.messages import ServerStatus
from actors.protocol.agreement.era import Agreement, NoAgreement
from actors.protocol.asking.questions import request_not_sent
from actors.protocol.changes import EVENTS_CHANGED
from actors.protocol.facts import (
    ENDS,
    CallAsked,
    CallEnd,
    CallLasts,
    CallLost,
    CallNoted,
    Fact,
    ListenEnded,
    Listening,
    ListsChanged,
    LoginWanted,
    QuestionWithdrawn,
    ResourceUpdated,
    Unreachable,
    VisitCompleted,
)
from actors.protocol.listing import PageArrived
from actors.protocol.wire.peer import GONE, Failure, Refused
from actors.server.inbox import (
    HoldEnded,
    ListsRead,
    PageRead,
    PauseOver,
    QuestionAnswered,
    QuestionProgressed,
    Received,
    WorkSeen,
)
from actors.server.incarnation import Link
from actors.server.parts.context import ServerContext
from actors.server.parts.dialogue import Dialogue
from actors.server.parts.discovery import ChangeStream, Discovery
from actors.server.parts.liveness import QUIET_S, Liveness
from actors.server.parts.processes import Processes

Resumed = PageRead | ListsRead | QuestionAnswered | QuestionProgressed | HoldEnded | PauseOver | WorkSeen
"""What something had to wait for."""


class Traffic:
    """The messages of one server. Everything is about its present process. `status` is how the server is doing."""

    def __init__(
        self,
        context: ServerContext,
        processes: Processes,
        dialogue: Dialogue,
        discovery: Discovery,
        change_stream: ChangeStream,
        liveness: Liveness,
        status: Callable[[], ServerStatus],
    ) -> None:
        self._status = status
        self._context = context
        self._calls = context.calls
        self._course = context.course
        self._record = context.record
        self._processes = processes
        self._dialogue = dialogue
        self._discovery = discovery
        self._change_stream = change_stream
        self._liveness = liveness

    def end(self) -> None:
        """Forget who says how the server is doing: nothing is told any more."""
        del self._status

    def receive(self, received: Received) -> None:
        if (link := self._processes.link) is None:
            return
        link.read += len(received.lines)
        for line in received.lines:
            for message, spoiled_by in link.messages(line):
                self._take(link, partial(link.receive, message, spoiled_by, received.stream))
        window = self._calls.window
        if received.lines and window.doubted and not (window.estranged and link.talk.awaits_life):
            window.trust()
        if received.failure is not None:
            if received.failure.retry_after_s:
                self._liveness.leave_alone(received.failure.retry_after_s)
            self._take(link, partial(link.talk.on_failure, received.failure))
            if received.failure.stale:
                self._liveness.suspect()
        if link.hasty:
            self._processes.on_probe_answered()
        self.pump()

    def on_output_closed(self) -> None:
        """Nothing can come any more: calls in flight have no answer, and none is sent to this process."""
        self._calls.window.close()
        self._calls.fail_in_flight("it closed its output", trio.current_time())
        self.pump()

    def resume(self, message: Resumed) -> None:
        """Go on with what had to wait: for a thread, for a client, for other calls, for a task of the server."""
        link = self._processes.link
        match message:
            case QuestionAnswered():
                self._dialogue.on_answer(message, link)
            case HoldEnded():
                self._dialogue.on_hold_end(message, link)
            case QuestionProgressed(id=id_) if link is not None:
                self._dialogue.send_progress(id_, link)
            case PageRead() if link is not None:
                self._take(link, partial(self._discovery.on_read, message, link))
            case ListsRead() if link is not None:
                self._discovery.finish(message, link)
            case PauseOver(call=call) if link is not None:
                link.talk.tasks.due(call)
            case WorkSeen() if link is not None:
                self._liveness.take(message, link)
        self.pump()

    def on_deadlines(self) -> None:
        """Fail the calls whose deadline has passed; a server that said nothing during one of them may be lost."""
        delay = self._context.recovery.delay(self._course.life, self._processes.activity)
        if self._calls.time_out(trio.current_time(), self._processes.link, delay):
            self._liveness.suspect()
        self.pump()
        if (moment := self._calls.next_moment()) is not None:
            self._context.timers.start_by(Timer.DEADLINES, moment)

    def abandon(self, call: int, reason: str) -> None:
        link = self._processes.link
        self._calls.abandon(call, link, reason)
        if link is not None:
            self._dialogue.on_call_end(link)
        self.pump()

    def _take(self, link: Link, meaning: Callable[[], Fact | None]) -> None:
        """Take one message; `meaning` says what it is about and raises `ProtocolViolation` if it is about nothing."""
        try:
            fact = meaning()
            if isinstance(fact, PageArrived):
                fact = self._discovery.take(fact, link)
        except ProtocolViolation:
            self._record.noise += 1
            return
        link.heard = trio.current_time()
        link.said += 1
        if isinstance(fact, ENDS):  # nearly all
            if isinstance(fact, Refused):
                self._dialogue.on_refused(fact, link)
            if link.talk.era == "modern" and not isinstance(fact, CallLost) and (method := request_not_sent(fact)):
                fact = self._on_request_not_sent(fact, method)
            outdated = self._calls.settle(fact, link, link.heard)
            self._dialogue.on_call_end(link)
            if isinstance(fact, CallLost):
                self._on_lost(fact.failure)
            elif outdated and self._course.life.serving:
                self._discovery.on_changed(link)
            elif outdated:
                self._calls.on_listed()
        elif fact is not None:
            self._on_fact(fact, link)

    def _on_request_not_sent(self, fact: CallEnd, method: str) -> CallEnd:
        """A call failed as its tool asks by a request, which the modern era has not: say so, to client and operator.

        Nobody knows what the tool did before, so the call is not made again. Nor is the process ended for that: what it
        holds in memory would be lost. The next one is spoken to in the era in which it can ask.
        """
        why = f"it asks by the request {method!r}, which {self._status().protocol_version} does not have"
        mend = self._processes.speak_legacy()
        if self._record.last_error is None:
            self._record.last_error = f"{why}; {mend}"
            self._record.note(f"a call failed: {why}; {mend}")
            self._record.update(self._status())
        if not isinstance(fact, Refused):
            return fact
        error = replace(
            fact.error, message=f"{fact.error.message} (server {self._context.server.name!r}: {why}; {mend})"
        )
        return replace(fact, error=error)

    def _on_lost(self, failure: Failure) -> None:
        """A call has no answer: that may be all, or the server is away, or takes nothing at all before a login."""
        if failure.cause in GONE or failure.bars:
            self._liveness.suspect()

    def _on_fact(self, fact: Fact, link: Link) -> None:
        match fact:
            case CallNoted():
                self._calls.note(fact, link, link.heard)
            case CallLasts(call=call, pause_s=pause_s):
                self._calls.lasts(call)
                if pause_s is not None:
                    self._context.start_soon(self._pause, PauseOver(link.number, call), pause_s)
            case CallAsked():
                self._dialogue.ask(fact, link)
            case QuestionWithdrawn(id=id_):
                self._dialogue.withdraw(id_)
            case VisitCompleted(id=visit):
                self._dialogue.on_visit_completed(visit, link)
            case Agreement(era=era):
                self._record.learn(era)
                self._processes.on_agreed(link, known=self._discovery.offer is not None)
            case NoAgreement(reason=said):
                self._course.step(lifecycle.NotAgreed(link.number, self._record.blame(said)))
            case Unreachable(reason=said, wait_s=wait_s) if self._calls.in_flight:  # some may be answered all the same
                self._liveness.on_unreachable()
                nobody = Failure(id=b"", cause="unavailable", reason=said, retry_after_s=wait_s, sent=False)
                self._calls.fail_unreached(nobody, link.heard)
            case Unreachable(reason=said, wait_s=wait_s):
                self._liveness.on_unreachable()
                self._course.step(lifecycle.Away(link.number, self._record.blame(said), wait_s))
            case LoginWanted(reason=said):
                self._course.step(lifecycle.Barred(link.number, self._record.blame(said)))
            case ListsChanged(missed=missed):
                self._change_stream.on_missed() if missed else self._discovery.on_changed(link)
            case ResourceUpdated(uri=uri):
                if uri == EVENTS_CHANGED:
                    self._discovery.on_changed(link)
                self._context.shared.subscribers.tell_update(self._context.server.name, uri)
            case Listening() | ListenEnded():
                self._on_subscription(fact, link)

    async def _pause(self, over: PauseOver, seconds: float) -> None:
        await trio.sleep(seconds)
        await self._context.post.tell(over)

    def _on_subscription(self, fact: Listening | ListenEnded, link: Link) -> None:
        for answer in fact.calls:
            self._calls.settle(answer, link, link.heard)
        if isinstance(fact, Listening):
            self._change_stream.on_open(useful=fact.useful)
        elif fact.again:
            self._change_stream.on_end()

    def pump(self, now: float | None = None) -> None:
        """Send what waits, within the limit of calls in flight, and see whether the last call has ended."""
        link = self._processes.link
        if self._calls.waiting and link is not None and self._course.life.state is State.READY:
            now = trio.current_time() if now is None else now
            if now - link.heard > QUIET_S or not self._liveness.attentive:
                self._liveness.attend(link, now)
            self._calls.send(link, now)
            if self._calls.waiting:
                self._dialogue.others_wait(now)
        self._processes.flush()
        if self._course.life.state is State.DRAINING and not self._calls.in_flight:
            self._course.step(lifecycle.Drained(self._course.life.incarnation))
