"""The actor of one MCP server: takes its messages, owns its calls, and leaves its life to the performer.

Everything that waits runs in child tasks (the process, the timers, the reports), which post messages; the handler
itself never waits. Messages of an older incarnation change nothing, nor do timers that were cancelled or replaced after
they fired.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio

from actors.catalogue.entries import Offer
from actors.errors import CallTooLarge, SupervisorError, TooManyCalls
from actors.kit import Actor, Reply, Starts
from actors.kit.reporter import Reporter
from actors.life import lifecycle as lc
from actors.life.lifecycle import State
from actors.life.policy import RestartLog
from actors.messages import (
    CallServer,
    ReadServer,
    RefreshServer,
    RestartServer,
    Result,
    ServerStatus,
    SleepServer,
    StopServer,
    WakeServer,
)
from actors.protocol.era import Identity
from actors.protocol.versions import Era
from actors.server.inbox import CallAbandoned, Message, PageRead, QuestionAnswered, TimerFired
from actors.server.incarnation import Broken, Ended, NotStarted, Received, Started, Written
from actors.server.journal import Journal
from actors.server.link import Launcher
from actors.server.performer import Performer
from actors.server.record import Record, with_stderr
from actors.server.settings import ServerSettings
from actors.transport.base import Transport


class ServerActor(Actor[Message]):
    """One configured server. `known` is what the catalogue already has of it, `era` what it spoke before.

    `clock` gives unix time in seconds; deadlines run by the trio clock. `hide` takes secrets out of what the server
    says of itself. `journal` is what is kept of it for its operator. `desk` is where large pages of lists are read,
    shared by all servers.
    """

    def __init__(
        self,
        name: str,
        transport: Transport,
        settings: ServerSettings,
        restarts: RestartLog,
        starts: Starts,
        reporter: Reporter,
        clock: Callable[[], float],
        *,
        identity: Identity,
        known: Offer | None = None,
        era: Era | None = None,
        hide: Callable[[str], str] = str,
        journal: Journal | None = None,
        desk: trio.CapacityLimiter | None = None,
    ) -> None:
        super().__init__(settings.max_in_flight + settings.max_queued + 256)
        self.name = name
        self._idle_timeout_s = settings.idle_timeout_s
        self._restarts = restarts
        self._reporter = reporter
        journal = journal or Journal(clock)
        launcher = Launcher(transport, settings, starts, self.address, identity, journal.overhear)
        record = Record(name, transport.kind, reporter, clock, era, hide, journal, known)
        self._server = Performer(name, launcher, settings, restarts, record, self.address, known, desk)
        self._calls = self._server.calls
        self._timers = self._server.timers

    @property
    def life(self) -> lc.Life:
        """The present state and what is wanted."""
        return self._server.life

    def started(self) -> None:
        """Start the task that carries facts to the registry."""
        self._server.started(self.nursery)
        self.nursery.start_soon(self._reporter.run)

    def status(self) -> ServerStatus:
        """Return how the server is doing now."""
        return self._server.status()

    def handle(self, message: Message, reply: Reply[Any] | None) -> None:
        """React to one message."""
        match message:
            case Received():
                if message.incarnation == self.life.incarnation:
                    self._server.on_received(message)
            case Written(incarnation=number):
                if number == self.life.incarnation:
                    self._server.pump()
            case PageRead():
                if message.incarnation == self.life.incarnation:
                    self._server.on_page_read(message)
            case QuestionAnswered():
                if message.incarnation == self.life.incarnation:
                    self._server.on_answered(message)
                    self._watch_deadlines()
            case CallServer():
                assert reply is not None
                self._on_call(message, reply)
            case CallAbandoned(call=number):
                self._calls.abandon(number, self._server.link)
                self._server.pump()
            case TimerFired(name=name, number=number):
                if self._timers.take(name, number):
                    self._on_timer(name)
            case Started() | NotStarted() | Broken() | Ended():
                if message.incarnation == self.life.incarnation:
                    self._server.on_process(message)
            case _:
                assert reply is not None
                self._on_order(message, reply)
        if self.life.state is State.STOPPED:
            self.finish()

    # Orders ---------------------------------------------------------------------------------------------------------

    def _on_order(
        self,
        message: ReadServer | WakeServer | RestartServer | RefreshServer | SleepServer | StopServer,
        reply: Reply[Any],
    ) -> None:
        """What operators and the daemon ask for."""
        match message:
            case ReadServer(stderr=stderr):
                found = self.status()
                reply.answer(with_stderr(found, self._server.link) if stderr else found)
            case WakeServer(operator=operator, urgent=urgent):
                self._on_wake(reply, operator=operator, urgent=urgent)
            case RestartServer():
                self._on_restart(reply)
            case RefreshServer():
                self._on_refresh(reply)
            case SleepServer():
                self._server.orders.sleep(reply)
                self._server.step(lc.Sleep())
            case StopServer():
                self._server.orders.stop(reply)
                self._server.step(lc.Stop())

    def _on_restart(self, reply: Reply[Any]) -> None:
        if (refusal := self._server.recovery.ending(self.life)) is not None:
            reply.fail(refusal)
            return
        self._restarts.forget()
        self._server.discovery.looking = None
        self._server.orders.restart(reply)
        self._server.step(lc.Restart())

    def _on_refresh(self, reply: Reply[Any]) -> None:
        if (refusal := self._server.recovery.ending(self.life)) is not None:
            reply.fail(refusal)
            return
        self._server.orders.refresh(reply)
        if self.life.state in (State.READY, State.DISCOVERING):
            self._server.read_lists()
            return
        self._restarts.forget()
        self._server.wake(urgent=True)
        self._server.step(lc.BackoffOver())

    def _on_wake(self, reply: Reply[Any], *, operator: bool, urgent: bool) -> None:
        if operator:
            self._restarts.forget()
        elif (refusal := self._server.recovery.refusal(self.life)) is not None:
            reply.fail(refusal)
            return
        self._server.orders.wake(reply, urgent=urgent)
        self._server.wake(urgent=urgent)
        if operator:  # need not wait for a back-off that belongs to the forgotten failures
            self._server.step(lc.BackoffOver())

    # Calls ----------------------------------------------------------------------------------------------------------

    def _on_call(self, message: CallServer, reply: Reply[Result]) -> None:
        if reply.settled:  # the client went away before anybody looked
            return
        recovery = self._server.recovery
        now = trio.current_time()
        deadline = now + message.deadline_s
        if (refusal := recovery.refusal(self.life) or recovery.too_late(self.life, deadline)) is not None:
            reply.fail(refusal)
            return
        try:
            call = self._calls.enter(message, reply, now)
        except (TooManyCalls, CallTooLarge) as error:
            reply.fail(error)
            return
        reply.on_abandon(lambda: self._abandon(call.number))
        if self.life.state is State.READY:
            self._server.pump(now)
        else:
            self._server.wake(urgent=True)
        self._watch_deadlines()

    def _abandon(self, number: int) -> None:
        try:
            self.address.tell_nowait(CallAbandoned(number))
        except SupervisorError:  # full or gone: the late answer, or the deadline, frees its place
            return

    def _watch_deadlines(self) -> None:
        deadline = self._calls.next_deadline()
        if deadline is not None:
            self._timers.start_by(self.nursery, "deadlines", deadline)

    # Timers ---------------------------------------------------------------------------------------------------------

    def _on_timer(self, name: str) -> None:
        match name:
            case "deadlines":
                link = self._server.link
                why = self._server.recovery.delay(self.life, self._server.startup.activity(link))
                if self._calls.time_out(trio.current_time(), link, *why):
                    self._server.on_silence()
                self._server.pump()
                self._watch_deadlines()
            case "idle":
                self._on_idle()
            case "backoff":
                self._server.step(lc.BackoffOver())
            case "retry":
                self._server.recovery.begin_retry()
                self._server.step(lc.Wake())
            case "stage":
                self._server.on_stage_late()
            case "relist":
                self._server.read_lists()
            case "listing":
                self._server.on_listing_late()
            case "look":
                self._server.on_look()
            case "silence":
                self._server.on_silence_over()

    def _on_idle(self) -> None:
        left = self._calls.last_activity + self._idle_timeout_s - trio.current_time()
        link = self._server.link
        if self._calls.open or (link is not None and link.talk.listing):
            left = self._idle_timeout_s
        if left > 0:
            self._timers.start(self.nursery, "idle", left)
        else:
            self._server.step(lc.Sleep())
