"""The actor of one MCP server: performs the effects of its lifecycle and owns its calls.

Everything that waits runs in child tasks (the process, the timers, the reports), which post messages; the handler
itself never waits. Only `lifecycle.step` changes the state. Messages of an older incarnation change nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import trio

from actors import lifecycle as lc
from actors.calls import Call, Calls
from actors.catalogue import validation
from actors.catalogue.entries import Offer
from actors.errors import (
    ProtocolViolation,
    ServerGaveUp,
    ShuttingDown,
    SupervisorError,
    TooManyCalls,
)
from actors.incarnation import Broken, Ended, Incarnation, NotStarted, Received, Started
from actors.kit import Actor, Gate, Reply
from actors.lifecycle import State
from actors.messages import (
    CallServer,
    EraLearned,
    ReadServer,
    Result,
    ServerChanged,
    ServerListed,
    ServerStatus,
    SleepServer,
    StopServer,
    WakeServer,
)
from actors.policy import RestartLog
from actors.protocol import conversation as talk
from actors.protocol.era import Identity
from actors.protocol.jsonrpc import RemoteError
from actors.protocol.listing import Listed, ListLimits
from actors.protocol.versions import Era
from actors.reporter import Reporter
from actors.timers import Timers
from actors.transport.base import Transport


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Deadlines in seconds and bounds of one server. `idle_timeout_s` 0 means never."""

    idle_timeout_s: float = 180.0
    start_timeout_s: float = 60.0
    probe_timeout_s: float = 20.0
    discovery_timeout_s: float = 60.0
    drain_s: float = 5.0
    write_timeout_s: float = 10.0
    relist_debounce_s: float = 0.25
    relist_interval_s: float = 1.0
    max_in_flight: int = 64
    max_queued: int = 128
    list_limits: ListLimits = ListLimits()


class CallAbandoned(msgspec.Struct, frozen=True):
    """Nobody waits for a call any more."""

    call: int


class TimerFired(msgspec.Struct, frozen=True):
    """A timer that was started during `incarnation` fired."""

    name: str
    incarnation: int


Message = (
    CallServer
    | WakeServer
    | SleepServer
    | StopServer
    | ReadServer
    | CallAbandoned
    | TimerFired
    | Started
    | NotStarted
    | Received
    | Broken
    | Ended
)


class ServerActor(Actor[Message]):
    """One configured server. `known` is what the catalogue already has of it, `era` what it spoke before."""

    def __init__(
        self,
        name: str,
        transport: Transport,
        settings: ServerSettings,
        restarts: RestartLog,
        gate: Gate,
        reporter: Reporter,
        clock: Callable[[], float],
        *,
        identity: Identity,
        known: Offer | None = None,
        era: Era | None = None,
    ) -> None:
        super().__init__(settings.max_in_flight + settings.max_queued + 256)
        self.name = name
        self.life = lc.Life()
        self._transport = transport
        self._settings = settings
        self._restarts = restarts
        self._gate = gate
        self._reporter = reporter
        self._clock = clock
        self._identity = identity
        self._known = known
        self._era = era
        self._since = clock()
        self._last_error: str | None = None
        self._calls = Calls(name)
        self._timers = Timers(self._fire)
        self._talk: talk.Conversation | None = None
        self._process: Incarnation | None = None
        self._urgent = True
        self._activity = 0.0
        self._last_listing = 0.0
        self._relist_owed = False
        self._empty_seen = False
        self._noise = 0
        self._wakers: list[Reply[Any]] = []
        self._sleepers: list[Reply[Any]] = []
        self._stoppers: list[Reply[Any]] = []

    def started(self) -> None:
        """Start the task that carries facts to the registry."""
        self.nursery.start_soon(self._reporter.run)

    async def _fire(self, name: str) -> None:
        await self.address.tell(TimerFired(name, self.life.incarnation))

    # Messages -------------------------------------------------------------------------------------------------------

    def handle(self, message: Message, reply: Reply[Any] | None) -> None:
        """React to one message."""
        match message:
            case Received(incarnation=number, messages=messages):
                if number == self.life.incarnation:
                    self._receive(messages)
            case CallServer():
                assert reply is not None
                self._on_call(message, reply)
            case CallAbandoned(call=number):
                self._on_abandoned(number)
            case TimerFired(name=name, incarnation=number):
                self._on_timer(name, number)
            case Started(incarnation=number):
                self._step(lc.Spawned(number))
            case NotStarted(incarnation=number, reason=reason, permanent=permanent):
                self._last_error = reason
                self._step(lc.SpawnRefused(number, reason, permanent))
            case Broken(incarnation=number, reason=reason):
                self._step(lc.Violated(number, reason))
            case Ended():
                self._on_ended(message)
            case _:
                self._on_order(message, reply)

    def _on_order(self, message: Message, reply: Reply[Any] | None) -> None:
        """What operators and the daemon ask for."""
        assert reply is not None
        match message:
            case ReadServer():
                reply.answer(self.status())
            case WakeServer(operator=operator, urgent=urgent):
                self._on_wake(reply, operator=operator, urgent=urgent)
            case SleepServer():
                self._sleepers.append(reply)
                self._step(lc.Sleep())
                self._settle_orders()
            case _:
                self._stoppers.append(reply)
                self._step(lc.Stop())
                self._settle_orders()

    def _on_wake(self, reply: Reply[Any], *, operator: bool, urgent: bool) -> None:
        if operator:
            self._restarts.forget()
        elif (refusal := self._refusal()) is not None:
            reply.fail(refusal)
            return
        self._wakers.append(reply)
        self._wake(urgent=urgent)
        self._settle_orders()

    def _on_call(self, message: CallServer, reply: Reply[Result]) -> None:
        refusal = self._refusal()
        if refusal is None and self._calls.waiting >= self._settings.max_queued:
            refusal = TooManyCalls(f"server {self.name!r} is busy: {self._calls.waiting} calls wait", server=self.name)
        if refusal is not None:
            reply.fail(refusal)
            return
        self._activity = now = trio.current_time()
        call = self._calls.admit(message, reply, now)
        reply.on_abandon(lambda: self._abandon(call))
        if self.life.state is State.READY:
            self._pump()
        else:
            self._wake(urgent=True)
        self._watch_deadlines()

    def _refusal(self) -> SupervisorError | None:
        """Why nothing can be asked of this server now, None if it can."""
        if self.life.state is State.STOPPED or self.life.wanted == "stopped":
            return ShuttingDown(f"server {self.name!r} is being stopped", server=self.name)
        if self.life.state is not State.FAILED:
            return None
        text = f"server {self.name!r} is not available: {self.life.reason}"
        if self.life.permanent:
            return ServerGaveUp(f"{text}; correct its configuration and restart the daemon", server=self.name)
        wait = self._restarts.probe(trio.current_time())
        return ServerGaveUp(text, server=self.name, retry_after_s=wait) if wait > 0 else None

    def _wake(self, *, urgent: bool) -> None:
        self._urgent = urgent
        if self.life.state in (State.DORMANT, State.FAILED, State.DRAINING):
            self._step(lc.Wake())

    def _abandon(self, call: Call) -> None:
        try:
            self.address.tell_nowait(CallAbandoned(call.number))
        except SupervisorError:  # full or gone: the late answer is simply thrown away
            return

    def _on_abandoned(self, number: int) -> None:
        if self._calls.take(number) is not None and self._talk is not None:
            self._talk.cancel(number, "the client went away")
            self._flush()
            self._pump()
        self._after_call()

    def _on_ended(self, message: Ended) -> None:
        number, exit_ = message.incarnation, message.exit
        if number != self.life.incarnation:
            return
        if self._talk is not None and self._talk.probing and not exit_.asked:
            self._on_fact(self._talk.silence())
        if not (exit_.asked and self.life.state is State.DRAINING and not self.life.reason):
            # What it wrote to stderr is for operators; clients get the plain reason.
            words = f"; last words: {exit_.last_stderr}" if exit_.last_stderr else ""
            self._last_error = (self.life.reason or exit_.reason) + words
        if self._process is not None and self._process.connection is not None:
            self._noise += self._process.connection.counters.stdout_noise
        self._process = None
        self._talk = None
        self._step(lc.Exited(number, exit_.reason))

    # Timers ---------------------------------------------------------------------------------------------------------

    def _on_timer(self, name: str, number: int) -> None:
        if name == "deadlines":
            self._expire()
        elif number != self.life.incarnation:
            return
        elif name == "stage":
            self._on_stage_deadline()
        elif name == "backoff":
            self._step(lc.BackoffOver())
        elif name == "idle":
            self._on_idle()
        elif name == "relist":
            self._relist()

    def _on_stage_deadline(self) -> None:
        state, number = self.life.state, self.life.incarnation
        if state is State.HANDSHAKING and self._talk is not None and self._talk.probing:
            self._on_fact(self._talk.silence())
        elif state is State.DISCOVERING and self._known is not None:
            # What is known stays; a server whose lists hang can still answer calls.
            self._last_error = "its lists could not be read in time"
            self._step(lc.Listed(number))
        else:
            self._step(lc.Expired(number))

    def _on_idle(self) -> None:
        left = self._activity + self._settings.idle_timeout_s - trio.current_time()
        if self._calls.in_flight or self._calls.waiting:
            left = self._settings.idle_timeout_s
        if left > 0:
            self._timers.start(self.nursery, "idle", left)
        else:
            self._step(lc.Sleep())

    def _watch_deadlines(self) -> None:
        deadline = self._calls.next_deadline()
        if deadline is not None and not self._timers.running("deadlines"):
            self._timers.start(self.nursery, "deadlines", max(0.0, deadline - trio.current_time()))

    def _expire(self) -> None:
        for call in self._calls.expire(trio.current_time()):
            if self._talk is not None:
                self._talk.cancel(call.number, "deadline passed")
        self._flush()
        self._pump()
        self._after_call()
        self._watch_deadlines()

    # The lifecycle --------------------------------------------------------------------------------------------------

    def _step(self, event: lc.Event) -> None:
        before = self.life
        self.life, effects = lc.step(before, event)
        if self.life.state is not before.state:
            self._entered(before.state)
        for effect in effects:
            self._perform(effect)
        self._settle_orders()

    def _entered(self, previous: State) -> None:
        self._since = self._clock()
        self._timers.cancel("stage")
        self._timers.cancel("idle")
        settings = self._settings
        seconds = {State.DISCOVERING: settings.discovery_timeout_s, State.DRAINING: settings.drain_s}
        if self.life.state is State.HANDSHAKING:
            self._timers.start(self.nursery, "stage", self._handshake_deadline_s())
        elif self.life.state in seconds:
            self._timers.start(self.nursery, "stage", seconds[self.life.state])
        elif self.life.state is State.FAILED:
            self._last_error = self.life.reason or self._last_error
        self._reporter.report(ServerChanged(status=self.status(), previous=previous, reason=self.life.reason))

    def _handshake_deadline_s(self) -> float:
        probing = self._talk is not None and self._talk.probing
        return self._settings.probe_timeout_s if probing else self._settings.start_timeout_s

    def _perform(self, effect: lc.Effect) -> None:
        match effect:
            case lc.Spawn(incarnation=number):
                self._spawn(number)
            case lc.Greet() if self._talk is not None:
                self._talk.greet()
                self._flush()
            case lc.ListAll():
                self._list()
            case lc.Serve():
                self._serve()
            case lc.Drain():
                self._after_call()
            case lc.Kill(polite=polite) if self._process is not None:
                self._process.stop(polite=polite)
            case lc.FailPending(reason=reason):
                self._calls.fail_in_flight(reason)
            case lc.FailWaiting(reason=reason):
                self._fail_waiting(reason)
            case lc.AskPolicy():
                delay = self._restarts.admit(trio.current_time())
                if delay is None:
                    self._step(lc.GaveUp())
                else:
                    self._timers.start(self.nursery, "backoff", delay)

    def _spawn(self, number: int) -> None:
        settings = self._settings
        self._talk = talk.Conversation(f"s{number}", self._identity, self._era, settings.list_limits)
        self._process = Incarnation(
            number,
            self._transport,
            self.address,
            spawn_timeout_s=settings.start_timeout_s,
            write_timeout_s=settings.write_timeout_s,
        )
        self.nursery.start_soon(partial(self._process.run, self._gate, urgent=self._urgent))

    def _serve(self) -> None:
        now = trio.current_time()
        self._restarts.ready(now)
        self._activity = now
        if self._process is not None:
            self._process.up.set()
        if self._talk is not None:
            self._talk.listen()
        if self._settings.idle_timeout_s > 0:
            self._timers.start(self.nursery, "idle", self._settings.idle_timeout_s)
        self._pump()

    def _fail_waiting(self, reason: str) -> None:
        text = f"server {self.name!r} is not available: {reason}"
        error: SupervisorError = ServerGaveUp(text, server=self.name)
        if self.life.state is State.STOPPED:
            error = ShuttingDown(f"server {self.name!r} was stopped", server=self.name)
        self._calls.fail_waiting(error)
        for reply in self._wakers:
            reply.fail(error)
        self._wakers.clear()

    def _settle_orders(self) -> None:
        """Answer those whose order is carried out."""
        if self.life.state is State.READY:
            _answer_all(self._wakers)
        if self.life.state in lc.RESTING:
            _answer_all(self._sleepers)
        if self.life.state is State.STOPPED:
            _answer_all(self._stoppers)
            self.finish()

    # The conversation -----------------------------------------------------------------------------------------------

    def _receive(self, messages: list[bytes]) -> None:
        for message in messages:
            if self._talk is None:
                return
            try:
                fact = self._talk.receive(message)
            except ProtocolViolation:
                self._noise += 1
                continue
            if fact is not None:
                self._on_fact(fact)
        self._flush()

    def _on_fact(self, fact: talk.Fact) -> None:
        number = self.life.incarnation
        match fact:
            case talk.CallAnswered(call=call, result=result):
                self._settle(call, result, None)
            case talk.CallRefused(call=call, error=error):
                self._settle(call, None, RemoteError(error))
            case talk.CallMalformed(call=call):
                text = f"server {self.name!r} answered with something that is no answer"
                self._settle(call, None, ProtocolViolation(text, server=self.name, outcome="unknown"))
            case talk.Agreed(agreement=agreement):
                self._learn(agreement.era)
                self._step(lc.Greeted(number))
            case talk.Fresh():
                self._learn("legacy")
                self._step(lc.Fallback(number))
            case talk.NoAgreement(reason=reason):
                self._last_error = reason
                self._step(lc.Rejected(number, reason))
            case talk.AllListed(listed=listed):
                self._on_listed(listed)
            case talk.ListsChanged():
                self._on_lists_changed()

    def _learn(self, era: Era) -> None:
        if era != self._era:
            self._era = era
            self._reporter.report(EraLearned(server=self.name, era=era))

    def _settle(self, number: int, result: msgspec.Raw | None, error: Exception | None) -> None:
        call = self._calls.take(number)
        if call is None:
            return
        if result is not None:
            agreement = self._talk.agreement if self._talk is not None else None
            call.reply.answer(Result(result, agreement.era if agreement is not None else "legacy"))
        elif error is not None:
            self._calls.failures += 1
            call.reply.fail(error)
        self._activity = trio.current_time()
        self._pump()
        self._after_call()

    def _after_call(self) -> None:
        if self.life.state is State.DRAINING and not self._calls.in_flight:
            self._step(lc.Drained(self.life.incarnation))

    def _pump(self) -> None:
        """Send what waits, within the limit of calls in flight."""
        if self.life.state is not State.READY or self._talk is None:
            return
        for call in self._calls.sendable(self._settings.max_in_flight):
            message = call.message
            self._talk.call(call.number, message.method, message.members, message.meta)
        self._flush()

    def _flush(self) -> None:
        if self._talk is None or self._process is None:
            return
        data = self._talk.take_output()
        if data and not self._process.outbox.put(data):
            self._step(lc.Violated(self.life.incarnation, "it does not read its input"))

    # Lists ----------------------------------------------------------------------------------------------------------

    def _list(self) -> None:
        if self._talk is None:
            return
        self._last_listing = trio.current_time()
        fact = self._talk.list_all()
        self._flush()
        if fact is not None:
            self._on_fact(fact)

    def _on_lists_changed(self) -> None:
        """Read the lists again: debounced, at most one walk under way and one owed."""
        if self.life.state is not State.READY or self._timers.running("relist"):
            return
        pause = self._last_listing + self._settings.relist_interval_s - trio.current_time()
        self._timers.start(self.nursery, "relist", max(self._settings.relist_debounce_s, pause))

    def _relist(self) -> None:
        if self.life.state is not State.READY or self._talk is None:
            return
        if self._talk.listing:
            self._relist_owed = True
        else:
            self._list()

    def _on_listed(self, listed: Listed) -> None:
        agreement = self._talk.agreement if self._talk is not None else None
        if agreement is None:
            return
        offer = _keeping(validation.offer(agreement, listed), self._known, listed)
        if self._known is not None and self._known.tools and not offer.tools and not self._empty_seen:
            self._empty_seen = True  # one empty list may be a hiccup: it is read once more before it counts
            self._relist_owed = True
        else:
            self._empty_seen = False
            self._known = offer
            self._reporter.report(ServerListed(server=self.name, incarnation=self.life.incarnation, offer=offer))
        self._step(lc.Listed(self.life.incarnation))
        if self._relist_owed:
            self._relist_owed = False
            self._on_lists_changed()

    # Status ---------------------------------------------------------------------------------------------------------

    def status(self) -> ServerStatus:
        """Return how the server is doing now."""
        connection = self._process.connection if self._process is not None else None
        agreement = self._talk.agreement if self._talk is not None else None
        known = self._known
        return ServerStatus(
            server=self.name,
            state=self.life.state,
            wanted=self.life.wanted,
            since=self._since,
            transport=self._transport.kind,
            incarnation=self.life.incarnation,
            pid=connection.pid if connection is not None else None,
            era=self._era,
            protocol_version=agreement.version if agreement is not None else (known.version if known else None),
            restarts=self._restarts.total,
            last_error=self._last_error,
            in_flight=self._calls.in_flight,
            waiting=self._calls.waiting,
            calls=self._calls.total,
            failures=self._calls.failures,
            noise=self._noise + (connection.counters.stdout_noise if connection is not None else 0),
            strays=self._talk.strays if self._talk is not None else 0,
            stderr=connection.last_stderr(20) if connection is not None else "",
        )


def _answer_all(replies: list[Reply[Any]]) -> None:
    for reply in replies:
        reply.answer(None)
    replies.clear()


def _keeping(offer: Offer, known: Offer | None, listed: Listed) -> Offer:
    """Keep what is known of a list that could not be read this time."""
    failed = " ".join(listed.failed)
    if known is None or not failed:
        return offer
    return msgspec.structs.replace(
        offer,
        tools=known.tools if "tools/list" in failed else offer.tools,
        resources=known.resources if "resources/list" in failed else offer.resources,
        prompts=known.prompts if "prompts/list" in failed else offer.prompts,
    )
