"""Performs the effects of a server's lifecycle, each by the part that knows how, and tells what became of it.

Synchronous throughout; what waits runs in tasks of the actor and comes back as a message of the actor.
"""

from __future__ import annotations

import trio

from actors.kit import Address, StartSoon
from actors.kit.reporter import Reporter
from actors.kit.timers import Timers
from actors.life import effects as ef
from actors.life.events import Admitted, BackoffOver, GaveUp, Sleep, Wake
from actors.life.states import State
from actors.life.timers import Timer
from actors.messages import ServerStatus
from actors.server.calls.calls import Calls
from actors.server.calls.task_pauses import TaskPauses
from actors.server.course import Course
from actors.server.dialogue import Dialogue
from actors.server.lists.change_stream import ChangeStream
from actors.server.lists.discovery import Discovery
from actors.server.lists.lists import Lists
from actors.server.liveness import Liveness
from actors.server.operators.orders import Orders
from actors.server.process.inbox import ServerMessage, TimerFired
from actors.server.process.incarnation import ProcessExit
from actors.server.process.link import Launcher
from actors.server.processes import Processes
from actors.server.profile import Profile, Shared
from actors.server.record import Record
from actors.server.recovery import Recovery
from actors.server.settings import DRAIN_S
from actors.server.traffic import Traffic
from actors.transport.base import BESIDE_US


class Performer:
    """The parts of one server and what happens between them. `post` is the mailbox of its actor."""

    def __init__(
        self, server: Profile, shared: Shared, reporter: Reporter, post: Address[ServerMessage], start_soon: StartSoon
    ) -> None:
        name, settings, known = server.name, server.settings, server.known
        journal, restarts = server.journal, server.restarts
        self._settings = settings
        self._transport = server.transport
        self._restarts = restarts
        self._post = post
        self.finished = False
        self.timers: Timers[Timer] = Timers(self._fire, start_soon)
        self.orders = Orders(name)
        self.course = Course(self._perform, self.orders)
        lists = Lists(name, settings, known, lambda: server.transport.kind == "http")
        self.calls = Calls(name, settings, server.hide, lists.mirrors_of)
        self.recovery = Recovery(name, restarts, self.timers)
        self._record = Record(
            name, lambda: server.transport.kind, reporter, shared.clock, server.era, server.hide, journal, known
        )
        launcher = Launcher(
            server.transport,
            settings,
            shared.starts,
            post,
            start_soon,
            shared.identity,
            journal.overhear,
            lists.mirrors_of,
            lists.needs_task,
        )
        self.processes = Processes(
            launcher,
            settings,
            restarts.policy.restart,
            self.calls,
            self._record,
            self.course,
            new=known is None and server.era is None,
        )
        self._dialogue = Dialogue(self.calls, settings, post, start_soon)
        self.liveness = Liveness(settings.unresponsive_s, self.timers, self.processes, self.course)
        self.discovery = Discovery(
            lists,
            settings,
            self.processes,
            self.calls,
            self.orders,
            self._record,
            self.course,
            self.timers,
            post,
            start_soon,
            shared.desk,
        )
        self.change_stream = ChangeStream(
            name, shared.subscribers, restarts, self.timers, self.processes, self.course, self.discovery
        )
        self.traffic = Traffic(
            self.processes,
            self.calls,
            self._dialogue,
            self.discovery,
            self.change_stream,
            self.liveness,
            self._record,
            self.course,
            TaskPauses(post, start_soon),
        )

    async def _fire(self, timer: Timer, number: int) -> None:
        await self._post.tell(TimerFired(timer, number))

    def status(self) -> ServerStatus:
        life, known = self.course.life, self.discovery.known
        activity = self.processes.activity
        return self._record.status(life, self.processes.link, known, self.calls, self.recovery, activity=activity)

    def wake(self, *, urgent: bool) -> None:
        """Bring the server up, unless it is up or on its way."""
        self.discovery.looking = None
        if urgent:
            self.processes.hurry()
        self.course.step(Wake())
        if urgent and self.recovery.may_hasten(self.course.life):
            self.course.step(BackoffOver())

    def ended(self, end: ProcessExit) -> None:
        self._dialogue.drop()
        self.processes.ended(end)
        self.change_stream.gone()

    def on_handshake_late(self) -> None:
        if self.processes.on_late():
            self._record.story.installing()
            self._record.noted(self.status())

    def ordered(self, what: str) -> None:
        """Note what an operator orders: then nobody only looks any more."""
        self.discovery.looking = None
        self._record.story.ordered(what)

    # Effects --------------------------------------------------------------------------------------------------------

    def _perform(self, effect: ef.Effect) -> None:
        match effect:
            case ef.StartTimer(timer=timer, seconds=seconds):
                self._start_timer(timer, seconds)
            case ef.CancelTimer(timer=timer):
                self.timers.cancel(timer)
            case ef.Report(previous=previous):
                self._report(previous)
            case ef.Spawn(incarnation=number):
                self.processes.spawn(number, urgent=bool(self.calls.waiting) or self.orders.urgent)
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
            case ef.FailInFlight() | ef.FailWaiting() | ef.AskPolicy() | ef.GiveUp():
                self._fail(effect)
            case ef.Finish():
                self.finished = True

    def _fail(self, effect: ef.FailInFlight | ef.FailWaiting | ef.AskPolicy | ef.GiveUp) -> None:
        match effect:
            case ef.FailInFlight(reason=reason):
                self.calls.fail_in_flight(reason)
            case ef.FailWaiting(reason=reason):
                self.recovery.fail_waiting(self.course.life, reason, self.calls, self.orders)
            case ef.AskPolicy():
                self._ask_policy(effect)
            case ef.GiveUp():
                self.processes.give_up()
                self.recovery.give_up()
                self._record.last_error = self._record.last_error or self.course.life.reason

    def _start_timer(self, timer: Timer, seconds: float | None) -> None:
        seconds = self._seconds(timer) if seconds is None else seconds
        if seconds is not None:
            self.timers.start(timer, seconds)

    def _seconds(self, timer: Timer) -> float | None:
        """Return how many seconds a timer has that starts with a state, None if it is not needed."""
        match timer:
            case Timer.HANDSHAKE:
                return self.processes.handshake_s()
            case Timer.DRAIN:
                return DRAIN_S
            case Timer.IDLE:
                return self._settings.idle_timeout_s or None
            case Timer.RETRY:
                ours = self._transport.kind in BESIDE_US
                return self.recovery.retry_s(by_call=ours and self.discovery.known is not None)
            case _:
                return None

    def _report(self, previous: State) -> None:
        life = self.course.life
        self._record.entered(life.state)
        link = self.processes.link
        began = link.process.began if link is not None else trio.current_time()
        self._record.changed(self.status(), previous, life.reason, began)

    def _serve(self) -> None:
        now = trio.current_time()
        self._restarts.ready(now)
        self.calls.last_activity = now
        self.change_stream.begin()
        self.traffic.pump()

    def _ask_policy(self, failure: ef.AskPolicy) -> None:
        if self.discovery.stop_looking():  # nobody waits for it, and what is known of it stays: no reason to give it up
            self.course.step(Sleep())
        elif (delay_s := self.recovery.delay_s(failure)) is None:
            self.course.step(GaveUp())
        else:
            self.course.step(Admitted(delay_s))
            if not self.recovery.worth_waiting(failure, delay_s):
                self.recovery.fail_waiting(self.course.life, failure.reason, self.calls, self.orders)
            self.orders.fail_patient(lambda: self.recovery.starting(self.course.life))
            self._record.waits(self.status(), delay_s)
