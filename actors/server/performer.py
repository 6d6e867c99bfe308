"""Performs the effects of a server's lifecycle: starts and stops its process, its timers, its handshake and its lists.

Synchronous throughout; what waits runs in tasks of the actor's nursery and comes back as a message of the actor. Only
`lifecycle.step` changes the state, and only `step` here calls it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import trio

from actors.catalogue.entries import Offer
from actors.errors import ProtocolViolation
from actors.kit import Address
from actors.kit.timers import Timers
from actors.life import lifecycle as lc
from actors.life.lifecycle import State
from actors.life.policy import RestartLog
from actors.messages import ServerStatus
from actors.protocol import facts
from actors.protocol.listing import PageArrived
from actors.server.calls import Calls
from actors.server.dialogue import Dialogue
from actors.server.discovery import LATE, Discovery
from actors.server.inbox import Message, PageRead, QuestionAnswered, TimerFired
from actors.server.incarnation import Broken, Ended, NotStarted, Received, Started
from actors.server.link import Launcher, Link
from actors.server.lists import Lists
from actors.server.liveness import Liveness
from actors.server.orders import Orders
from actors.server.record import Record
from actors.server.recovery import Recovery
from actors.server.settings import DRAIN_S, ServerSettings
from actors.server.startup import Startup
from actors.server.story import listed_change


class Performer:
    """The life of one server and everything that is done for it. `post` is the mailbox of its actor."""

    nursery: trio.Nursery

    def __init__(
        self,
        name: str,
        launcher: Launcher,
        settings: ServerSettings,
        restarts: RestartLog,
        record: Record,
        post: Address[Message],
        known: Offer | None,
        desk: trio.CapacityLimiter | None,
    ) -> None:
        self.life = lc.Life()
        self.link: Link | None = None
        self.calls = Calls(name, settings, record.hide)
        self.orders = Orders(name)
        self.timers = Timers(self._fire)
        self.restarts = restarts
        self.recovery = Recovery(name, restarts, self.timers)
        self.startup = Startup(settings, new=known is None and record.era is None)
        self._launcher = launcher
        self._settings = settings
        self._post = post
        self._lists = Lists(name, settings, known)
        self._record = record
        self._dialogue = Dialogue(self.calls, settings.question_timeout_s, post)
        self._liveness = Liveness(settings.unresponsive_s, self.timers)
        self.discovery = Discovery(self._lists, settings, record, self.timers, post, desk, self._on_listed)

    def started(self, nursery: trio.Nursery) -> None:
        """Begin to watch over what is known; tasks run in the nursery of the actor."""
        self.nursery = self.discovery.nursery = self._dialogue.nursery = nursery
        self.discovery.restore()

    def status(self) -> ServerStatus:
        """Return how the server is doing now."""
        known, activity = self._lists.known, self.startup.activity(self.link)
        return self._record.status(self.life, self.link, known, self.calls, self.recovery, activity=activity)

    async def _fire(self, name: str, number: int) -> None:
        await self._post.tell(TimerFired(name, number))

    def wake(self, *, urgent: bool) -> None:
        """Bring the server up, unless it is up or on its way."""
        self.discovery.looking = None
        if urgent and self.link is not None:
            self.link.process.hurry()
        self.step(lc.Wake())

    def step(self, event: lc.Event) -> None:
        """Let one event happen, and do what follows from it."""
        before = self.life
        self.life, effects = lc.step(before, event)
        if self.life.state is not before.state:
            self._entered(before.state)
        for effect in effects:
            self._perform(effect)
        self.orders.settle(self.life.state)

    def _entered(self, previous: State) -> None:
        self._record.entered(self.life.state)
        for name in ("stage", "idle", "backoff", "retry", "relist", "silence"):
            self.timers.cancel(name)
        if self.life.state is not State.READY:
            self.timers.cancel("listing")
        if self.life.state is State.HANDSHAKING and self.link is not None:
            self.timers.start(self.nursery, "stage", self.startup.stage_s(self.link))
        elif self.life.state is State.DRAINING:
            self.timers.start(self.nursery, "stage", DRAIN_S)
        elif self.life.state is State.FAILED:
            self.startup.suppose(None)
            self.recovery.give_up(self.nursery, listed=self._lists.known is not None)
            self._record.last_error = self._record.last_error or self.life.reason
        self._record.changed(self.status(), previous, self.life.reason)

    def _perform(self, effect: lc.Effect) -> None:
        match effect:
            case lc.Spawn(incarnation=number):
                self._spawn(number)
            case lc.Greet() if self.link is not None:
                self.link.talk.greet()
                self._flush()
            case lc.ListAll():
                self.read_lists()
            case lc.Serve():
                self._serve()
            case lc.Drain():
                self.pump()
            case lc.Kill(polite=polite) if self.link is not None:
                self.startup.stop(self.link, self.life.wanted, polite=polite)
            case lc.FailPending(reason=reason):
                self.calls.fail_in_flight(reason)
            case lc.FailWaiting(reason=reason):
                self.recovery.fail_waiting(self.life.state, reason, self.calls, self.orders)
            case lc.AskPolicy():
                self._ask_policy(effect)

    def _spawn(self, number: int) -> None:
        urgent = self.calls.waiting > 0 or self.orders.urgent
        era = self.startup.begin(self._record.era)
        self.link = self._launcher.launch(self.nursery, number, era, urgent=urgent, new=self.startup.new)

    def _serve(self) -> None:
        now = trio.current_time()
        self.restarts.ready(now)
        self.calls.last_activity = now
        if self._settings.idle_timeout_s > 0:
            self.timers.start(self.nursery, "idle", self._settings.idle_timeout_s)
        if self.link is not None:
            self.link.talk.listen()
        self.pump()

    def _ask_policy(self, failure: lc.AskPolicy) -> None:
        if self.discovery.stop_looking():  # nobody waits for it, and what is known of it stays: no reason to give it up
            self.step(lc.Sleep())
        elif (delay := self.recovery.back_off(failure, self.nursery)) is None:
            self.step(lc.GaveUp())
        else:
            self.orders.fail_patient(lambda: self.recovery.starting(failure.reason))
            self._record.waits(self.status(), delay)

    # The process ----------------------------------------------------------------------------------------------------

    def on_stage_late(self) -> None:
        """The deadline of the handshake, or of the drain, passed."""
        more = self.startup.more_s(self.link) if self.life.state is State.HANDSHAKING else 0.0
        if more > 0:
            self.timers.start(self.nursery, "stage", more)
            self._record.noted(self.status())
        elif not self._probe_failed():
            self.step(lc.Expired(self.life.incarnation))

    def on_process(self, fact: Started | NotStarted | Broken | Ended) -> None:
        """Take a fact of the present incarnation's process."""
        number = fact.incarnation
        match fact:
            case Started():
                self.step(lc.Spawned(number))
            case NotStarted(reason=reason, permanent=permanent, detail=detail, scarce=scarce):
                self._record.not_started(reason, detail, permanent=permanent)
                self.link = None
                self.step(lc.SpawnRefused(number, reason, permanent, scarce))
            case Broken(reason=reason):
                if not self._probe_failed():
                    self.step(lc.Violated(number, reason))
            case Ended():
                self._on_ended(fact)

    def _on_ended(self, ended: Ended) -> None:
        if not ended.exit.asked:
            self._probe_failed()
        self._dialogue.drop()
        normal = self._record.ended(self.life, ended.exit, self.link, self.calls, self.restarts.policy.restart)
        self.link = None
        self.step(lc.Exited(ended.incarnation, ended.exit.reason, normal))

    def _probe_failed(self) -> bool:
        """Return whether the trouble came before any answer to the era's probe: then a fresh process is needed."""
        if self.life.state is not State.HANDSHAKING or self.link is None or self.link.talk.silence() is None:
            return False
        self.startup.suppose("legacy")
        self.step(lc.Fallback(self.life.incarnation))
        return True

    # The conversation -----------------------------------------------------------------------------------------------

    def on_received(self, received: Received) -> None:
        """Take lines of the present incarnation."""
        if (link := self.link) is None:
            return
        for line in received.lines:
            for message, spoiled_by in link.messages(line):
                self._receive(link, partial(link.receive, message, spoiled_by, received.stream))
        if self.life.state is State.HANDSHAKING and link.probe_answered():
            self.timers.start(self.nursery, "stage", self._settings.start_timeout_s)
        self.pump()

    def _receive(self, link: Link, meaning: Callable[[], facts.Fact | None]) -> None:
        """Take one message; `meaning` says what it is about and raises `ProtocolViolation` if it is about nothing."""
        try:
            fact = meaning()
            if isinstance(fact, PageArrived):
                fact = self.discovery.take(fact, link, self.life.incarnation)
        except ProtocolViolation:
            self._record.noise += 1
            return
        link.heard = trio.current_time()
        if fact is not None and (fact := self._dialogue.take(fact, link, self.life.incarnation)) is not None:
            self._on_fact(fact, link)

    def _on_fact(self, fact: facts.Fact, link: Link) -> None:
        number = self.life.incarnation
        match fact:
            case facts.Agreed(agreement=agreement):
                self._record.learn(agreement.era)
                self.startup.greeted()
                self.step(lc.Greeted(number, known=self._lists.known is not None))
            case facts.NoAgreement(reason=said):  # in the server's own words, which may repeat what it was given
                self._record.last_error = reason = self._record.hide(said)
                self.step(lc.Rejected(number, reason))
            case facts.ListsChanged():
                self.discovery.changed(link, ready=self.life.state is State.READY)

    def on_answered(self, answered: QuestionAnswered) -> None:
        """Take the answer of a client to a question of the present incarnation."""
        self._dialogue.answered(answered, self.link)
        self.pump()

    def on_silence(self) -> None:
        """A call timed out and the server said nothing all the while: ask for a sign of life."""
        if self.link is not None and self.life.state is State.READY:
            self._liveness.ask(self.link, self.nursery)
            self._flush()

    def on_silence_over(self) -> None:
        """Replace the server if it is still silent."""
        if self.link is not None and (doubt := self._liveness.doubt(self.link)):
            self.step(lc.Violated(self.life.incarnation, doubt))

    def pump(self, now: float | None = None) -> None:
        """Send what waits, within the limit of calls in flight, and see whether the last call has ended."""
        if self.calls.waiting and self.link is not None and self.life.state is State.READY:
            self.calls.send(self.link, trio.current_time() if now is None else now)
        self._flush()
        if self.life.state is State.DRAINING and not self.calls.in_flight:
            self.step(lc.Drained(self.life.incarnation))

    def _flush(self) -> None:
        if self.link is not None and not self.link.flush():
            self.step(lc.Violated(self.life.incarnation, "it does not read its input"))

    def read_lists(self) -> None:
        """Begin to read the lists, or note that they must be read again."""
        if self.link is not None:
            if not self.link.talk.listing:
                self.orders.reading()
            self.discovery.begin(self.link, self.life.incarnation)
            self._flush()

    def on_page_read(self, read: PageRead) -> None:
        """Take a page of the present incarnation that was read in a thread."""
        if self.link is not None:
            self._receive(self.link, partial(self.discovery.on_read, read, self.link))
        self.pump()

    def on_listing_late(self) -> None:
        """The lists take too long. What is known stays, and the server can still answer calls."""
        self.orders.fail_reading(LATE)
        if self.link is not None and not self.discovery.late(self.link, self.life.incarnation):
            self.step(lc.Expired(self.life.incarnation))

    def on_look(self) -> None:
        """The lists are old, or doubtful: read them again, waking the server for it if need be."""
        if self.discovery.look(self.link, self.life, self.calls.total):
            self.step(lc.Wake())
        self._flush()

    def _on_listed(self, link: Link, before: Offer | None, offer: Offer) -> None:
        self._record.listed(self.life.incarnation, offer, ready=self.life.state is State.READY)
        self.orders.read(lambda: listed_change(before, offer))
        self.step(lc.Listed(self.life.incarnation))
        if self.discovery.settled(link, self.life, self.calls.total):
            self.step(lc.Sleep())
