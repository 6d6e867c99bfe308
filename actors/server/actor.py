"""The actor of one MCP server: takes its messages, and hands each to the part of the server that it is about.

Everything that waits runs in child tasks (the process, the timers, the reports), which post messages; the handler
itself never waits. Messages of an older incarnation change nothing, nor do timers that were cancelled or replaced after
they fired.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import trio
from msgspec.structs import replace

from actors.errors import CallTooLarge, SupervisorError, TooManyCalls
from actors.kit import Actor, Address, Reply, StartSoon
from actors.kit.reporter import Reporter
from actors.kit.timers import Timers
from actors.launch import server_of
from actors.life import lifecycle
from actors.life.breakers import Breakers, OpenBreaker
from actors.life.states import Life, State, Timer
from actors.messages import (
    CallServer,
    CloseBreakers,
    Departure,
    ReadServer,
    RefreshServer,
    RestartServer,
    Result,
    ServerStatus,
    SleepServer,
    StopServer,
    WakeServer,
)
from actors.server.calls.calls import CallBreakers, Calls
from actors.server.calls.errors import lost_task_error
from actors.server.calls.gate import ApprovalGate
from actors.server.calls.state_loss import StateLoss
from actors.server.inbox import (
    CallAbandoned,
    HoldEnded,
    Lead,
    ListsRead,
    OfIncarnation,
    Order,
    OutputClosed,
    PageRead,
    PauseOver,
    ProcessExit,
    QuestionAnswered,
    QuestionProgressed,
    Received,
    ServerMessage,
    SessionEnded,
    TimerFired,
    WorkSeen,
    Written,
)
from actors.server.lists import Lists
from actors.server.operators.orders import Handover, Orders
from actors.server.operators.record import Record
from actors.server.parts.context import Course, Profile, ServerContext, Shared
from actors.server.parts.dialogue import Dialogue
from actors.server.parts.discovery import ChangeStream, Discovery
from actors.server.parts.legacy_session import LegacySession
from actors.server.parts.liveness import Liveness
from actors.server.parts.processes import Processes
from actors.server.parts.recovery import LOOPING_S, WORTH_WAITING_S, Recovery
from actors.server.parts.traffic import Traffic
from actors.server.settings import DRAIN_S

STDERR_LINES = 20
_LEARNED = (
    "calls that had worked fail in its new process: it is taken for one that holds something in memory; "
    '"stateful": true says so for good'
)


class Performer:
    """The parts of one server and what happens between them. `post` is the mailbox of its actor.

    Performs the effects of the server's lifecycle, each by the part that knows how, and tells what became of it.
    Synchronous throughout; what waits runs in tasks of the actor and comes back as a message of the actor.
    """

    def __init__(
        self, server: Profile, shared: Shared, reporter: Reporter, post: Address[ServerMessage], start_soon: StartSoon
    ) -> None:
        name, settings, known = server_of(server.name), server.settings, server.known
        lists = Lists(name, settings, known, lambda: server.transport.kind == "http")
        timers: Timers[Timer] = Timers(lambda timer, number: post.tell(TimerFired(timer, number)), start_soon)
        orders = Orders(name)
        all_of_launch = server.breakers or Breakers(settings, server.restarts.jitter, self._on_breaker)
        breakers = CallBreakers(server.name, name, all_of_launch, shared.facts)
        gate = ApprovalGate(name, shared.keeper, lists)
        state_loss = StateLoss(settings, lambda: server.journal.note(_LEARNED))
        jitter, wake_by = server.restarts.jitter, partial(timers.start_by, Timer.DEADLINES)
        calls = Calls(name, settings, server.hide, lists.mirrors_of, gate, breakers, state_loss, jitter, wake_by)
        handover = Handover(name, calls, orders)
        self.context = context = ServerContext(
            server=server,
            shared=shared,
            post=post,
            start_soon=start_soon,
            timers=timers,
            course=Course(self._perform, orders),
            calls=calls,
            orders=orders,
            breakers=breakers,
            record=Record(server.name, reporter, server.journal, server.hide, server.era, known, shared.facts),
            recovery=Recovery(name, server.restarts, timers, calls, orders, handover, server.seat),
            handover=handover,
            mirrors_of=lists.mirrors_of,
            needs_task=lists.needs_task,
        )
        self._server = server
        self.processes = Processes(context)
        self._dialogue = Dialogue(calls, settings, post, start_soon)
        self.liveness = Liveness(context, self.processes)
        self.discovery = Discovery(context, lists, self.processes)
        self.change_stream = ChangeStream(context, self.processes, self.discovery)
        self.traffic = Traffic(
            context, self.processes, self._dialogue, self.discovery, self.change_stream, self.liveness, self.status
        )

    def end(self) -> None:
        """Be no part of what goes on any more."""
        self.context.course.end()
        self.traffic.end()
        if self._server.breakers is None:
            self.context.breakers.all.end()

    def status(self) -> ServerStatus:
        context, link, known, now = self.context, self.processes.link, self.discovery.offer, trio.current_time()
        life, calls, record, recovery = context.course.life, context.calls, context.record, context.recovery
        next_start_s, retry_s = recovery.next_start_s(), recovery.call_retry_s(life)
        agreement = link.talk.agreement if link is not None else None
        return ServerStatus(
            server=self._server.name,
            state=life.state,
            wanted=life.wanted,
            since=record.since,
            used_at=calls.last_activity or None,
            transport=self._server.transport.kind,
            incarnation=life.incarnation,
            pid=link.pid if link is not None else None,
            era=record.era,
            protocol_version=agreement.version if agreement is not None else (known.version if known else None),
            server_version=record.server_version,
            restarts=self._server.restarts.total,
            activity=self.processes.activity,
            next_start=None if next_start_s is None else now + next_start_s,
            retry_at=None if retry_s is None else now + retry_s,
            last_error=record.last_error,
            last_error_at=record.last_error_at,
            in_flight=calls.in_flight,
            waiting=len(calls.waiting),
            calls=calls.total,
            failures=calls.failures,
            noise=record.noise + (link.counters.stdout_noise if link is not None else 0),
            strays=link.talk.strays if link is not None else 0,
            unheard=calls.unheard + (link.talk.exchanges.unheard if link is not None else 0),
            one_at_a_time=calls.turns.taken,
            asked_since=calls.turns.asked_at(now),
            tasks=link.talk.tasks.open if link is not None else 0,
            requires_reauth=life.barred,
            reason=life.reason,
            exit_code=record.exit.code,
            signal=record.exit.signal,
            down=recovery.down,
            discovery=self.discovery.counted.readings,
            last_sign_at=link.heard if link is not None and link.said else None,
            breakers=context.breakers.all.rows(),
        )

    def wake(self, *, urgent: bool) -> None:
        self.discovery.looking = None
        if urgent:
            self.processes.hurry()
        self.context.course.step(lifecycle.Wake())
        if urgent and self.context.recovery.may_hasten(self.context.course.life):
            self.context.course.step(lifecycle.BackoffOver())
        elif urgent:
            self.context.recovery.hasten(self.context.course.life)

    def on_exit(self, end: ProcessExit) -> None:
        self._dialogue.drop()
        self.discovery.counted.fail(trio.current_time())
        self.processes.on_exit(end)
        self.change_stream.on_exit()
        self.context.breakers.drop()

    def on_order(self, what: str) -> None:
        """Note what an operator orders: then nobody only looks any more."""
        self.discovery.looking = None
        self.context.record.order(what)

    def forget(self) -> None:
        """Start afresh, as an operator wants: earlier failures do not count."""
        self._server.restarts.forget()
        self.context.breakers.all.close()

    def _on_breaker(self, breaker: OpenBreaker, *, opened: bool) -> None:
        self.context.record.note_breaker(self.status(), breaker, opened=opened)
        if opened:
            self.context.calls.fail_refused(trio.current_time())

    # Timers ---------------------------------------------------------------------------------------------------------

    def on_timer(self, timer: Timer) -> None:
        match timer:
            case Timer.DEADLINES:
                self.traffic.on_deadlines()
            case Timer.IDLE:
                self._on_idle()
            case Timer.BACKOFF:
                self.context.course.step(lifecycle.BackoffOver())
            case Timer.RETRY:
                self._server.restarts.begin_probe(trio.current_time())
                self.context.course.step(lifecycle.Wake())
            case Timer.HANDSHAKE:
                self._on_handshake_late()
            case Timer.DRAIN:
                self.context.course.step(lifecycle.Expired(self.context.course.life.incarnation))
            case Timer.RELIST:
                self.discovery.read()
            case Timer.LISTEN:
                self.change_stream.open()
            case Timer.LISTING:
                self.discovery.on_late()
                self.traffic.pump()
            case Timer.LOOK:
                self.discovery.look()
            case Timer.SILENCE | Timer.WATCH:
                self.liveness.on_timer(timer)
                self.traffic.pump()

    def _on_handshake_late(self) -> None:
        if self.processes.on_late():
            self.context.record.install(self.status())

    def _on_idle(self) -> None:
        """Let it sleep, if it has been idle for so long; else look again when it may have been."""
        context, link, settings = self.context, self.processes.link, self._server.settings
        patience_s = idle_s = context.calls.state_loss.idle_s
        if link is not None:
            patience_s = max(patience_s, min(link.talk.tasks.longest_s, settings.task_max_s))
        left = max(context.calls.last_activity + patience_s, self._server.seat.expected_until) - trio.current_time()
        if context.calls.open or self.change_stream.wanted or self.discovery.reading:
            left = idle_s
        if left > 0:
            context.course.step(lifecycle.Prolonged(context.course.life.incarnation, Timer.IDLE, left))
        else:
            context.course.step(lifecycle.Sleep())

    def lead(self, *, reads: bool) -> None:
        """Another instance of the launch looked after lists and resources until now."""
        self.change_stream.take_over()
        if reads:
            self.discovery.read()

    # Effects --------------------------------------------------------------------------------------------------------

    def _perform(self, effect: lifecycle.Effect) -> None:
        match effect:
            case lifecycle.StartTimer(timer=timer, seconds=seconds):
                self._start_timer(timer, seconds)
            case lifecycle.CancelTimer(timer=timer):
                self.context.timers.cancel(timer)
            case lifecycle.Report(previous=previous):
                self._report(previous)
            case lifecycle.Spawn(incarnation=number):
                self.discovery.doubt()
                self.processes.spawn(number, urgent=bool(self.context.calls.waiting) or self.context.orders.urgent)
            case lifecycle.Greet():
                self.processes.greet()
            case lifecycle.ListAll():
                self.discovery.read()
            case lifecycle.Serve():
                self._serve()
            case lifecycle.FinishCalls():
                self.traffic.pump()
            case lifecycle.Kill(polite=polite):
                self.processes.stop(polite=polite)
            case lifecycle.FailInFlight(reason=reason):
                self.context.calls.fail_in_flight(self.context.handover.reason(reason), trio.current_time())
            case lifecycle.FailWaiting(reason=reason) if not self.context.handover.pass_on(trio.current_time()):
                self.context.recovery.fail_waiting(self.context.course.life, reason)
            case lifecycle.AskPolicy():
                self._ask_policy(effect)
            case lifecycle.GiveUp():
                self.processes.give_up()
                self.context.recovery.give_up()
                self._server.restarts.give_up(trio.current_time())
                self.context.record.last_error = self.context.record.last_error or self.context.course.life.reason

    def _start_timer(self, timer: Timer, seconds: float | None) -> None:
        seconds = self._seconds(timer) if seconds is None else seconds
        if seconds is not None:
            self.context.timers.start(timer, seconds)

    def _seconds(self, timer: Timer) -> float | None:
        """Return how many seconds a timer has that starts with a state, None if it is not needed."""
        match timer:
            case Timer.HANDSHAKE:
                return self.processes.handshake_s()
            case Timer.DRAIN:
                return DRAIN_S
            case Timer.IDLE:
                return self.context.calls.state_loss.idle_s or None
            case Timer.RETRY:
                # Calls try a server that was given up, but nobody can call what was never listed; and one that is not
                # ours to start may heal without us.
                by_call = self._server.transport.kind == "stdio" and self.discovery.offer is not None
                return None if by_call else self._server.restarts.retry()
            case _:
                return None

    def _report(self, previous: State) -> None:
        life = self.context.course.life
        if life.state in (State.READY, State.DORMANT):
            self.context.recovery.recover()
        self.context.record.enter(life.state)
        self.context.breakers.enter(life)
        link = self.processes.link
        began = link.process.began if link is not None else trio.current_time()
        self.context.record.change(self.status(), previous, life.reason, began)

    def _serve(self) -> None:
        now = trio.current_time()
        self._server.restarts.ready(now)
        self.context.breakers.end_start(now)
        self.context.calls.last_activity = now
        self.liveness.begin(now)
        self.change_stream.begin()
        self.traffic.pump()

    def _ask_policy(self, failure: lifecycle.AskPolicy) -> None:
        if not failure.scarce:
            self.context.breakers.end_start(trio.current_time(), failure.reason)
        if self.discovery.stop_looking():  # nobody waits for it, and what is known of it stays: no reason to give it up
            self.context.course.step(lifecycle.Sleep())
            return
        delay_s = self.context.recovery.delay_s(failure)
        self.context.recovery.fail(failure, delay_s)
        if delay_s is None:
            self.context.course.step(lifecycle.GaveUp())
        else:
            self.context.course.step(lifecycle.Admitted(delay_s))
            if delay_s > (LOOPING_S if failure.away_s is None else WORTH_WAITING_S) or self._server.seat.replaceable:
                self.context.recovery.fail_waiting(self.context.course.life, failure.reason)
            self.context.orders.fail_patient(lambda: self.context.recovery.starting_error(self.context.course.life))
            self.context.record.wait(self.status(), delay_s)


class ServerActor(Actor[ServerMessage]):
    """One configured server, which reports to the registry by `reporter`."""

    def __init__(self, server: Profile, shared: Shared, reporter: Reporter) -> None:
        settings = server.settings
        super().__init__(settings.max_in_flight + settings.max_queued + 256)
        self.name = server_of(server.name)
        self._reporter = reporter
        self._server = Performer(server, shared, reporter, self.address, self.start_soon)
        context = self._server.context
        self._course, self._calls, self._timers = context.course, context.calls, context.timers
        self.breakers = context.breakers.all
        self._orders, self._recovery, self._handover = context.orders, context.recovery, context.handover
        self._traffic = self._server.traffic
        self._legacy = LegacySession(
            server,
            self._server.discovery,
            shared.keeper,
            lambda profile: ServerActor(
                replace(profile, breakers=context.breakers.all), shared.beside(), Reporter(None)
            ),
            self.address,
            self.start_soon,
        )

    @property
    def life(self) -> Life:
        return self._course.life

    async def run(self, *, task_status: trio.TaskStatus[Address[ServerMessage]] = trio.TASK_STATUS_IGNORED) -> None:
        """Handle messages until the end, and let go of the parts then: they know each other, and cycles may stay.

        (`supervisor/host/pauses.py` says which do; and a daemon may replace servers all day.)
        """
        try:
            await super().run(task_status=task_status)
        finally:
            course = self._course
            self._server.end()
            vars(self).clear()
            self._course = course

    def on_start(self) -> None:
        self._server.discovery.restore()
        self.start_soon(self._reporter.run)

    def status(self, stderr: bool = False) -> ServerStatus:
        """`stderr`: with the newest lines of it."""
        status = self._legacy.counted_in(self._server.status())
        link = self._server.processes.link if stderr else None
        return status if link is None else replace(status, stderr=link.last_stderr(STDERR_LINES))

    def handle(self, message: ServerMessage, reply: Reply[Any] | None) -> None:
        match message:
            case CallServer():
                assert reply is not None
                self._on_call(message, reply)
            case Received():
                if message.incarnation == self._course.life.incarnation:
                    self._traffic.receive(message)
            case CallAbandoned(call=number, reason=reason):
                self._traffic.abandon(number, reason)
            case TimerFired(name=timer, number=number):
                if self._timers.take(timer, number):
                    self._server.on_timer(timer)
            case WakeServer() | RestartServer() | RefreshServer() | SleepServer() | StopServer() | ReadServer():
                assert reply is not None
                self._on_order(message, reply)
            case CloseBreakers():
                self.breakers.close()
            case SessionEnded():
                pass
            case Lead(reads=reads):
                self._server.lead(reads=reads)
            case _:
                if message.incarnation == self.life.incarnation:
                    self._on_process(message)
        if self.life.over and self._legacy.over:
            self.finish()

    def rest(self) -> None:
        link = self._server.processes.link
        while link is not None and link.process.write():
            self._traffic.pump()

    def _on_process(self, message: OfIncarnation) -> None:
        match message:
            case Written():
                self._traffic.pump()
            case OutputClosed():
                self._traffic.on_output_closed()
            case PageRead() | ListsRead() | QuestionAnswered() | QuestionProgressed() | HoldEnded() | PauseOver():
                self._traffic.resume(message)
            case WorkSeen():
                self._traffic.resume(message)
            case ProcessExit():
                self._server.on_exit(message)
            case lifecycle.Spawned() | lifecycle.SpawnRefused() | lifecycle.Violated():
                self._server.processes.take(message)

    # Orders ---------------------------------------------------------------------------------------------------------

    def _on_order(self, message: Order, reply: Reply[Any]) -> None:
        if not isinstance(message, (StopServer, ReadServer)) and self._handover.pass_on_late(message, reply):
            return
        match message:
            case ReadServer(stderr=stderr):
                reply.answer(self.status(stderr=stderr))
            case WakeServer(operator=operator, urgent=urgent):
                self._on_wake(reply, operator=operator, urgent=urgent)
            case RestartServer():
                self._on_restart(reply)
            case RefreshServer(operator=operator):
                self._on_refresh(reply, operator=operator)
            case SleepServer():
                self._legacy.sleep()
                self._orders.wait("sleep", reply)
                self._course.step(lifecycle.Sleep())
            case StopServer(departure=departure):
                self._on_stop(departure, reply)

    def _on_stop(self, departure: Departure | None, reply: Reply[Any]) -> None:
        """Begin the end. One that has begun takes no longer than is said last: the daemon's own is the shortest."""
        if departure is not None:
            self._server.context.record.leave(departure, self._calls.in_flight)
            self._reporter.end()
            self._handover.begin(departure, trio.current_time())
        self._legacy.end(departure)
        self._orders.wait("stop", reply)
        self._course.step(lifecycle.Stop())
        drain_s = DRAIN_S if departure is None else departure.drain_s
        self._course.step(lifecycle.Prolonged(self.life.incarnation, Timer.DRAIN, drain_s))

    def _on_restart(self, reply: Reply[Any]) -> None:
        if (refusal := self._recovery.refusal(self.life, operator=True)) is not None:
            reply.fail(refusal)
            return
        self._legacy.restart()
        self._server.forget()
        self._server.on_order("restart")
        self._orders.wait("restart", reply)
        self._course.step(lifecycle.Restart())

    def _on_refresh(self, reply: Reply[Any], *, operator: bool) -> None:
        refusal = None if operator else self._recovery.refusal_by_breaker(self.life, reads=True)
        if (refusal := refusal or self._recovery.refusal(self.life, operator=operator)) is not None:
            reply.fail(refusal)
            return
        if operator:
            self._server.on_order("refresh")
            self._server.forget()
        self._orders.wait("refresh", reply)
        if self.life.listable:
            self._server.discovery.read()
            return
        self._server.wake(urgent=True)
        if operator:
            self._course.step(lifecycle.BackoffOver())

    def _on_wake(self, reply: Reply[Any], *, operator: bool, urgent: bool) -> None:
        if operator:
            self._server.forget()
        elif (refusal := self._refusal_to_wake()) is not None:
            reply.fail(refusal)
            return
        elif not self.life.serving:
            self._calls.breakers.begin_start(reply, trio.current_time())
        self._orders.wait("wake" if urgent else "look", reply)
        self._server.wake(urgent=urgent)
        if operator:  # need not wait for a back-off that belongs to the forgotten failures
            self._course.step(lifecycle.BackoffOver())

    def _refusal_to_wake(self) -> SupervisorError | None:
        breaker = None if self.life.serving else self._recovery.refusal_by_breaker(self.life)
        return breaker or self._recovery.refusal(self.life)

    # Calls ----------------------------------------------------------------------------------------------------------

    def _on_call(self, message: CallServer, reply: Reply[Result]) -> None:
        if reply.settled:  # the client went away before anybody looked
            return
        now, life = trio.current_time(), self._course.life
        if self._legacy.possible and self._legacy.take(message, reply, life):
            return
        serving = life.state is State.READY
        if message.run and (message.run != self._server.processes.run or not serving):
            reply.fail(lost_task_error(self.name))
            return
        if not serving and self._handover.pass_on_late(message, reply):
            return
        refusal: SupervisorError | None = None
        if self.breakers.troubled:
            reads = self._calls.gate.is_shut_for(message)
            refusal = self._recovery.refusal_by_breaker(life, message.tool, reads=reads)
        if refusal is None and not serving:
            refusal = self._recovery.refusal_of_call(life, now + message.deadline_s)
        if refusal is not None:
            reply.fail(refusal)
            return
        try:
            call = self._calls.enter(message, reply, now)
        except (TooManyCalls, CallTooLarge) as error:
            reply.fail(error)
            return
        reply.on_abandon(lambda: self._abandon(call.number, reply.abandoned_for))
        if serving:
            self._traffic.pump(now)
        else:
            call.woke = True
            self._server.wake(urgent=True)

    def _abandon(self, number: int, reason: str) -> None:
        try:
            self.address.tell_nowait(CallAbandoned(number, reason))
        except SupervisorError:  # full or gone: the late answer, or the deadline, frees its place
            return
