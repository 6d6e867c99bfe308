"""Performs the effects of a server's lifecycle: starts and stops its process, its timers, its handshake and its lists.

Synchronous throughout; what waits runs in tasks of the actor's nursery and comes back as a message of the actor. Only
`lifecycle.step` changes the state, and only `step` here calls it.
"""

from __future__ import annotations

import trio

from actors import lifecycle as lc
from actors.catalogue.entries import Offer
from actors.incarnation import Broken, Ended, NotStarted, Started
from actors.kit import Address
from actors.lifecycle import State
from actors.messages import ServerStatus
from actors.policy import RestartLog
from actors.protocol import conversation as talk
from actors.protocol.framing import Line
from actors.protocol.listing import Listed
from actors.server.inbox import Message, TimerFired
from actors.server.link import Launcher, Link
from actors.server.lists import Lists
from actors.server.orders import Orders
from actors.server.record import Record
from actors.server.recovery import Recovery
from actors.server.settings import ServerSettings
from actors.server.start import Start
from actors.server.traffic import Traffic
from actors.timers import Timers


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
    ) -> None:
        self.life = lc.Life()
        self.link: Link | None = None
        self.traffic = Traffic(name, settings, record.hide)
        self.orders = Orders(name)
        self.timers = Timers(self._fire)
        self.restarts = restarts
        self.recovery = Recovery(name, restarts, self.timers)
        self.start = Start(settings, new=known is None and record.era is None)
        self._launcher = launcher
        self._settings = settings
        self._post = post
        self._lists = Lists(settings, known)
        self._record = record

    def status(self) -> ServerStatus:
        """Return how the server is doing now."""
        installing = self.start.installing(self.link)
        known = self._lists.known
        return self._record.status(self.life, self.link, known, self.traffic, self.recovery, installing=installing)

    async def _fire(self, name: str, number: int) -> None:
        await self._post.tell(TimerFired(name, number))

    def wake(self, *, urgent: bool) -> None:
        """Bring the server up, unless it is up or on its way."""
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
        self._record.entered()
        for name in ("stage", "idle", "backoff", "retry", "relist", "silence"):
            self.timers.cancel(name)
        if self.life.state is not State.READY:
            self.timers.cancel("listing")
        if self.life.state is State.HANDSHAKING and self.link is not None:
            self.timers.start(self.nursery, "stage", self.start.stage_s(self.link))
        elif self.life.state is State.DRAINING:
            self.timers.start(self.nursery, "stage", self._settings.drain_s)
        elif self.life.state is State.FAILED:
            self.start.suppose(None)
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
                self.start.stop(self.link, self.life.wanted, polite=polite)
            case lc.FailPending(reason=reason):
                self.traffic.fail_in_flight(reason)
            case lc.FailWaiting(reason=reason):
                self.recovery.fail_waiting(self.life.state, reason, self.traffic, self.orders)
            case lc.AskPolicy():
                self._ask_policy(effect)

    def _spawn(self, number: int) -> None:
        urgent = self.traffic.waiting > 0 or self.orders.urgent
        era = self.start.begin(self._record.era)
        self.link = self._launcher.launch(self.nursery, number, era, urgent=urgent, new=self.start.new)

    def _serve(self) -> None:
        now = trio.current_time()
        self.restarts.ready(now)
        self.traffic.last_activity = now
        if self._settings.idle_timeout_s > 0:
            self.timers.start(self.nursery, "idle", self._settings.idle_timeout_s)
        if self.link is not None:
            self.link.talk.listen()
        self.pump()

    def _ask_policy(self, failure: lc.AskPolicy) -> None:
        if self.recovery.back_off(failure, self.nursery) is None:
            self.step(lc.GaveUp())
            return
        self.orders.fail_patient(lambda: self.recovery.starting(failure.reason))
        self._record.noted(self.status())

    # The process ----------------------------------------------------------------------------------------------------

    def on_stage_late(self) -> None:
        """The deadline of the handshake, or of the drain, passed."""
        more = self.start.more_s(self.link) if self.life.state is State.HANDSHAKING else 0.0
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
                self._record.last_error = detail or reason
                self.link = None
                self.step(lc.SpawnRefused(number, reason, permanent, scarce))
            case Broken(reason=reason):
                if not self._probe_failed():
                    self.step(lc.Violated(number, reason))
            case Ended():
                self._on_ended(fact)

    def _on_ended(self, ended: Ended) -> None:
        exit_ = ended.exit
        if not exit_.asked:
            self._probe_failed()
        idle = self.life.state is State.READY and not self.traffic.open
        normal = idle and not exit_.asked and exit_.code == 0 and self.restarts.policy.restart != "permanent"
        failed = not normal and (self.life.state is not State.DRAINING or bool(self.life.reason))
        self._record.ended(self.life, exit_, failed=failed)
        if self.link is not None:
            self._record.noise += self.link.noise
        self.link = None
        self.step(lc.Exited(ended.incarnation, exit_.reason, normal))

    def _probe_failed(self) -> bool:
        """Return whether the trouble came before any answer to the era's probe: then a fresh process is needed."""
        if self.life.state is not State.HANDSHAKING or self.link is None or self.link.talk.silence() is None:
            return False
        self.start.suppose("legacy")
        self.step(lc.Fallback(self.life.incarnation))
        return True

    # The conversation -----------------------------------------------------------------------------------------------

    def on_received(self, lines: list[Line]) -> None:
        """Take lines of the present incarnation."""
        link = self.link
        if link is None:
            return
        for line in lines:
            for fact in link.hear(line):
                if isinstance(fact, talk.CallAnswered | talk.CallRefused | talk.CallMalformed):
                    self.traffic.settle(fact, link, trio.current_time())
                else:
                    self._on_fact(link, fact)
        if self.life.state is State.HANDSHAKING and link.probe_answered():
            self.timers.start(self.nursery, "stage", self._settings.start_timeout_s)
        self.pump()

    def _on_fact(self, link: Link, fact: talk.Agreed | talk.NoAgreement | talk.AllListed | talk.ListsChanged) -> None:
        number = self.life.incarnation
        match fact:
            case talk.Agreed(agreement=agreement):
                self._record.learn(agreement.era)
                self.start.greeted()
                self.step(lc.Greeted(number, known=self._lists.known is not None))
            case talk.NoAgreement(reason=said):  # in the server's own words, which may repeat what it was given
                self._record.last_error = reason = self._record.hide(said)
                self.step(lc.Rejected(number, reason))
            case talk.AllListed(listed=listed):
                self._on_listed(link, listed)
            case talk.ListsChanged():
                self._on_lists_changed(link)

    def on_silence(self) -> None:
        """A call timed out and the server said nothing all the while: ask for a sign of life."""
        if self.link is not None and self.life.state is State.READY and not self.timers.running("silence"):
            self.link.talk.ask_for_life()
            self._flush()
            self.timers.start(self.nursery, "silence", self._settings.unresponsive_s)

    def on_silence_over(self) -> None:
        """Replace the server if it is still silent."""
        seconds = self._settings.unresponsive_s
        if self.link is not None and self.link.heard < trio.current_time() - seconds:
            self.step(lc.Violated(self.life.incarnation, f"it answers nothing, not even a ping within {seconds:g} s"))

    def pump(self) -> None:
        """Send what waits, within the limit of calls in flight, and see whether the last call has ended."""
        if self.link is not None and self.life.state is State.READY:
            self.traffic.send(self.link, trio.current_time())
        self._flush()
        if self.life.state is State.DRAINING and not self.traffic.in_flight:
            self.step(lc.Drained(self.life.incarnation))

    def _flush(self) -> None:
        if self.link is not None and not self.link.flush():
            self.step(lc.Violated(self.life.incarnation, "it does not read its input"))

    # Lists ----------------------------------------------------------------------------------------------------------

    def read_lists(self) -> None:
        """Begin to read the lists, or note that they must be read again."""
        if self.link is None:
            return
        if self.link.talk.listing:
            self._lists.owed = True
            return
        self._lists.begin(trio.current_time())
        self.timers.start(self.nursery, "listing", self._settings.discovery_timeout_s)
        fact = self.link.talk.list_all()
        self._flush()
        if fact is not None:
            self._on_listed(self.link, fact.listed)

    def _on_lists_changed(self, link: Link) -> None:
        if link.talk.listing:
            self._lists.owed = True
        elif self.life.state is State.READY:
            self.timers.start_by(self.nursery, "relist", self._lists.next_reading(trio.current_time()))

    def _on_listed(self, link: Link, listed: Listed) -> None:
        self.timers.cancel("listing")
        if link.talk.agreement is None:
            return
        offer = self._lists.take(link.talk.agreement, listed)
        if offer is not None:
            self._record.listed(self.life.incarnation, offer)
        self.step(lc.Listed(self.life.incarnation))
        if self._lists.owed:
            self._on_lists_changed(link)

    def on_listing_late(self) -> None:
        """The lists take too long. What is known stays, and the server can still answer calls."""
        if self.link is None or (self._lists.known is None and self.life.state is State.DISCOVERING):
            self.step(lc.Expired(self.life.incarnation))
            return
        self._record.last_error = "its lists could not be read in time"
        self.link.talk.stop_listing()
        self.step(lc.Listed(self.life.incarnation))
        if self._lists.owed:
            self._on_lists_changed(self.link)
