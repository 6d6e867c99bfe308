"""The actor of a launch with several instances. What is sent to the launch comes here.

It is to others what a `ServerActor` is: it takes the same messages, and reports as one server. Each instance is a
`ServerActor` with a life of its own. One of them leads: what it lists is what the launch offers, and it tells of
resources. Another one leads only when that one is down and the other one is up.

The first instance may have been there before: its task is another one's, and it goes on when the group begins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from actors.catalogue.offer import Offer, unchanged
from actors.errors import ActorStopped, SupervisorError
from actors.facts import InstanceChanged
from actors.instances.dispatch import InstanceDispatch
from actors.instances.instance import ClientInstances, Instance, InstanceSpec, Leading, MakeInstance
from actors.instances.settings import InstanceSettings
from actors.kit import Actor, Ask, Reply, StartSoon
from actors.kit.reporter import Reporter
from actors.kit.timers import Timers
from actors.life.breakers import OpenBreaker
from actors.life.states import State
from actors.messages import (
    CallServer,
    CloseBreakers,
    Departure,
    EraLearned,
    InstanceStatus,
    ReadServer,
    RefreshServer,
    RestartServer,
    ServerChanged,
    ServerListed,
    ServerStatus,
    SleepServer,
    StopServer,
    WakeServer,
)
from actors.principal import LOCAL, ClientKey
from actors.server import ServerMessage, ServerSettings

Given = WakeServer | RestartServer | RefreshServer | SleepServer
InstanceFact = ServerChanged | ServerListed | EraLearned
_RANKS: Final = {
    state: rank
    for rank, state in enumerate(
        (
            *(State.READY, State.DISCOVERING, State.HANDSHAKING, State.SPAWNING, State.RESPAWNING),
            *(State.DRAINING, State.DORMANT, State.FAILED, State.STOPPED),
        )
    )
}
"""The state of all is the first of these that one of them is in: a call finds that."""
_SUMMED: Final = ("restarts", "in_flight", "calls", "failures", "noise", "strays", "unheard", "tasks")
FEWER: Final = "fewer instances of it are wanted"
UNUSED: Final = "its client is gone"


class GroupOrders:
    """Orders to a launch with several instances: given to those that they are about, and answered when all are done.

    `leader` gives the instance that leads.
    """

    def __init__(
        self,
        server: str,
        instances: Mapping[int, Instance],
        leader: Callable[[], Instance],
        start_soon: StartSoon,
    ) -> None:
        self._server = server
        self._instances = instances
        self._leader = leader
        self._start_soon = start_soon

    def take(self, order: Given, reply: Reply[Any]) -> None:
        """Have an order carried out. To wake is to have one up, to refresh is to read what the launch offers."""
        staying = [each for each in self._instances.values() if not each.leaving]
        match order:
            case WakeServer():
                self._wake(staying, order, reply)
            case RefreshServer():
                self._leader().post.forward(order, reply)
            case RestartServer():
                busy = [each for each in staying if each is self._leader() or not each.actor.life.resting]
                self._give(busy, order, reply)
            case SleepServer():
                self._give(staying, order, reply)

    def _wake(self, staying: list[Instance], order: WakeServer, reply: Reply[None]) -> None:
        leader = self._leader()
        up = next((each for each in staying if each.up), None)
        fit = [each for each in staying if each is not leader and (each.proven or each.address)]
        if up is not None or not fit:
            (up or leader).post.forward(order, reply)
        else:
            reply.release()
            self._start_soon(self._wake_any, [leader, *fit], replace(order, urgent=False), reply)

    async def _wake_any(self, instances: list[Instance], order: WakeServer, reply: Reply[None]) -> None:
        """Wake one after the other until one is up; it fails with the first failure."""
        failure: SupervisorError | None = None
        for instance in instances:
            try:
                await instance.post.ask(order)
            except SupervisorError as error:
                failure = failure or error
            else:
                reply.answer(None)
                return
        reply.fail(failure or ActorStopped())

    def _give(self, instances: list[Instance], order: RestartServer | SleepServer, reply: Reply[Any]) -> None:
        """Give an order to several; it fails with the first failure, when all are done."""
        reply.release()
        self._start_soon(self._carry_out, instances, order, reply)

    async def _carry_out(
        self, instances: list[Instance], order: RestartServer | SleepServer, reply: Reply[Any]
    ) -> None:
        failure: SupervisorError | None = None
        given: list[Reply[Any]] = []
        for instance in instances:
            try:
                given.append(await instance.post.request_in_turn(order))
            except SupervisorError as error:
                failure = failure or error
        for each in given:
            try:
                await each.wait()
            except SupervisorError as error:
                failure = failure or error
        if failure is None:
            reply.answer(None)
        else:
            reply.fail(failure)

    async def end(self, instance: Instance, departure: Departure | None) -> None:
        """Have an instance end."""
        try:
            await instance.post.ask_in_turn(StopServer(departure))
        except SupervisorError:  # it is gone already
            return


class InstanceReport(msgspec.Struct, frozen=True):
    """What an instance reports."""

    number: int
    fact: InstanceFact


class InstanceFree(msgspec.Struct, frozen=True):
    """A call has settled, or a start is over, while others wait."""


class InstanceGone(msgspec.Struct, frozen=True):
    """Nothing is left of an instance."""

    number: int


class ClientLeft(msgspec.Struct, frozen=True):
    """The session of a client is over; see `Caller.identity`."""

    client: ClientKey


class WaitOver(msgspec.Struct, frozen=True):
    """Something is to be done of the calls that wait; `number` says for which timer."""

    name: Literal["waiting"]
    number: int


class Resize(Ask[None], frozen=True):
    """Have as many instances as this says; those that stay are not disturbed. Answered when that has begun."""

    wanted: InstanceSettings
    drain_s: float


GroupMessage = ServerMessage | InstanceReport | InstanceFree | InstanceGone | ClientLeft | WaitOver | Resize
"""What is sent to who chooses among the instances of a launch."""


def whole(
    leader: ServerStatus, others: Sequence[ServerStatus], rows: Sequence[InstanceStatus], waiting: int
) -> ServerStatus:
    """Return how a launch is doing as one: as the instance that leads, with what all have together.

    Where another one is nearer to serving, state and age are those of that one. `waiting` calls have no instance yet.
    """
    every = [leader, *others]
    first = min(every, key=lambda status: _RANKS[status.state])
    asked = [status.asked_since for status in every if status.asked_since is not None]
    return replace(
        leader,
        state=first.state,
        wanted=first.wanted,
        since=first.since,
        reason=first.reason,
        exit_code=first.exit_code,
        signal=first.signal,
        activity=first.activity,
        next_start=first.next_start,
        retry_at=first.retry_at,
        down=first.down if all(each.down for each in every) else None,
        pid=first.pid if leader.pid is None else leader.pid,
        last_error=next((f"instance {row.number}: {row.last_error}" for row in rows if row.last_error), None),
        last_error_at=next((status.last_error_at for status in every if status.last_error), None),
        requires_reauth=any(status.requires_reauth for status in every),
        one_at_a_time=any(status.one_at_a_time for status in every),
        legacy_session=any(status.legacy_session for status in every),
        asked_since=min(asked, default=None),
        waiting=waiting + sum(row.waiting for row in rows),
        last_sign_at=max((each.last_sign_at for each in every if each.last_sign_at is not None), default=None),
        breakers=_open_everywhere(every),
        instances=tuple(rows),
        **{name: sum(getattr(status, name) for status in every) for name in _SUMMED},
    )


def _open_everywhere(every: Sequence[ServerStatus]) -> tuple[OpenBreaker, ...]:
    """Return the breakers that are open at each instance, as each has its own: the one of each that ends first."""
    first: dict[tuple[str, str], OpenBreaker] = {}
    for each in (each for status in every for each in status.breakers):
        key = each.breaker, each.tool
        first[key] = min(each, first.get(key, each), key=lambda one: one.until)
    open_at = [{(each.breaker, each.tool) for each in status.breakers} for status in every]
    return tuple(each for key, each in first.items() if all(key in keys for keys in open_at))


class InstanceGroup(Actor[GroupMessage]):
    """One for a launch. `reporter` is that of the launch, which has as many instances as is `wanted`."""

    def __init__(
        self,
        server: str,
        first: Instance,
        make: MakeInstance,
        settings: ServerSettings,
        reporter: Reporter,
        wanted: InstanceSettings,
    ) -> None:
        super().__init__(4 * (settings.max_in_flight + settings.max_queued) + 256)
        self._server = server
        self._make_instance = make
        self._reporter = reporter
        self._wanted = wanted
        self._instances: dict[int, Instance] = {1: first}
        self._first = first
        self._leading = Leading(self._instances, first)
        self._known, self._era = first.known, first.last.era
        self._state = first.last.state
        self._timers: Timers[Literal["waiting"]] = Timers(
            lambda name, number: self.address.tell(WaitOver(name, number)), self.start_soon
        )
        self._dispatch = InstanceDispatch(server, self._instances, lambda: self._leading.leader, settings, self._free)
        self._clients = ClientInstances(server, self._instances, 0, partial(self._make, ""), self._end_unused)
        self._orders = GroupOrders(server, self._instances, lambda: self._leading.leader, self.start_soon)
        self._departure: Departure | None = None
        self._stopping: list[Reply[None]] = []
        first.reporter.redirect(self.address, partial(InstanceReport, 1))

    def on_start(self) -> None:
        self.start_soon(self._reporter.run)
        self.resize(self._wanted, 0.0)

    def status(self, stderr: bool = False) -> ServerStatus:
        """Return how the launch is doing; `stderr`: with the newest lines of the instance that leads."""
        leader = self._leading.leader
        led = leader.status(stderr)
        others = {number: each.status() for number, each in self._instances.items() if each is not leader}
        every = {**others, leader.number: led}
        rows = [each.row(every[number]) for number, each in self._instances.items()]
        return whole(led, [*others.values()], rows, len(self._dispatch.waiting))

    def handle(self, message: GroupMessage, reply: Reply[Any] | None) -> None:
        match message:
            case CallServer() if reply is not None:
                self._on_call(message, reply)
            case InstanceReport(number=number, fact=fact):
                self._on_report(number, fact)
            case InstanceGone(number=number):
                self._on_gone(number)
            case ClientLeft(client=client):
                self._clients.leave(client)
            case WaitOver(name=name, number=number):
                self._timers.take(name, number)
            case Resize(wanted=wanted, drain_s=drain_s) if reply is not None:
                self.resize(wanted, drain_s)
                reply.answer(None)
            case CloseBreakers():
                for each in self._instances.values():
                    each.breakers.close()
            case StopServer(departure=departure) if reply is not None:
                self._stop(departure, reply)
            case ReadServer(stderr=stderr) if reply is not None:
                reply.answer(self.status(stderr))
            case WakeServer() | RestartServer() | RefreshServer() | SleepServer() if reply is not None:
                self._on_order(message, reply)
            case _:
                pass
        self._go_on()

    def _go_on(self) -> None:
        """See what becomes of calls that wait, and be told when to look again."""
        waiting = self._dispatch.waiting
        if waiting:
            self._dispatch.pump()
        if waiting and (moment := self._dispatch.next_moment()) is not None:
            self._timers.start_by("waiting", moment)
        if not self._instances:
            for reply in self._stopping:
                reply.answer(None)
            self.finish()

    def _free(self) -> None:
        with suppress(SupervisorError):  # full: whatever is in the mailbox has the same effect
            self.address.tell_nowait(InstanceFree())

    def _on_call(self, message: CallServer, reply: Reply[Any]) -> None:
        if reply.settled:  # the client went away before anybody looked
            return
        successor = None if self._departure is None else self._departure.successor
        if successor is not None and not message.run:
            successor.forward(message, reply)
        else:
            self._dispatch.take(message, reply)

    def _on_order(self, message: WakeServer | RestartServer | RefreshServer | SleepServer, reply: Reply[Any]) -> None:
        if self._departure is not None and self._departure.successor is not None:
            self._departure.successor.forward(message, reply)
        else:
            self._orders.take(message, reply)

    # What instances report ------------------------------------------------------------------------------------------

    def _on_report(self, number: int, fact: InstanceFact) -> None:
        instance = self._instances.get(number)
        if instance is None:
            return
        match fact:
            case ServerChanged():
                self._on_changed(instance, fact)
            case ServerListed(offer=offer):
                self._on_listed(instance, offer, fact)
            case EraLearned(era=era) if instance is self._leading.leader:
                self._era = era
                self._reporter.report(fact)

    def _on_changed(self, instance: Instance, fact: ServerChanged) -> None:
        instance.note(fact.status)
        self._leading.follow()
        if fact.previous is not fact.status.state:
            self._tell(instance.row(fact.status), fact.previous, fact.reason)
        self._report(fact)
        self._clients.look(instance)

    def _tell(self, row: InstanceStatus, previous: State, reason: str) -> None:
        self._reporter.report(InstanceChanged(launch=self._server, instance=row, previous=previous, reason=reason))

    def _report(self, fact: ServerChanged | None = None) -> None:
        """Tell how the launch is doing as one, since that happened to an instance, for its reason."""
        status, previous, reason = self.status(), self._state, ""
        if fact is not None and fact.reason:
            reason = fact.reason
            status = replace(status, exit_code=fact.status.exit_code, signal=fact.status.signal)
        self._state = status.state
        self._reporter.report(ServerChanged(status=status, previous=previous, reason=reason))

    def _on_listed(self, instance: Instance, offer: Offer, fact: ServerListed) -> None:
        """Take what the one that leads offers. Another one that offers something else has it look again, too."""
        news = self._known is None or not unchanged(self._known, offer)
        if instance is not self._leading.leader and news:
            if self._leading.leader.up:
                order = RefreshServer(server=self._server, operator=False, principal=LOCAL)
                with suppress(SupervisorError):
                    self._leading.leader.post.request(order)
            elif instance.up:
                self._leading.lead(instance, reads=False)
        if instance is self._leading.leader:
            self._known = offer
            self._reporter.report(fact)

    # How many there are ---------------------------------------------------------------------------------------------

    def resize(self, wanted: InstanceSettings, drain_s: float) -> None:
        """Have other instances than before; those that stay are not disturbed. To be called within the group's task."""
        self._wanted = wanted
        self._clients.limit = wanted.max_instances
        self._dispatch.own = self._clients.of if wanted.per_client else None
        missing = Counter(wanted.addresses)
        for instance in [*self._instances.values()]:
            stays = wanted.per_client if instance.client is not None else missing[instance.address] > 0
            if not stays and not instance.leaving:
                self._retire(instance, FEWER, drain_s)
            elif instance.client is None and not instance.leaving:
                missing[instance.address] -= 1
        for address in missing.elements():
            self._make(address)
        self._leading.follow()
        self._report()

    def _make(self, address: str) -> Instance:
        number = next(number for number in range(1, len(self._instances) + 2) if number not in self._instances)
        spec = InstanceSpec(number=number, address=address, known=self._known, era=self._era)
        instance = self._make_instance(spec)
        instance.seat.leads = False
        instance.reporter.redirect(self.address, partial(InstanceReport, number))
        self._instances[number] = instance
        for each in sorted(self._instances):  # in the order of their numbers
            self._instances[each] = self._instances.pop(each)
        self.start_soon(self._run, instance)
        return instance

    async def _run(self, instance: Instance) -> None:
        await instance.actor.run()
        await self.address.tell(InstanceGone(instance.number))

    def _end_unused(self, instance: Instance) -> None:
        self._retire(instance, UNUSED, 0.0)

    def _retire(self, instance: Instance, reason: str, drain_s: float) -> None:
        """Have an instance end: calls in flight have so many seconds, others come back."""
        instance.leaving = True
        departure = Departure(reason=reason, drain_s=drain_s, successor=self.address)
        self.start_soon(self._end, instance, departure)

    async def _end(self, instance: Instance, departure: Departure | None) -> None:
        await self._orders.end(instance, departure)
        if instance is self._first:  # its task is not ours
            await self.address.tell(InstanceGone(instance.number))

    def _on_gone(self, number: int) -> None:
        instance = self._instances.pop(number, None)
        if instance is not None and self._instances:
            previous = instance.last.state
            self._tell(instance.row(instance.status()), previous, "")
            self._report()

    # The end --------------------------------------------------------------------------------------------------------

    def _stop(self, departure: Departure | None, reply: Reply[None]) -> None:
        self._stopping.append(reply)
        if departure is not None:
            self._departure = departure
            self._reporter.end()
        self._dispatch.end(None if departure is None else departure.successor)
        for instance in self._instances.values():
            instance.leaving = True
            self.start_soon(self._end, instance, departure)
