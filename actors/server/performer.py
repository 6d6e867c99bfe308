"""Performs the effects of a server's lifecycle, each by the part that knows how, and tells what became of it.

Synchronous throughout; what waits runs in tasks of the actor and comes back as a message of the actor.
"""

from __future__ import annotations

from functools import partial

import trio

from actors.kit import Address, StartSoon
from actors.kit.reporter import Reporter
from actors.kit.timers import Timers
from actors.launch import server_of
from actors.life import effects as ef
from actors.life import events as ev
from actors.life.breakers import Breakers, OpenBreaker
from actors.life.states import State, Timer
from actors.messages import ServerStatus
from actors.server.calls.call_breakers import CallBreakers
from actors.server.calls.calls import Calls
from actors.server.calls.gate import ApprovalGate
from actors.server.calls.state_loss import StateLoss
from actors.server.context import Course, Profile, ServerContext, Shared
from actors.server.dialogue import Dialogue
from actors.server.inbox import ProcessExit, ServerMessage, TimerFired
from actors.server.lists.change_stream import ChangeStream
from actors.server.lists.discovery import Discovery
from actors.server.lists.lists import Lists
from actors.server.liveness import Liveness
from actors.server.operators.handover import Handover
from actors.server.operators.orders import Orders
from actors.server.operators.record import Record
from actors.server.processes import Processes
from actors.server.recovery import LOOPING_S, WORTH_WAITING_S, Recovery
from actors.server.settings import DRAIN_S
from actors.server.traffic import Traffic

LEARNED = (
    "calls that had worked fail in its new process: it is taken for one that holds something in memory; "
    '"stateful": true says so for good'
)


class Performer:
    """The parts of one server and what happens between them. `post` is the mailbox of its actor."""

    def __init__(
        self, server: Profile, shared: Shared, reporter: Reporter, post: Address[ServerMessage], start_soon: StartSoon
    ) -> None:
        name, settings, known = server_of(server.name), server.settings, server.known
        lists = Lists(name, settings, known, lambda: server.transport.kind == "http")
        timers: Timers[Timer] = Timers(lambda timer, number: post.tell(TimerFired(timer, number)), start_soon)
        orders = Orders(name)
        all_of_launch = server.breakers or Breakers(settings, server.restarts.jitter, self._on_breaker)
        breakers = CallBreakers(server.name, name, all_of_launch, shared.observer)
        gate = ApprovalGate(name, shared.keeper, lists)
        state_loss = StateLoss(settings, lambda: server.journal.note(LEARNED))
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
            record=Record(server.name, reporter, server.journal, server.hide, server.era, known, shared.observer),
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
            down=recovery.down,
            discovery=self.discovery.counted.readings,
            last_sign_at=link.heard if link is not None and link.said else None,
            breakers=context.breakers.all.rows(),
        )

    def wake(self, *, urgent: bool) -> None:
        self.discovery.looking = None
        if urgent:
            self.processes.hurry()
        self.context.course.step(ev.Wake())
        if urgent and self.context.recovery.may_hasten(self.context.course.life):
            self.context.course.step(ev.BackoffOver())
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
                self.context.course.step(ev.BackoffOver())
            case Timer.RETRY:
                self._server.restarts.begin_probe(trio.current_time())
                self.context.course.step(ev.Wake())
            case Timer.HANDSHAKE:
                self._on_handshake_late()
            case Timer.DRAIN:
                self.context.course.step(ev.Expired(self.context.course.life.incarnation))
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
            context.course.step(ev.Prolonged(context.course.life.incarnation, Timer.IDLE, left))
        else:
            context.course.step(ev.Sleep())

    def lead(self, *, reads: bool) -> None:
        """Another instance of the launch looked after lists and resources until now."""
        self.change_stream.take_over()
        if reads:
            self.discovery.read()

    # Effects --------------------------------------------------------------------------------------------------------

    def _perform(self, effect: ef.Effect) -> None:
        match effect:
            case ef.StartTimer(timer=timer, seconds=seconds):
                self._start_timer(timer, seconds)
            case ef.CancelTimer(timer=timer):
                self.context.timers.cancel(timer)
            case ef.Report(previous=previous):
                self._report(previous)
            case ef.Spawn(incarnation=number):
                self.discovery.doubt()
                self.processes.spawn(number, urgent=bool(self.context.calls.waiting) or self.context.orders.urgent)
            case ef.Greet():
                self.processes.greet()
            case ef.ListAll():
                self.discovery.read()
            case ef.Serve():
                self._serve()
            case ef.FinishCalls():
                self.traffic.pump()
            case ef.Kill(polite=polite):
                self.processes.stop(polite=polite)
            case ef.FailInFlight(reason=reason):
                self.context.calls.fail_in_flight(self.context.handover.reason(reason), trio.current_time())
            case ef.FailWaiting(reason=reason) if not self.context.handover.pass_on(trio.current_time()):
                self.context.recovery.fail_waiting(self.context.course.life, reason)
            case ef.AskPolicy():
                self._ask_policy(effect)
            case ef.GiveUp():
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

    def _ask_policy(self, failure: ef.AskPolicy) -> None:
        if not failure.scarce:
            self.context.breakers.end_start(trio.current_time(), failure.reason)
        if self.discovery.stop_looking():  # nobody waits for it, and what is known of it stays: no reason to give it up
            self.context.course.step(ev.Sleep())
            return
        delay_s = self.context.recovery.delay_s(failure)
        self.context.recovery.fail(failure, delay_s)
        if delay_s is None:
            self.context.course.step(ev.GaveUp())
        else:
            self.context.course.step(ev.Admitted(delay_s))
            if delay_s > (LOOPING_S if failure.away_s is None else WORTH_WAITING_S) or self._server.seat.replaceable:
                self.context.recovery.fail_waiting(self.context.course.life, failure.reason)
            self.context.orders.fail_patient(lambda: self.context.recovery.starting_error(self.context.course.life))
            self.context.record.wait(self.status(), delay_s)
