"""The actor of one MCP server: takes its messages, and hands each to the part of the server that it is about.

Everything that waits runs in child tasks (the process, the timers, the reports), which post messages; the handler
itself never waits. Messages of an older incarnation change nothing, nor do timers that were cancelled or replaced after
they fired.
"""

from __future__ import annotations

from typing import Any

import trio
from msgspec.structs import replace

from actors.errors import CallTooLarge, SupervisorError, TooManyCalls
from actors.kit import Actor, Address, Reply
from actors.kit.reporter import Reporter
from actors.launch import server_of
from actors.life import events as ev
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
from actors.server.calls.errors import lost_task_error
from actors.server.context import Profile, Shared
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
from actors.server.legacy_session import LegacySession
from actors.server.performer import Performer
from actors.server.settings import DRAIN_S

STDERR_LINES = 20


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
            lambda: self._server.discovery.offer,
            lambda profile: ServerActor(
                replace(profile, breakers=context.breakers.all), shared.beside(), Reporter(None)
            ),
            self.address,
            self.start_soon,
            lambda: shared.keeper.holds(server.name),
        )

    @property
    def life(self) -> Life:
        return self._course.life

    async def run(self, *, task_status: trio.TaskStatus[Address[ServerMessage]] = trio.TASK_STATUS_IGNORED) -> None:
        """Handle messages until the end, and let go of the parts then: they know each other, and cycles may stay.

        (`supervisor/host/loop/pauses.py` says which do; and a daemon may replace servers all day.)
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
            case ev.Spawned() | ev.SpawnRefused() | ev.Violated():
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
                self._course.step(ev.Sleep())
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
        self._course.step(ev.Stop())
        drain_s = DRAIN_S if departure is None else departure.drain_s
        self._course.step(ev.Prolonged(self.life.incarnation, Timer.DRAIN, drain_s))

    def _on_restart(self, reply: Reply[Any]) -> None:
        if (refusal := self._recovery.refusal(self.life, operator=True)) is not None:
            reply.fail(refusal)
            return
        self._legacy.restart()
        self._server.forget()
        self._server.on_order("restart")
        self._orders.wait("restart", reply)
        self._course.step(ev.Restart())

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
            self._course.step(ev.BackoffOver())

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
            self._course.step(ev.BackoffOver())

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
